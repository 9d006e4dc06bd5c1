"""Tools: the contract of a tool, the context that it is given, and the messages about calls."""
