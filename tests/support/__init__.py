"""Shared by our own tests only: processes to kill, terminals, searches of a home's bytes.

The helpers for authors of plugins are in ``trunkline.testing``. Nothing here is in the wheel.
"""
