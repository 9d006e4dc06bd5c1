"""Documents: reading files of any format with readers that plugins bring, and bringing them into memory.

``finding`` which files there are · ``readers`` who reads which · ``apart``, ``wire`` and ``child`` reading in a process
of its own · ``markdown`` what was read as it lies in memory · ``bringing`` what is new goes there.
"""
