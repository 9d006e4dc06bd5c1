"""Enrols remotes: hosts whose tools are used here over a leaf node (ADR 9).

``runtime/leaf_node.py`` runs a remote's side, and ``workers/tools/remote_tools.py`` calls its tools.
"""
