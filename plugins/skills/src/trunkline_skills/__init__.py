"""Skills: folders of instructions in memory, listed in the context and read when needed."""
