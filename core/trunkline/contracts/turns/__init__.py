"""Turns: inbox, journal and feed, with the reader that puts a feed in order."""
