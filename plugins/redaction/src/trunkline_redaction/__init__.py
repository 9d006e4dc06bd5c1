"""Placeholders for secrets in what is sent to model vendors."""
