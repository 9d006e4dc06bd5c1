"""Helpers that know nothing of the platform: text, paths, archives, secrets, TOML and JSON."""
