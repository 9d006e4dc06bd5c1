"""Reads files of any format with the readers of plugins, and writes their text into memory.

Readers run in a pool of processes without network and write access.
"""
