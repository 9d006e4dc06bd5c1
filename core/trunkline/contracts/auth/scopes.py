"""The scopes of access tokens: what a request may do, from reading to administration."""

from enum import StrEnum


class TokenScope(StrEnum):
    """The scope of a token. Each scope includes those before it.

    ``read``: lists, views and streams. ``chat``: messages, steering, cancelling and files. ``approve``: decisions about
    calls. ``operate``: blocks, models, dead letters and metrics. ``owner``: identities, tokens, policies, grants,
    deletion, purge and export.

    Guarantees: the scopes are in one order, and each includes itself.

    Not guaranteed: that what a scope includes is permitted. The policies that share a block decide too.
    """

    READ = "read"
    CHAT = "chat"
    APPROVE = "approve"
    OPERATE = "operate"
    OWNER = "owner"

    def includes(self, other: "TokenScope") -> bool:
        """Report whether this scope permits what ``other`` permits. Raises nothing."""
        order = tuple(TokenScope)
        return order.index(self) >= order.index(other)
