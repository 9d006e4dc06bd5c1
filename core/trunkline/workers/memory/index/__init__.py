"""The derived index: one table of passages for everything that can be found. Deleting it loses nothing.

``passage`` what can be found · ``plain``, ``document`` (by ``pieces``), ``conversation``, ``chunk`` how a file of each
kind is taken apart · ``kinds`` which of them a path is · ``schema`` and ``database`` the file, which mends itself ·
``rows`` passages as rows · ``follower`` keeping abreast of the last commit.
"""
