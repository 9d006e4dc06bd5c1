"""The section ``[adapters.sagemaker]``: an endpoint of Amazon SageMaker whose container speaks Chat Completions."""

import re
from typing import Any

import msgspec

from trunkline import ConfigError
from trunkline.api.model import validate_parameters
from trunkline_openai.parameters import parameter_table
from trunkline_openai.settings import OpenAISettings, settings_of
from trunkline_openai.vendors import COMMON_PARAMETERS, SAMPLER_PARAMETERS, Vendor

SAGEMAKER = Vendor(
    name="sagemaker",
    title="Amazon SageMaker",
    url="",
    provider="aws.sagemaker",
    parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
    alternates=True,
)
"""What the containers of vLLM, TGI and LMI have in common."""

_ChatSettings = settings_of(SAGEMAKER)

PARAMETERS = parameter_table(SAGEMAKER, "chat")

ENDPOINT = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


class SageMakerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[adapters.sagemaker]``.

    ``model`` is the name of the endpoint, ``served_model`` the name of the model in its container, by default that of
    the endpoint. ``inference_component`` is the component of the endpoint, if it has several. ``profile`` and
    ``region`` choose the AWS profile and region; without them the AWS credential chain does. ``endpoint_url`` is the
    address of another endpoint of the service, such as a VPC endpoint. ``connect_timeout`` is in seconds.
    ``parameters`` are parameters of every request. ``structured`` says that the container enforces JSON Schemas,
    ``sees`` that its model reads images. ``extra_body`` is added to every request and overrides its fields.
    """

    model: str = ""
    served_model: str = ""
    inference_component: str = ""
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    connect_timeout: float = 10.0
    parameters: dict[str, Any] = {}
    structured: bool = False
    sees: bool = False
    extra_body: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.model and not ENDPOINT.fullmatch(self.model):
            raise ConfigError(
                f"adapters.sagemaker.model is {self.model!r}, which is not the name of an endpoint.",
                hint="Write the endpoint's name, not its ARN: letters, digits and hyphens.",
            )
        if self.endpoint_url is not None and not self.endpoint_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"adapters.sagemaker.endpoint_url is {self.endpoint_url!r}, which is not a web address.",
                hint='Write an address such as "https://runtime.sagemaker.eu-west-1.amazonaws.com".',
            )
        validate_parameters(
            PARAMETERS, self.parameters, model=self.model, place="adapters.sagemaker.parameters"
        )

    @property
    def given(self) -> bool:
        """Report whether the section sets anything. The credentials of an AWS account alone choose no endpoint."""
        return self != SageMakerSettings()

    @property
    def chat(self) -> OpenAISettings:
        """The settings of Chat Completions for the container."""
        return _ChatSettings(
            parameters=self.parameters, extra_body=self.extra_body, base_url="http://sagemaker"
        )
