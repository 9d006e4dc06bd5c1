"""The derived index: one table of passages for everything that can be searched. Deleting it loses nothing."""
