"""Remotes: other hosts whose tools are served here over a leaf node, and how they are let in. ADR 9 says why so.

``registry`` knows who is let in, ``keys`` and ``certificates`` make what both sides show, ``proof`` is the exchange of
an enrolment without I/O, ``invite`` and ``join`` are its two ends, ``guests`` says what a remote may on the bus.
Running a remote's tools is in ``runtime.remote``, calling them in ``tools.remotes``.
"""
