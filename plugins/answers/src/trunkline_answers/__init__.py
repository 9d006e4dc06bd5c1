"""Checks of the answers of models."""
