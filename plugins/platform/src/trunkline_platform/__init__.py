"""Tools that ask or notify the owner, list the blocks, and tell the time and the state of the machine."""
