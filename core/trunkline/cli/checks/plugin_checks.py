"""Checks of plugins, of the model adapter and of sandboxes."""

from contextlib import suppress
from pathlib import Path

import anyio

from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.contracts.models.listing import is_listed
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.errors import ConfigError, ModelError, PluginError
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.adapter_selection import default_adapter, describe_default_adapter, key_hint
from trunkline.runtime.locale_checks import check_locales
from trunkline.workers.tools.live_catalogue import find_manifests
from trunkline.workers.tools.tool_manifest import load_manifest_tool

ONLINE_SECONDS = 15.0


async def plugins_loaded(context: CheckContext) -> HealthResult:
    """plugins.loaded: every installed plugin is loaded, or disabled by configuration."""
    plugins = context.plugins
    if plugins is None:
        error = context.plugins_error
        return failure(
            error.sentence if error else "The plugins could not be listed.", error.hint if error else ""
        )
    report = plugins.full_report()
    if report.missing:
        names = ", ".join(report.missing)
        return failure(
            f"Required plugins are missing: {names}.", "Install them, or change [plugins] required."
        )
    broken = [f"{state.name} ({state.reason})" for state in report.unusable]
    broken += [f"{trouble.owner}: {trouble.hook} ({trouble.reason})" for trouble in report.troubles]
    if broken:
        return warning(
            f"Not loaded: {'; '.join(broken)}", 'See "trunkline plugins list"; fix, remove or disable them.'
        )
    return ok(f"{len(report.loaded)} plugins are loaded")


async def tools_manifests(context: CheckContext) -> HealthResult | None:
    """tools.manifests: each `tool.json` in the tool sources is valid. A tool with an invalid manifest is not
    available."""
    files = find_manifests(context.config.settings.runtime.tool_sources)
    wrong = [problem for file in files if (problem := _manifest_problem(file))]
    if wrong:
        return warning("; ".join(wrong), "Correct or delete the file: until then the tool is not available.")
    return ok(f"All tool manifests are valid ({len(files)})") if files else None


def _manifest_problem(file: Path) -> str:
    try:
        load_manifest_tool(file)
    except PluginError as error:
        return error.sentence
    return ""


async def adapter_configured(context: CheckContext) -> HealthResult | None:
    """adapter.configured: the model adapter is installed and has its settings."""
    if context.plugins is None:
        return None
    names = [owned.item.name for owned in context.plugins.models()]
    try:
        chosen = default_adapter(context.config, context.plugins)
    except ConfigError as error:
        return failure(error.sentence, error.hint)
    if chosen in names:
        return ok(f"{describe_default_adapter(context.config, context.plugins)} answers")
    if any(o.item.table == "adapters" and o.item.name == chosen for o in context.plugins.config_sections()):
        return failure(
            f"Adapter {chosen} lacks its settings.",
            f'{key_hint(context.plugins, chosen)}See [adapters.{chosen}], or "trunkline init".',
        )
    known = ", ".join(sorted(names)) or "none"
    hint = f"Set runtime.provider_adapter to one of {known}, or install the plugin that provides it."
    return failure(f"There is no model adapter {chosen!r}.", hint)


async def plugins_names(context: CheckContext) -> HealthResult | None:
    """plugins.names: each model and block that a plugin's section names exists."""
    if context.plugins is None:
        return None
    if missing := context.plugins.missing_references():
        hint = "Correct the names, or remove the settings: they have no effect."
        return warning("; ".join(map(str, missing)), hint)
    return ok("Every model and block in the sections of plugins exists")


async def plugins_locales(context: CheckContext) -> HealthResult | None:
    """plugins.locales: each text of a language of the web app has a key and the placeholders of an English one."""
    if context.plugins is None:
        return None
    found = check_locales(context.plugins.locales())
    if problems := [problem for one in found.values() for problem in one.problems]:
        return warning(" ".join(problems), "Correct the texts in the plugin, or update it.")
    return ok(f"The web app speaks {', '.join(one.name for one in found.values())}") if found else None


