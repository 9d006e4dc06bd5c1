"""Chunks: one JSON file each. The files are the source of truth; tables and links are derived."""
