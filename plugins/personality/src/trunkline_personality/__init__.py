"""Who an agent is and what it keeps in mind: identity, personalities, sliders, ``MEMORY.md``, ``memory.md``."""
