"""The section ``[adapters.ollama]`` and the vendor's parameters."""

import os
import re
from typing import Any

import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import ModelParameter, validate_parameters

HOST_VARIABLE = "OLLAMA_HOST"
DEFAULT_KEY = Secret(env="OLLAMA_API_KEY")

DURATION = re.compile(r"-?\d+|-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")
"""A duration as the server reads it: seconds, or numbers with units."""

REQUEST_PARAMETERS = (
    ModelParameter(
        name="reasoning_effort",
        type="string",
        choices=("none", "on", "low", "medium", "high", "max"),
        doc="How much the model thinks: none, on (for models without levels), low, medium, high or max. Without it the "
        "model decides.",
    ),
    ModelParameter(
        name="keep_alive",
        type="string",
        doc='How long the model stays loaded after the answer, such as "30m"; "0" unloads it, "-1" keeps it.',
    ),
    ModelParameter(
        name="truncate",
        type="boolean",
        doc="Whether the server cuts a conversation that exceeds num_ctx. Without it such a request fails with "
        "context_overflow.",
    ),
)
"""Parameters that are fields of the request."""

OPTIONS = (
    ModelParameter(
        name="num_ctx", type="integer", minimum=1, doc="The size of the context window in tokens, at least 1."
    ),
    ModelParameter(
        name="num_predict",
        type="integer",
        minimum=-2,
        doc="The largest number of tokens of an answer; -1 for no limit.",
    ),
    ModelParameter(name="temperature", type="number", minimum=0, doc="The randomness; 0 is the least."),
    ModelParameter(name="top_p", type="number", minimum=0, maximum=1, doc="Nucleus sampling, from 0 to 1."),
    ModelParameter(
        name="top_k", type="integer", minimum=0, doc="The number of candidates for each token; 0 for all."
    ),
    ModelParameter(
        name="min_p",
        type="number",
        minimum=0,
        maximum=1,
        doc="The least probability of a token, from 0 to 1.",
    ),
    ModelParameter(
        name="typical_p", type="number", minimum=0, maximum=1, doc="Locally typical sampling, from 0 to 1."
    ),
    ModelParameter(
        name="seed", type="integer", doc="The seed of the random numbers, for repeatable answers."
    ),
    ModelParameter(name="stop", type="array", doc="Texts at which the model stops, as a list of strings."),
    ModelParameter(
        name="repeat_penalty", type="number", minimum=0, doc="The penalty for repeated tokens; 1 is none."
    ),
    ModelParameter(
        name="repeat_last_n",
        type="integer",
        minimum=-1,
        doc="The number of tokens in which repetitions count; 0 for none, -1 for num_ctx.",
    ),
    ModelParameter(
        name="presence_penalty", type="number", minimum=-2, maximum=2, doc="From -2 to 2; 0 is none."
    ),
    ModelParameter(
        name="frequency_penalty", type="number", minimum=-2, maximum=2, doc="From -2 to 2; 0 is none."
    ),
    ModelParameter(
        name="num_keep",
        type="integer",
        minimum=-1,
        doc="The number of tokens at the beginning that truncate does not cut.",
    ),
    ModelParameter(
        name="num_batch", type="integer", minimum=1, doc="The number of tokens that are read at once."
    ),
    ModelParameter(
        name="num_gpu",
        type="integer",
        minimum=-1,
        doc="The number of layers on the GPU; -1 for as many as fit.",
    ),
    ModelParameter(
        name="main_gpu", type="integer", minimum=0, doc="The GPU of small tensors, counted from 0."
    ),
    ModelParameter(name="use_mmap", type="boolean", doc="Whether the model's file is mapped into memory."),
    ModelParameter(
        name="num_thread", type="integer", minimum=0, doc="The number of threads; 0 for the server's choice."
    ),
)
"""Parameters that the request has in ``options``."""

PARAMETERS = (*REQUEST_PARAMETERS, *OPTIONS)


class OllamaSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.ollama]``.

    ``base_url`` is the server's address, without ``/api``; by default that of the variable ``OLLAMA_HOST``, else
    ``http://127.0.0.1:11434``. ``api_key`` is a reference to the variable with the key; without it a key is sent to
    ollama.com only, that of ``OLLAMA_API_KEY``. ``model`` is by default the first that the server lists and that
    answers. With ``pull`` a model that the server does not have is pulled when it is first used. ``connect_timeout`` is
    in seconds; ``monitor.model_idle_timeout`` limits how long the model may send nothing, the time in which it is
    loaded included. ``continue_final_message`` says that the model's template continues a final assistant message.
    ``parameters`` are parameters of every request (``PARAMETERS``). ``extra_body`` is added to every request and
    overrides its fields.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    model: str = ""
    pull: bool = False
    connect_timeout: float = 10.0
    continue_final_message: bool = False
    parameters: dict[str, Any] = {}
    extra_body: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"adapters.ollama.base_url is {self.base_url!r}, which is not a web address.",
                hint='Write the address without /api, such as "http://127.0.0.1:11434".',
            )
        if self.base_url is not None and "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise ConfigError(
                "adapters.ollama.base_url has a user or password in it, and secrets are no part of an address.",
                hint='Put the key into a variable and write api_key = { env = "ITS_NAME" }.',
            )
        place = "adapters.ollama.parameters"
        validate_parameters(PARAMETERS, self.parameters, model=self.model, place=place)
        kept = self.parameters.get("keep_alive")
        if kept is not None and not DURATION.fullmatch(kept):
            raise ConfigError(
                f"{place}.keep_alive is {kept!r}, which is no duration.",
                hint='Write a number with a unit, such as "30m" or "2h", or "-1" for ever.',
            )
        if not all(isinstance(text, str) for text in self.parameters.get("stop", ())):
            raise ConfigError(
                f"{place}.stop has something other than texts.", hint='Write a list such as ["END"].'
            )
        if not isinstance(self.extra_body.get("options", {}), dict):
            raise ConfigError(
                "adapters.ollama.extra_body.options is not a table.",
                hint="Write a table such as { num_ctx = 8192 }, or leave it out.",
            )

    @property
    def is_configured(self) -> bool:
        """Report whether the section has any setting. An installed adapter alone is no choice of a model."""
        return self != OllamaSettings()

    @property
    def url(self) -> str:
        """The address that requests go to, without ``/api``.

        Raises:
            ConfigError: ``OLLAMA_HOST`` is no address.
        """
        from trunkline_ollama.server_address import DEFAULT_URL, parse_host

        if self.base_url is not None:
            return self.base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        host = os.environ.get(HOST_VARIABLE, "")
        try:
            return parse_host(host) if host else DEFAULT_URL
        except ValueError:
            raise ConfigError(
                f"The environment variable {HOST_VARIABLE} is {host!r}, which is not an address.",
                hint='Write host and port, such as "127.0.0.1:11434", or set base_url in [adapters.ollama].',
            ) from None

    def key(self) -> str:
        """Return the key to send, "" for none.

        Raises:
            ConfigError: the variable that ``api_key`` names is not set, or ``OLLAMA_HOST`` is no address.
        """
        from trunkline_ollama.server_address import is_cloud

        if self.api_key is not None:
            return self.api_key.reveal()
        return DEFAULT_KEY.reveal() if DEFAULT_KEY.is_set() and is_cloud(self.url) else ""
