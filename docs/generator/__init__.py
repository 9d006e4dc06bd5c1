"""The reference pages, each drawn from the code that it describes. Run by ``docs/generate.py``."""
