"""A Python session for code that nobody trusts: in the sandbox, in a process that can do nothing but compute.

``session.py`` is the host's side; ``child/`` runs in the process, and imports nothing but the standard library. This
file is read on both sides, so nothing may be imported here.
"""
