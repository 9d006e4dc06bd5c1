"""The section ``[adapters.anthropic]`` and the vendor's parameters."""

from typing import Any

import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import ModelParameter, validate_parameters
from trunkline_anthropic.claude_models import EFFORTS

ANTHROPIC_URL = "https://api.anthropic.com"
DEFAULT_KEY = Secret(env="ANTHROPIC_API_KEY")
DEFAULT_MODEL = "claude-sonnet-5-5"
"""The model when none is configured and requests go to Anthropic itself. Elsewhere it is the first the server lists."""

PLACEHOLDER_KEY = "no-key-needed"
"""The key that is sent to a server that needs none, because the client requires a key."""

MIN_THINKING_BUDGET = 1024
"""The vendor's smallest budget of thinking."""

PARAMETERS = (
    ModelParameter(
        name="reasoning_effort",
        type="string",
        choices=("none", *EFFORTS),
        doc="How much the model thinks before it answers. A model that has no such level takes the next lower one; "
        "one that always thinks takes none as low.",
    ),
    ModelParameter(
        name="thinking_budget",
        type="integer",
        minimum=MIN_THINKING_BUDGET,
        models=("claude-3-7-*", "claude-*-4-0", "claude-*-4-2*", "claude-*-4-1*", "claude-*-4-5*", "[!c]*"),
        doc="The tokens that the model may use to think, instead of reasoning_effort; at least 1024.",
    ),
    ModelParameter(
        name="thinking_display",
        type="string",
        choices=("summarized", "omitted"),
        doc="Whether the thinking is shown as a summary or not at all.",
    ),
    ModelParameter(
        name="stop_sequences", type="array", doc="Texts at which the model stops, as a list of strings."
    ),
    ModelParameter(
        name="disable_parallel_tool_use",
        type="boolean",
        doc="Whether an answer has at most one tool call.",
    ),
    ModelParameter(
        name="service_tier",
        type="string",
        choices=("auto", "standard_only"),
        doc="Whether bought priority capacity is used: auto or standard_only.",
    ),
    ModelParameter(
        name="inference_geo", type="string", doc="The region in which the model runs, such as us or global."
    ),
    ModelParameter(
        name="user_id",
        type="string",
        doc="An opaque identifier of the end user, for the vendor's detection of abuse.",
    ),
)


class AnthropicSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.anthropic]``.

    ``base_url`` is the address of a server with Anthropic's Messages API; without it, Anthropic itself. ``api_key`` is
    a reference to the variable with the key, by default ``ANTHROPIC_API_KEY``; if that is not set, a server with a
    ``base_url`` receives a placeholder. ``max_tokens`` limits the answers of requests that have no limit of their own;
    None is the model's limit, at most 64 000. ``connect_timeout`` is in seconds. With ``prompt_cache`` tools, system
    messages and the last messages are marked for the vendor's prompt cache. ``parameters`` are parameters of every
    request (``PARAMETERS``). ``extra_body`` is added to every request and overrides its fields.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    model: str = ""
    max_tokens: int | None = None
    connect_timeout: float = 10.0
    prompt_cache: bool = True
    parameters: dict[str, Any] = {}
    extra_body: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"adapters.anthropic.base_url is {self.base_url!r}, which is not a web address.",
                hint='Write the address before /v1/messages, such as "http://127.0.0.1:8000".',
            )
        if self.base_url is not None and "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise ConfigError(
                "adapters.anthropic.base_url has a user or password in it, and secrets are no part of an address.",
                hint='Put the key into a variable and write api_key = { env = "ITS_NAME" }.',
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ConfigError(
                f"adapters.anthropic.max_tokens is {self.max_tokens}, but an answer has at least one token.",
                hint="Write a positive number, or leave max_tokens out for the model's own limit.",
            )
        validate_parameters(
            PARAMETERS, self.parameters, model=self.default_model, place="adapters.anthropic.parameters"
        )

    @property
    def url(self) -> str:
        """The address that requests go to, without the API's version."""
        return (self.base_url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1")

    @property
    def default_model(self) -> str:
        """The model of requests that name none; "" if the server decides it."""
        return self.model or (DEFAULT_MODEL if self.base_url is None else "")

    @property
    def usable(self) -> bool:
        """Report whether there is a server to ask and, if it is needed, a key."""
        return self.base_url is not None or (self.api_key or DEFAULT_KEY).is_set()

    def key(self) -> str:
        """Return the key to send.

        Raises:
            ConfigError: a key is needed or was named, and its variable is not set.
        """
        if self.api_key is None and self.base_url is not None and not DEFAULT_KEY.is_set():
            return PLACEHOLDER_KEY
        return (self.api_key or DEFAULT_KEY).reveal()
