"""The documents of one conversation, stored in the cache and searched by memory's engine.

They are not part of memory's history or of an export.
"""
