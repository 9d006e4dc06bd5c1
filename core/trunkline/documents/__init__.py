"""Documents: reading files of any format with readers that plugins bring, and bringing them into memory.

``finding`` which files there are · ``readers`` who reads which · ``apart``, ``wire``, ``child`` and ``landlock``
reading in a process of its own · ``markdown`` what was read as it lies in memory · ``bringing`` what is new goes there
· ``watching`` and again when it changes · ``for_tools`` what tools are given · ``around`` what stands around a place.
"""
