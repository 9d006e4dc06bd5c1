"""Reads and writes the tar archives of memory, and verifies that they are complete.

An archive begins with a manifest and contains a checksum of each member. This package does not use git or the bus,
and does not interpret the files of memory.
"""
