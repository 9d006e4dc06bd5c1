"""Chunks: one JSON file each, and what is read off them. The files are truth; tables and links are derived."""
