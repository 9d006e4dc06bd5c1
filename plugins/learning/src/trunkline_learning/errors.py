"""The errors after which a turn is learned from again."""

TRANSIENT_KINDS = ("unavailable", "timeout")
"""The kinds of a ToolError with which memory says that it cannot work now."""


class WriteConflict(Exception):
    """The content that a write is based on has changed."""