async def plugins_models(context: CheckContext) -> HealthResult | None:
    """plugins.models: each model that a plugin's section names, such as a fallback, is listed by its vendor. Runs only
    with --online, because it uses the network."""
    if not context.online or context.plugins is None:
        return None
    named = context.plugins.named_models()
    wanted = {model.partition("/")[0] for _, model in named}
    installed = [owned.item for owned in context.plugins.models()]
    listed = [name for one in installed if one.name in wanted for name in await _listed_names(one)]
    vendors = {name.partition("/")[0] for name in listed}
    unknown = [
        f"{setting} names {model!r}, which its vendor does not list"
        for setting, model in named
        if model.partition("/")[0] in vendors and not is_listed(model, listed)
    ]
    if unknown:
        return warning("; ".join(unknown), 'Correct the names: "trunkline models" lists them.')
    return ok("Every model in the sections of plugins is listed by its vendor, as far as vendors answer")


async def _listed_names(adapter: ModelAdapter) -> list[str]:
    """Return the names of an adapter's models; none if the vendor lists none, or does not answer."""
    with anyio.move_on_after(ONLINE_SECONDS), suppress(ModelError):
        return [f"{adapter.name}/{info.id}" for info in await adapter.models()]
    return []


async def adapter_reachable(context: CheckContext) -> HealthResult | None:
    """adapter.reachable: the provider answers. Runs only with --online, because it uses the network."""
    if not context.online or context.plugins is None:
        return None
    wanted = context.config.settings.runtime.provider_adapter
    installed = [owned.item for owned in context.plugins.models()]
    adapters = [one for one in installed if one.name == wanted or (wanted == "auto" and one.configured)]
    failures = [problem for adapter in adapters if (problem := await _ask(adapter)) is not None]
    if failures:
        return failure("; ".join(failures), "Check the key, the base_url and the network.")
    return ok(f"{', '.join(adapter.name for adapter in adapters) or 'Nothing'} answers")


async def _ask(adapter: ModelAdapter) -> str | None:
    try:
        with anyio.fail_after(ONLINE_SECONDS):
            await adapter.models()
    except TimeoutError:
        return f"{adapter.name} did not answer in {ONLINE_SECONDS:g} s"
    except ModelError as error:
        return f"{adapter.name} failed ({error.fault})"
    return None


async def sandbox_available(context: CheckContext) -> HealthResult | None:
    """sandbox.available: a sandbox can run programs. Without one, tools that run programs are refused."""
    if context.plugins is None:
        return None
    sandboxes = [owned.item for owned in context.plugins.sandboxes()]
    if not sandboxes:
        return warning(
            "No sandbox is installed, so tools that run programs are refused.",
            "trunkline plugins install trunkline-sandbox, or take it out of [plugins] disabled.",
        )
    if KillSwitch(context.home.path).is_engaged:  # while panic is in effect, no sandbox starts a program
        return None
    reasons = [await sandbox.unavailable() for sandbox in sandboxes]
    usable = [sandbox.name for sandbox, reason in zip(sandboxes, reasons, strict=True) if reason is None]
    if usable:
        return ok(f"{', '.join(usable)} can be used")
    return warning(
        "No sandbox can be used, so tools that run programs are refused.", " ".join(filter(None, reasons))
    )


async def documents_formats(context: CheckContext) -> HealthResult | None:
    """documents.formats: lists the document formats that can be read and the software missing for others. Watched
    folders exist."""
    if context.plugins is None:
        return None
    away = [str(one.folder) for one in context.config.settings.documents.watch if not one.folder.is_dir()]
    if away:
        return warning(
            f"Watched folders do not exist: {', '.join(away)}",
            "Create them, or correct [documents] watch.",
        )
    readers = [owned.item for owned in context.plugins.readers()]
    said = f"{', '.join(one.name for one in readers if one.unavailable() is None) or 'Only text'} can be read"
    reasons = dict.fromkeys(filter(None, (one.unavailable() for one in readers)))
    return ok("; ".join([said, *reasons]))
