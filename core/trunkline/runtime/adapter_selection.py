"""The choice of the model adapter, and the boot phase "adapter config" that checks it. No network.

The owner chooses an adapter by its name, by its settings, or by the key of a bundled adapter. An adapter that is only
installed receives no text.
"""

import logging
from collections.abc import Iterable

import msgspec

from trunkline.config import Config, InvalidConfig, Secret
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins
from trunkline.plugins.discovery import bundled_distributions, find_candidates

log = logging.getLogger(__name__)

OFFLINE, AUTO = "offline", "auto"
KEY_FIRST = "openai"
"""The adapter that a key in the environment selects before others, as the README says. The key of another vendor in the
environment, such as that of another program, does not change who receives the text.
"""

OFFLINE_HINT = 'Or let the offline adapter answer: [runtime] provider_adapter = "offline".'


def default_adapter(config: Config, plugins: Plugins) -> str:
    """Return the adapter for messages, blocks and preferences that name none.

    The default adapter is ``runtime.provider_adapter``. With ``auto`` it is the only adapter that has settings, else a
    bundled adapter whose key is in the environment (of several ``KEY_FIRST``, else the first by name), else the offline
    adapter.

    Raises:
      ConfigError: an adapter with settings lacks a key or another setting, or several adapters have settings.
    """
    chosen = config.settings.runtime.provider_adapter
    if chosen != AUTO:
        _require_keys(config, plugins, chosen)
        return chosen
    given = _configured_adapters(config, plugins)
    for name in given:
        _require_keys(config, plugins, name)
    models = plugins.models()
    ready = [one for one in models if one.item.name != OFFLINE and one.item.configured]
    named = sorted({one.item.name for one in ready if one.item.name in given})
    if len(named) > 1:
        raise ConfigError(
            f"Several model adapters have settings ({', '.join(named)}), and none is chosen.",
            hint=f'Choose: [runtime] provider_adapter = "{named[0]}".',
        )
    return next(iter(named), None) or next(iter(_bundled_with_key(plugins)), OFFLINE)


def _bundled_with_key(plugins: Plugins) -> list[str]:
    """Return the bundled adapters that are configured without settings, in the order of preference."""
    theirs = {one.owner for one in find_candidates((), ())} - bundled_distributions()
    names = {
        one.item.name
        for one in plugins.models()
        if one.item.name != OFFLINE and one.item.configured and one.owner.partition(":")[0] not in theirs
    }
    return sorted(names, key=lambda name: (name != KEY_FIRST, name))


def describe_default_adapter(config: Config, plugins: Plugins) -> str:
    """Return the default adapter for people: its name, the model in its settings, and the reason for the
    choice."""
    name = default_adapter(config, plugins)
    model = adapter_model(config, name)
    if config.settings.runtime.provider_adapter != AUTO:
        why = f"chosen by {config.origins['runtime.provider_adapter']}"
    elif name == OFFLINE:
        why = "no model is set up"
    elif name in _configured_adapters(config, plugins):
        why = f"it has settings in [adapters.{name}]"
    else:
        others = [other for other in _bundled_with_key(plugins) if other != name]
        why = "its key is set in the environment"
        if others:
            why += f", as are those of {', '.join(others)}; runtime.provider_adapter chooses"
    return f"{name}/{model} ({why})" if model else f"{name} ({why})"


def adapter_model(config: Config, adapter: str) -> str:
    """Return the model in the adapter's settings; "" when the settings name no model."""
    named = config.sources.get(("adapters", adapter, "model"))
    return named if isinstance(named, str) else ""


def check_adapters(config: Config, extra: Iterable[object]) -> None:
    """Check that every plugin's section is valid and that the configured model adapter exists.

    A section that belongs to no plugin is only logged: a plugin may be removed at any time (SWAP-3). If its name is a
    misspelling, such as ``[plugins.budgets]``, a budget or redaction would silently have no effect, so it is refused.

    Raises:
      ConfigError: a section is misspelled or has an unknown or invalid setting, there is no such adapter, or it
        lacks a key.
    """
    plugins = Plugins.load(config, extra=extra)
    if misspelled := plugins.misspelled_sections():
        raise InvalidConfig(misspelled)
    for owned in plugins.config_sections():
        config.section(owned.item.table, owned.item.name, owned.item.type)
    for problem in (*plugins.config_problems(), *plugins.missing_references()):
        log.warning("%s", problem)
    wanted = config.settings.runtime.provider_adapter
    log.info("who answers: %s", describe_default_adapter(config, plugins))
    names = sorted(owned.item.name for owned in plugins.models())
    if wanted not in (AUTO, *names):
        raise ConfigError(
            f"There is no model adapter {wanted!r} that can be used ({config.origins['runtime.provider_adapter']}).",
            hint=f"{key_hint(plugins, wanted)}Give it its settings in [adapters.{wanted}], or choose one of "
            f"{', '.join([AUTO, *names])}.",
        )


def _configured_adapters(config: Config, plugins: Plugins) -> list[str]:
    """Return the installed adapters that the owner configured, by file, variable or flag."""
    here = {one.item.name for one in plugins.config_sections() if one.item.table == "adapters"}
    return sorted(name for name in here if config.sources.get(("adapters", name)))


def _require_keys(config: Config, plugins: Plugins, name: str) -> None:
    """Raise ConfigError when an adapter with settings names a variable that is not set, or cannot be used."""
    sections = [
        one.item for one in plugins.config_sections() if (one.item.table, one.item.name) == ("adapters", name)
    ]
    if not sections or not config.sources.get(("adapters", name)):
        return
    section = config.section("adapters", name, sections[0].type)
    for field in msgspec.structs.fields(section):
        secret = getattr(section, field.name)
        if isinstance(secret, Secret) and not secret.is_set(config.environ):
            where = config.sources.describe_location(("adapters", name, field.name))
            raise ConfigError(
                f"The variable {secret.env} is not set, which adapters.{name}.{field.name} names ({where}).",
                hint=f"Set it before you start: export {secret.env}=... {OFFLINE_HINT}",
            )
    if not any(one.item.name == name for one in plugins.models()):
        raise ConfigError(
            f"[adapters.{name}] has settings, but the adapter lacks a key or an address, so it cannot answer "
            f"({config.sources.describe_location(('adapters', name))}).",
            hint=f'{key_hint(plugins, name)}"trunkline init" asks for what is needed. {OFFLINE_HINT}',
        )


def key_hint(plugins: Plugins, name: str) -> str:
    """Return the sentence that says how to set the key of an adapter, and a space; "" without a usual key."""
    sections = (one.item for one in plugins.config_sections() if one.item.table == "adapters")
    setup = next((one.setup for one in sections if one.name == name), None)
    return (
        f"Set its key before you start: export {setup.keys[0]}=... "
        if setup is not None and setup.keys
        else ""
    )
