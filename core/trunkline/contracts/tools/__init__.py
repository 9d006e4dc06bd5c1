"""Tools: the contract of a tool, its context, and the messages about calls."""
