"""The terminal channel: a conversation with an agent in a terminal or over a pipe."""
