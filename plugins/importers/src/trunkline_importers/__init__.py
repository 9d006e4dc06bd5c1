"""Importers of what other systems remember."""
