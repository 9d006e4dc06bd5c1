"""Collections of texts with questions and judged evidence, of kinds that differ as much as people's memories do.

Each is made by a generator with a fixed seed, or read from what installed packages ship, so every machine has the same.
"""
