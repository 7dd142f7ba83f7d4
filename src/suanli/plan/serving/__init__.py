"""Serving: what a replica holds, how much of it is left for users, what their tokens cost."""
