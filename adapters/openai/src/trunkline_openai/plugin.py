"""The plugin: declares the sections, the adapters that are usable, and health checks that say why one is not."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from trunkline import ConfigSection, HealthCheck, HealthResult, PluginSettings, hookimpl
from trunkline.api.model import AdapterSetup, ModelAdapter, ModelError
from trunkline_openai.sagemaker_settings import SAGEMAKER, SageMakerSettings
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings
from trunkline_openai.vendors import OPENAI, Vendor

CONFIGURE = (
    'export OPENAI_API_KEY=..., or set base_url in [adapters.openai], such as "http://127.0.0.1:11434/v1".'
)

SAGEMAKER_CURE = (
    "Check profile, region and model in [adapters.sagemaker]; the account needs sagemaker:InvokeEndpoint and "
    "sagemaker:ListEndpoints."
)


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    others = [
        ConfigSection("adapters", name, kind, _setup(kind.vendor, listed=False))
        for name, kind in VENDOR_SETTINGS.items()
    ]
    others.append(ConfigSection("adapters", "sagemaker", SageMakerSettings, _setup(SAGEMAKER, listed=False)))
    return [ConfigSection("adapters", "openai", OpenAISettings, _setup(OPENAI)), *others]


def _setup(vendor: Vendor, *, listed: bool = True) -> AdapterSetup:
    keys = (vendor.key_variable,) if vendor.key_variable else ()
    return AdapterSetup(vendor.title, keys=keys, listed=listed)


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    adapters: list[ModelAdapter] = []
    if usable := [section for section in _sections(settings) if section.usable]:
        from trunkline_openai.adapter import OpenAIAdapter

        adapters += map(OpenAIAdapter, usable)
    if (sagemaker := settings.section(SageMakerSettings)).given:
        from trunkline_openai.sagemaker import SageMakerAdapter

        adapters.append(SageMakerAdapter(sagemaker))
    return adapters


@hookimpl
def trunkline_health_checks(settings: PluginSettings) -> Iterable[HealthCheck]:
    checks = [
        _health_check(section) for section in _sections(settings) if section.vendor is OPENAI or section.given
    ]
    if (sagemaker := settings.section(SageMakerSettings)).given:
        checks.append(HealthCheck("adapters.sagemaker", partial(_check_sagemaker, sagemaker), online=True))
    return checks


def _sections(settings: PluginSettings) -> Iterator[OpenAISettings]:
    yield settings.section(OpenAISettings)
    for kind in VENDOR_SETTINGS.values():
        yield settings.section(kind)


def _health_check(section: OpenAISettings) -> HealthCheck:
    async def check() -> HealthResult:
        return await _check(section)

    return HealthCheck(section.place, check, online=True)


async def _check(section: OpenAISettings) -> HealthResult:
    if not section.usable and section.vendor is OPENAI:
        return HealthResult("ok", "OpenAI is not configured; the offline adapter answers.", CONFIGURE)
    from trunkline_openai.adapter import OpenAIAdapter

    adapter = OpenAIAdapter(section)
    try:
        models = await adapter.models()
    except ModelError as error:
        return HealthResult(
            "warning", f"{section.url} does not answer ({error.fault}).", _cure(error, section)
        )
    finally:
        await adapter.aclose()
    said = f"{section.url} answers and lists {len(models)} models"
    if section.model and models and not _is_listed(section.model, [one.id for one in models]):
        hint = f"Check model in [{section.place}]; `trunkline models --refresh` lists the names."
        return HealthResult("warning", f"{said}, but not {section.model!r}.", hint)
    return HealthResult("ok", f"{said}.")


def _is_listed(model: str, listed: Sequence[str]) -> bool:
    """Report whether the model is listed, by its whole name or without the tag after a colon."""
    return model in listed or model.partition(":")[0] in {name.partition(":")[0] for name in listed}


async def _check_sagemaker(section: SageMakerSettings) -> HealthResult:
    from trunkline_openai.sagemaker import ENDPOINT_REQUIRED, SageMakerAdapter

    if not section.model:
        return HealthResult("warning", f"{ENDPOINT_REQUIRED}.".capitalize(), "trunkline models lists them.")
    adapter = SageMakerAdapter(section)
    try:
        names = [model.id for model in await adapter.models()]
    except ModelError as error:
        return HealthResult("warning", f"SageMaker does not answer ({error.fault}).", SAGEMAKER_CURE)
    finally:
        await adapter.aclose()
    if section.model in names:
        return HealthResult("ok", f"The endpoint {section.model} is in service.")
    return HealthResult("warning", f"The endpoint {section.model} is not in service.", SAGEMAKER_CURE)


def _cure(error: ModelError, section: OpenAISettings) -> str:
    match error.fault:
        case "authentication":
            usual = f"{section.vendor.key_variable}, or " if section.vendor.key_variable else ""
            return f"Check the key: {usual}the variable that api_key in [{section.place}] names."
        case "unavailable" | "timeout":
            return f"Start the server there, or correct base_url in [{section.place}]; it ends with /v1 as a rule."
    return f"Check that base_url in [{section.place}] names a server that speaks OpenAI's protocol."
