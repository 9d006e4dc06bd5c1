"""The section ``[adapters.engine]``."""

import msgspec

from trunkline import ConfigError, Secret


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.engine]``. ``url`` is the address of the other loop, without ``/engine/chat``. ``actor`` is
    sent for requests that no person caused, ``permissions`` bound what the loop may do for anybody, and ``token`` is
    sent in ``Authorization``. ``connect_timeout`` is in seconds.
    """

    url: str = ""
    actor: str = "owner"
    permissions: str = "memory:*,tools:*"
    token: Secret | None = None
    connect_timeout: float = 10.0

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ConfigError(
                f"adapters.engine.url is {self.url!r}, which is not a web address.",
                hint='Write it without /engine/chat, such as "http://127.0.0.1:8422".',
            )

    @property
    def endpoint(self) -> str:
        """The URL that requests go to."""
        return f"{self.url.rstrip('/')}/engine/chat"
