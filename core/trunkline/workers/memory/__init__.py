"""The memory worker, the only writer of a memory root. It does not summarise or interpret what it stores.

``operations`` describe changes; ``executor`` and ``group_commit`` collect them; ``committer`` writes them as commits.
``git_store`` puts all of it behind the contract ``MemoryStore``. ``worker`` serves the store on the bus.
"""
