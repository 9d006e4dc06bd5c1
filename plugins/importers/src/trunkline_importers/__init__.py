"""Importers for the memory of other systems."""
