"""Answers of the memory worker: each takes the requests of some endpoints apart and answers them. They decide nothing.

``files`` · ``past`` of files · ``conversations`` · ``chunks`` · ``collections`` · ``index`` · ``carrying`` archives;
``endpoints`` is where they say what they answer, and ``telling`` who hears of changes.
"""
