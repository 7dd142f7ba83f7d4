"""Suanli keeps the books of deep-learning compute."""
