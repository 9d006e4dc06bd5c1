"""Documents that belong to one conversation (conflict C26): beside memory, in the cache, and found by the same engine.

Nothing of them is in memory's history or in an export. ``collection`` those of one conversation · ``collections`` all
of them, and when they go.
"""
