"""Reads and writes the tar archives in which memory travels, and verifies that they are complete.

An archive begins with a manifest and carries a hash of each member. Nothing here knows git, the bus or the meaning of
memory's files.
"""
