"""Reads files of any format with the readers of plugins, and adds their text to memory.

Readers run in a pool of processes without network access and without write access to files.
"""
