"""The names of actors that the platform itself uses."""

OWNER = "owner"
"""The actor name of the person who owns the memory. The owner may read everything."""
