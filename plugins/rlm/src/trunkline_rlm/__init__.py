"""Recursive retrieval: a model reads memory by writing code."""
