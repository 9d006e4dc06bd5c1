"""The agent's identity and style, and the files of every context: sliders, ``MEMORY.md``, ``memory.md``."""
