"""The section ``[adapters.openai]``, the sections of the other vendors, and what follows from them."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import ModelParameter, validate_parameters
from trunkline_openai.parameters import parameter_table
from trunkline_openai.vendors import OPENAI, OTHER, VENDORS, Protocol, Vendor, vendor_at

DEFAULT_MODEL = "gpt-5.5"
"""The model when none is configured and requests go to OpenAI itself. Elsewhere it is the first the server offers."""

PLACEHOLDER_KEY = "no-key-needed"
"""The key that is sent to a server that needs none, such as a local one: the client requires a key."""

Api = Protocol


class OpenAISettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.openai]``.

    ``base_url`` is the server's address up to and including ``/v1``; without it, OpenAI itself. ``api_key`` is a
    reference to the variable with the key, by default ``OPENAI_API_KEY``; if that is not set, a server with a
    ``base_url`` receives a placeholder. ``api`` is the protocol: by default ``responses`` for OpenAI, and ``chat``
    for every other server, because all of them support Chat Completions. ``connect_timeout`` is in seconds;
    ``monitor.model_idle_timeout`` limits how long the model may send nothing. ``parameters`` are parameters of every
    request, such as ``{ reasoning_effort = "low" }``. ``hosted_tools`` are tools that OpenAI runs, as objects of its
    API, such as ``[{ type = "web_search" }]``. ``structured`` says that the server enforces JSON Schemas and ``reads``
    that it reads documents; without a value, what is known of the vendor. ``embedding_dimensions`` is the length of
    vectors. ``extra_body`` is added to every request and overrides its fields. ``continue_final_message`` says that the
    server continues a final assistant message.
    """

    vendor: ClassVar[Vendor] = OPENAI
    """The vendor of the section."""

    base_url: str | None = None
    api_key: Secret | None = None
    model: str = ""
    api: Api | None = None
    connect_timeout: float = 10.0
    parameters: dict[str, Any] = {}
    hosted_tools: tuple[dict[str, Any], ...] = ()
    structured: bool | None = None
    reads: bool | None = None
    embedding_dimensions: int | None = None
    extra_body: dict[str, Any] = {}
    continue_final_message: bool = False

    def __post_init__(self) -> None:
        self._check_address()
        self._check_hosted_tools()
        if self.embedding_dimensions is not None and self.embedding_dimensions < 1:
            raise ConfigError(
                f"{self.place}.embedding_dimensions is {self.embedding_dimensions}, but a vector has a length.",
                hint="Write a positive number, or leave it out for the model's own length.",
            )
        validate_parameters(
            self.parameter_table, self.parameters, model=self.known_model, place=f"{self.place}.parameters"
        )

    @property
    def place(self) -> str:
        """The section's name in messages."""
        return f"adapters.{self.vendor.name}"

    @property
    def url(self) -> str:
        """The base URL that requests go to."""
        return self.base_url or self.vendor.url

    @property
    def server(self) -> Vendor:
        """The vendor that requests go to. An address in ``[adapters.openai]`` may be another vendor's."""
        if self.base_url is None or self.vendor is not OPENAI:
            return self.vendor
        return vendor_at(self.base_url) or OTHER

    @property
    def vendor_name(self) -> str:
        """OpenTelemetry's name of the vendor, which reasoning blocks carry too."""
        return self.server.provider or self.server.name

    @property
    def protocol(self) -> Api:
        """The protocol in use, ``chat`` or ``responses``."""
        return self.api or self.server.protocol

    @property
    def parameter_table(self) -> tuple[ModelParameter, ...]:
        """The parameters that the server takes."""
        return parameter_table(self.server, self.protocol)

    @property
    def known_model(self) -> str:
        """The model of requests that name none; "" if the server decides it."""
        return self.model or (DEFAULT_MODEL if self.server is OPENAI else "")

    @property
    def given(self) -> bool:
        """Report whether the section sets anything."""
        return self != type(self)()

    @property
    def usable(self) -> bool:
        """Report whether there is a server to ask and, if it is needed, a key."""
        if self.base_url is not None or (self.vendor.local and self.given):
            return True
        secret = self._secret
        return secret is not None and secret.is_set()

    def key(self) -> str:
        """The key to send.

        Raises:
            ConfigError: a key is needed or was named, and its variable is not set.
        """
        secret = self._secret
        optional = self.api_key is None and (self.base_url is not None or self.vendor.local)
        if secret is None or (optional and not secret.is_set()):
            return PLACEHOLDER_KEY
        return secret.reveal()

    @property
    def _secret(self) -> Secret | None:
        usual = Secret(env=self.vendor.key_variable) if self.vendor.key_variable else None
        return self.api_key or usual

    def _check_address(self) -> None:
        if self.base_url is None:
            return
        if not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"{self.place}.base_url is {self.base_url!r}, which is not a web address.",
                hint='Write the address up to and with /v1, such as "http://127.0.0.1:11434/v1".',
            )
        if "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise ConfigError(
                f"{self.place}.base_url has a user or password in it, and secrets are no part of an address.",
                hint='Put the key into a variable and write api_key = { env = "ITS_NAME" }.',
            )

    def _check_hosted_tools(self) -> None:
        if self.hosted_tools and self.protocol != "responses":
            raise ConfigError(
                f"{self.place}.hosted_tools are set, but Chat Completions has no hosted tools.",
                hint='Write api = "responses" if the server has this protocol, or remove hosted_tools.',
            )
        for tool in self.hosted_tools:
            if not isinstance(tool.get("type"), str) or tool["type"] == "function":
                raise ConfigError(
                    f"{self.place}.hosted_tools has an entry without the type of a hosted tool.",
                    hint='Write the vendor\'s object, such as { type = "web_search" }.',
                )


def settings_of(vendor: Vendor) -> type[OpenAISettings]:
    """Return the type of the section of a vendor."""
    doc = f"``[adapters.{vendor.name}]``: the same keys as ``[adapters.openai]``, for {vendor.title}."
    name = f"{vendor.name.title().replace('-', '')}Settings"
    made = msgspec.defstruct(
        name,
        [],
        bases=(OpenAISettings,),
        namespace={"vendor": vendor, "__doc__": doc},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    return cast("type[OpenAISettings]", made)


VENDOR_SETTINGS: Mapping[str, type[OpenAISettings]] = {vendor.name: settings_of(vendor) for vendor in VENDORS}
"""The section of each vendor. Each is a type of its own, because a plugin reads a section by its type."""
