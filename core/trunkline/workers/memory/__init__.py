"""The memory worker: the one writer of a memory root. Nothing here summarises or interprets what it keeps.

``paths`` which names are allowed · ``worktree`` the plain files · ``repository`` git underneath · ``view`` and
``wishes`` what a change means · ``batch`` and ``committer`` how a group becomes commits · ``grouping`` how callers
share one · ``past`` what was · ``conversations`` their files · ``index`` and ``search`` finding again · ``export`` ·
``store`` all of it behind ``MemoryStore`` · ``log_store`` another one, over ``record``s that a plugin keeps and
``log_book`` understands · ``answers`` to requests · ``worker`` the store on the bus.
"""
