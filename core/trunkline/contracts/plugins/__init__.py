"""Plugins: what any plugin may add to any worker, and the messages of plugins in processes of their own."""
