"""Installs and removes plugins, after checking what they contain. No worker imports this package."""
