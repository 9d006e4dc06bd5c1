"""Searches the index: passages, files by name, and conversations. It changes nothing."""
