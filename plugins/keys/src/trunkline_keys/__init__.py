"""Pools of vendors' keys, and the limits of each key."""
