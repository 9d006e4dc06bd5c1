"""Exports memory into an archive, and imports an archive into memory, with history."""
