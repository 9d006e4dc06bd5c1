"""The channels worker: runs channels and restarts them. Its code names no particular channel."""
