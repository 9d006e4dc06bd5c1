"""The section ``[adapters.gemini]`` and the vendor's parameters."""

import re
from typing import Any

import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import ModelParameter, validate_parameters
from trunkline_gemini.gemini_models import EFFORTS

GEMINI_URL = "https://generativelanguage.googleapis.com"
DEFAULT_KEYS = (Secret(env="GEMINI_API_KEY"), Secret(env="GOOGLE_API_KEY"))
"""The variables of the key, in the order in which they are read."""

DEFAULT_MODEL = "gemini-3.8-flash"
"""The model when none is configured."""

PLACEHOLDER_KEY = "no-key-needed"
"""The key that is sent to a server that needs none, because the client requires a key."""

API_VERSION = re.compile(r"v\d+((alpha|beta)\d*)?")

BUDGET_MODELS = ("gemini-2.5-*",)

PARAMETERS = (
    ModelParameter(
        name="reasoning_effort",
        type="string",
        choices=("none", *EFFORTS),
        doc="How much the model thinks before it answers. A model that has no such level takes the next lower one; "
        "one that always thinks takes none as its least.",
    ),
    ModelParameter(
        name="thinking_budget",
        type="integer",
        minimum=-1,
        maximum=32_768,
        models=BUDGET_MODELS,
        doc="The tokens that the model may use to think, instead of reasoning_effort; -1 lets the model decide.",
    ),
    ModelParameter(
        name="include_thoughts",
        type="boolean",
        doc="Whether the answer shows a summary of the thinking; true if it is left out.",
    ),
    ModelParameter(
        name="stop_sequences",
        type="array",
        doc="Texts at which the model stops, as a list of at most 5 strings.",
    ),
    ModelParameter(
        name="top_p",
        type="number",
        minimum=0,
        maximum=1,
        doc="The probability of the tokens that are considered, from 0 to 1. Models from Gemini 3.5 ignore it.",
    ),
    ModelParameter(
        name="top_k",
        type="integer",
        minimum=1,
        doc="The number of tokens that are considered. Models from Gemini 3.5 ignore it.",
    ),
    ModelParameter(name="seed", type="integer", doc="A number that makes answers to equal requests alike."),
    ModelParameter(
        name="presence_penalty",
        type="number",
        minimum=-2,
        maximum=2,
        models=("gemini-1.*", "gemini-2.*"),
        doc="From -2 to 2: how much tokens that occurred are avoided.",
    ),
    ModelParameter(
        name="frequency_penalty",
        type="number",
        minimum=-2,
        maximum=2,
        models=("gemini-1.*", "gemini-2.*"),
        doc="From -2 to 2: how much tokens that occurred often are avoided.",
    ),
    ModelParameter(
        name="media_resolution",
        type="string",
        choices=("low", "medium", "high"),
        doc="The resolution at which images and documents are read: low, medium or high.",
    ),
    ModelParameter(
        name="service_tier",
        type="string",
        choices=("standard", "flex", "priority"),
        doc="The price and the priority of the request: standard, flex or priority.",
    ),
    ModelParameter(
        name="safety_settings",
        type="array",
        doc="The vendor's safetySettings: a list of objects with category and threshold.",
    ),
)


class GeminiSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.gemini]``.

    ``base_url`` is the address of a server with the Gemini API, without the API's version; without it, Google itself.
    ``api_key`` is a reference to the variable with the key, by default ``GEMINI_API_KEY``, else ``GOOGLE_API_KEY``; if
    neither is set, a server with a ``base_url`` receives a placeholder. ``api_version`` is the version in the
    addresses of requests. ``connect_timeout`` is in seconds. ``parameters`` are parameters of every request
    (``PARAMETERS``). ``extra_body`` is added to every request and overrides its fields.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    model: str = ""
    api_version: str = "v1beta"
    connect_timeout: float = 10.0
    parameters: dict[str, Any] = {}
    extra_body: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"adapters.gemini.base_url is {self.base_url!r}, which is not a web address.",
                hint='Write the address before /v1beta, such as "http://127.0.0.1:8000".',
            )
        if self.base_url is not None and "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise ConfigError(
                "adapters.gemini.base_url has a user or password in it, and secrets are no part of an address.",
                hint='Put the key into a variable and write api_key = { env = "ITS_NAME" }.',
            )
        if not API_VERSION.fullmatch(self.api_version):
            raise ConfigError(
                f"adapters.gemini.api_version is {self.api_version!r}, which is not a version of the API.",
                hint="Write v1beta or v1, or leave it out for v1beta.",
            )
        if not self.connect_timeout > 0:
            raise ConfigError(
                f"adapters.gemini.connect_timeout is {self.connect_timeout:g}, but it must exceed 0 seconds.",
                hint="Write the seconds within which a connection must be made, such as 10.0.",
            )
        validate_parameters(
            PARAMETERS, self.parameters, model=self.default_model, place="adapters.gemini.parameters"
        )

    @property
    def url(self) -> str:
        """The address that requests go to, without the API's version."""
        return (self.base_url or GEMINI_URL).rstrip("/").removesuffix(f"/{self.api_version}")

    @property
    def default_model(self) -> str:
        """The model of requests that name none."""
        return self.model.removeprefix("models/") or DEFAULT_MODEL

    @property
    def usable(self) -> bool:
        """Report whether there is a server to ask and, if it is needed, a key."""
        return self.base_url is not None or self._key_reference.is_set()

    @property
    def configured(self) -> bool:
        """Report whether Gemini may be the default: it has settings, or the variable of its own is set.

        ``GOOGLE_API_KEY`` alone may be the key of another product of Google.
        """
        return self != GeminiSettings() or DEFAULT_KEYS[0].is_set()

    def key(self) -> str:
        """Return the key to send.

        Raises:
            ConfigError: a key is needed or was named, and its variable is not set.
        """
        reference = self._key_reference
        if self.api_key is None and self.base_url is not None and not reference.is_set():
            return PLACEHOLDER_KEY
        return reference.reveal()

    @property
    def _key_reference(self) -> Secret:
        if self.api_key is not None:
            return self.api_key
        return next((reference for reference in DEFAULT_KEYS if reference.is_set()), DEFAULT_KEYS[0])
