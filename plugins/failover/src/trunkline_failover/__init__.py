"""Retries and fallbacks of model calls."""
