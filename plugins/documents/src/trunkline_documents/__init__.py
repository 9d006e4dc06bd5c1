"""Readers for many document formats, and tools to search the text."""
