"""A small local embedder for memory."""
