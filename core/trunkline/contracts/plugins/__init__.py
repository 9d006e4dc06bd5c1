"""Plugins: the objects that a plugin may add to any worker, and the messages of isolated plugins."""
