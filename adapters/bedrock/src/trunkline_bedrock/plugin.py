"""The plugin: declares the section, the adapter if it is usable, and a health check that says why it is not."""

from collections.abc import Iterable

from trunkline import ConfigSection, HealthCheck, HealthResult, PluginSettings, hookimpl
from trunkline.api.model import AdapterSetup, ModelAdapter, ModelError, SetupField
from trunkline_bedrock.settings import BedrockSettings

SETUP = AdapterSetup(
    "Amazon Bedrock (the credentials of AWS, no key)",
    fields=(
        SetupField("profile", "AWS profile (empty: the standard credential chain)", ("AWS_PROFILE",)),
        SetupField("region", "AWS region", ("AWS_REGION", "AWS_DEFAULT_REGION")),
    ),
)

CONFIGURE = "Set model and region in [adapters.bedrock]; the AWS credential chain has the key."


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    return [ConfigSection("adapters", "bedrock", BedrockSettings, SETUP)]


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    section = settings.section(BedrockSettings)
    if not section.usable:
        return []
    from trunkline_bedrock.adapter import BedrockAdapter

    return [BedrockAdapter(section)]


@hookimpl
def trunkline_health_checks(settings: PluginSettings) -> Iterable[HealthCheck]:
    section = settings.section(BedrockSettings)

    async def check() -> HealthResult:
        return await _check(section)

    return [HealthCheck("adapters.bedrock", check, online=True)]


async def _check(section: BedrockSettings) -> HealthResult:
    if not section.usable:
        return HealthResult("ok", "Bedrock is not configured.", CONFIGURE)
    from trunkline_bedrock.adapter import BedrockAdapter

    adapter = BedrockAdapter(section)
    try:
        models = await adapter.models()
    except ModelError as error:
        return HealthResult("warning", f"Bedrock does not answer ({error.fault}).", _cure(error))
    finally:
        await adapter.aclose()
    return HealthResult("ok", f"Bedrock answers and lists {len(models)} models.")


def _cure(error: ModelError) -> str:
    from trunkline_bedrock.errors import CREDENTIALS_CURE, REGION_CURE

    match error.fault:
        case "authentication":
            needed = "bedrock:ListFoundationModels and bedrock:ListInferenceProfiles must be allowed"
            return f"To have credentials, {CREDENTIALS_CURE}; {needed}."
        case "unavailable" | "timeout":
            return "Check the network, and region and endpoint_url in [adapters.bedrock]."
    return f"Check the region: {REGION_CURE}."
