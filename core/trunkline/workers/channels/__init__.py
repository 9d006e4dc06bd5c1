"""The channels worker. It runs channels and restarts them, and knows none of them by name."""
