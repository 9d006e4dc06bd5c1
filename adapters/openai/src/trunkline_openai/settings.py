"""The section ``[adapters.openai]``, and what follows from it."""

from typing import Any, Literal

import msgspec

from trunkline import ConfigError, Secret

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_KEY = Secret(env="OPENAI_API_KEY")
DEFAULT_MODEL = "gpt-5"
"""The model when none is configured and requests go to OpenAI itself. Elsewhere it is the first the server offers."""

PLACEHOLDER_KEY = "no-key-needed"
"""The key that is sent to a server that needs none, such as a local one: the client requires a key."""

Api = Literal["chat", "responses"]


class OpenAISettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.openai]``.

    ``base_url`` is the server's address up to and including ``/v1``; without it, OpenAI itself. ``api_key`` is a
    reference to the variable with the key, by default ``OPENAI_API_KEY``; if that is not set, a server with a
    ``base_url`` receives a placeholder. ``api`` is the protocol: by default ``responses`` for OpenAI, and ``chat``
    for every other server, because all of them support Chat Completions. ``connect_timeout`` is in seconds;
    ``monitor.model_idle_timeout`` limits how long the model may send nothing. ``extra_body`` is added to every request
    and overrides its fields. ``continue_final_message`` says that the server continues a final assistant message.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    model: str = ""
    api: Api | None = None
    connect_timeout: float = 10.0
    extra_body: dict[str, Any] = {}
    continue_final_message: bool = False

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"adapters.openai.base_url is {self.base_url!r}, which is not a web address.",
                hint='Write the address up to and with /v1, such as "http://127.0.0.1:11434/v1".',
            )
        if self.base_url is not None and "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise ConfigError(
                "adapters.openai.base_url has a user or password in it, and secrets are no part of an address.",
                hint='Put the key into a variable and write api_key = { env = "ITS_NAME" }.',
            )

    @property
    def url(self) -> str:
        """The base URL that requests go to."""
        return self.base_url or OPENAI_URL

    @property
    def protocol(self) -> Api:
        """The protocol in use, ``chat`` or ``responses``."""
        return self.api or ("responses" if self.base_url is None else "chat")

    @property
    def usable(self) -> bool:
        """Report whether there is a server to ask and, if it is needed, a key."""
        return self.base_url is not None or (self.api_key or DEFAULT_KEY).is_set()

    def key(self) -> str:
        """The key to send.

        Raises:
            ConfigError: a key is needed or was named, and its variable is not set.
        """
        if self.api_key is None and self.base_url is not None and not DEFAULT_KEY.is_set():
            return PLACEHOLDER_KEY
        return (self.api_key or DEFAULT_KEY).reveal()
