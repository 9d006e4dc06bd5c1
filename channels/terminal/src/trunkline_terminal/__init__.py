"""The terminal channel: a conversation with an agent at a person's terminal or through a pipe."""
