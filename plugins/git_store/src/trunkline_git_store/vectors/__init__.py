"""The vectors of passages, derived and expensive to compute.

They lie in a file of their own, keyed by the embedded text, so that a rebuilt index finds them there.
"""
