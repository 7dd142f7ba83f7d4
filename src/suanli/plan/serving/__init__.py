"""Serving: what a replica holds, how fast it prefills and decodes, how it bears a load."""
