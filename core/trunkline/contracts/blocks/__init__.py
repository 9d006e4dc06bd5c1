"""Blocks: their configuration and the messages about them."""
