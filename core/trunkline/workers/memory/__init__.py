"""The memory worker, the only writer of a memory root. It does not summarise or interpret what it stores.

``worker`` serves a store (``MemoryStore``) of a plugin on the bus, and ``handlers`` answer the requests.
``change_rules`` check every change before its commit. ``chunks`` stores and reads chunks, ``purge`` removes texts from
memory and its history, and ``log_writer`` copies the audit log and the cost ledger into memory.
"""
