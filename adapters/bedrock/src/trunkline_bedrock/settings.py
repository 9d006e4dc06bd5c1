"""The section ``[adapters.bedrock]`` and the vendor's parameters."""

import os
from typing import Any

import msgspec

from trunkline import ConfigError
from trunkline.api.model import ModelParameter, validate_parameters
from trunkline_bedrock.bedrock_models import EFFORTS

API_KEY_VARIABLE = "AWS_BEARER_TOKEN_BEDROCK"
"""The variable with a Bedrock API key. Without one the AWS credential chain signs requests."""

MIN_THINKING_BUDGET = 1024
"""Claude's smallest budget of thinking."""

CLAUDE = "*anthropic.claude-*"
OPAQUE = (
    "arn:*:application-inference-profile/*",
    "arn:*:provisioned-model/*",
    "arn:*:custom-model-deployment/*",
)
"""Ids that do not say which foundation model is behind them."""

PARAMETERS = (
    ModelParameter(
        name="reasoning_effort",
        type="string",
        choices=("none", *EFFORTS),
        models=(CLAUDE, "*amazon.nova-2-*", "*openai.gpt-oss-*", *OPAQUE),
        doc="How much the model thinks before it answers. A model that has no such level takes the next lower one; "
        "one that always thinks takes none as low.",
    ),
    ModelParameter(
        name="thinking_budget",
        type="integer",
        minimum=MIN_THINKING_BUDGET,
        models=(
            "*anthropic.claude-3-7-*",
            "*anthropic.claude-*-4-2*",
            "*anthropic.claude-*-4-1*",
            "*anthropic.claude-*-4-5*",
            *OPAQUE,
        ),
        doc="The tokens that a Claude model of 4.5 or earlier may use to think, instead of reasoning_effort; at least "
        "1024.",
    ),
    ModelParameter(
        name="top_p", type="number", minimum=0, maximum=1, doc="The share of likely tokens to choose from."
    ),
    ModelParameter(
        name="stop_sequences", type="array", doc="Texts at which the model stops, as a list of strings."
    ),
    ModelParameter(
        name="service_tier",
        type="string",
        choices=("default", "priority", "flex", "reserved"),
        doc="Which capacity is used: default, priority, flex or reserved.",
    ),
    ModelParameter(
        name="latency",
        type="string",
        choices=("standard", "optimized"),
        doc="Whether the model runs where it answers faster: standard or optimized.",
    ),
    ModelParameter(
        name="guardrail",
        type="object",
        doc='The guardrail of every request, such as { guardrailIdentifier = "gr-1", guardrailVersion = "1" }.',
    ),
)


class BedrockSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.bedrock]``.

    ``model`` is the id of a foundation model or of an inference profile, or an ARN. ``base_model`` is the foundation
    model behind an ARN that does not say it, such as that of an application inference profile. ``profile`` and
    ``region`` choose the AWS profile and region; without them the AWS credential chain does (``AWS_PROFILE``,
    ``AWS_REGION``, ``~/.aws``). ``endpoint_url`` is the address of another endpoint, such as a VPC endpoint, and
    ``control_endpoint_url`` that for the list of models, by default the same. ``max_tokens`` limits the answers of
    requests that have no limit of their own. ``connect_timeout`` is in seconds. ``streaming`` says that answers are
    streamed; some imported models cannot. With ``prompt_cache`` tools, system messages and the last messages are marked
    for the prompt cache, if the model has one. ``parameters`` are parameters of every request (``PARAMETERS``).
    ``extra_fields`` are added to ``additionalModelRequestFields`` of every request.
    """

    model: str = ""
    base_model: str = ""
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    control_endpoint_url: str | None = None
    max_tokens: int | None = None
    connect_timeout: float = 10.0
    streaming: bool = True
    prompt_cache: bool = True
    parameters: dict[str, Any] = {}
    extra_fields: dict[str, Any] = {}

    def __post_init__(self) -> None:
        for name in ("endpoint_url", "control_endpoint_url"):
            _check_address(name, getattr(self, name))
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ConfigError(
                f"adapters.bedrock.max_tokens is {self.max_tokens}, but an answer has at least one token.",
                hint="Write a positive number, or leave max_tokens out for the model's own limit.",
            )
        validate_parameters(
            PARAMETERS, self.parameters, model=self.model, place="adapters.bedrock.parameters"
        )

    @property
    def usable(self) -> bool:
        """Report whether the section says something, or a Bedrock API key is set. The credentials of an AWS account
        alone choose no model.
        """
        named = (self.model, self.profile, self.region, self.endpoint_url)
        return any(named) or bool(os.environ.get(API_KEY_VARIABLE))


def _check_address(name: str, address: str | None) -> None:
    if address is None:
        return
    if not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"adapters.bedrock.{name} is {address!r}, which is not a web address.",
            hint='Write the address of the endpoint, such as "https://bedrock-runtime.eu-west-1.amazonaws.com".',
        )
    if "@" in address.partition("://")[2].partition("/")[0]:
        raise ConfigError(
            f"adapters.bedrock.{name} has a user or password in it, and secrets are no part of an address.",
            hint="Use the AWS credential chain: a profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        )
