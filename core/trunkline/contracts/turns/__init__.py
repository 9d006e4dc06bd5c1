"""Turns: inbox, journal and feed, with the reader that orders the feed."""
