"""The questions of ``trunkline init``. Each answer is saved before the next question."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.init_settings import InitSettings, secret_reference
from trunkline.cli.model_servers import ModelServer, default_servers, list_models, probe_servers
from trunkline.cli.output import fit_text
from trunkline.errors import ConfigError

if TYPE_CHECKING:
    from trunkline.cli.init import InitFlags

COMPATIBLE, OFFLINE = "openai", "offline"
"""The adapter for servers with OpenAI's protocol, and the adapter that needs no model."""

OWN_KEY = "OPENAI_API_KEY"
LISTED = 20
"""Largest number of models that are listed."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that may answer. ``url`` is its address: None asks for one, "" means the adapter's default. ``works``
    reports whether it seems usable, as far as is known without a request. Enter selects the first choice that
    ``works``.
    """

    label: str
    adapter: str
    url: str | None = ""
    models: tuple[str, ...] = ()
    keyless: bool = False
    works: bool = False


def ask_questions(settings: InitSettings, flags: "InitFlags") -> None:
    """Ask the questions and save the answers. Raises click.Abort for Ctrl-C or the end of the input."""
    choice = _chosen(settings, flags)
    url = _url(settings, flags, choice)
    address = settings.address_key(choice.adapter)
    settings.save({"runtime.provider_adapter": choice.adapter, **({address: url or None} if address else {})})
    if choice.adapter not in ("auto", OFFLINE):
        _ask_adapter(settings, flags, choice, url)
    block = flags.block or click.prompt(
        "Name of the first block", default=settings.current_value("gateway.default_block"), err=True
    )
    settings.save({"gateway.default_block": block})


def _ask_adapter(settings: InitSettings, flags: "InitFlags", choice: ModelChoice, url: str) -> None:
    section, fields = f"adapters.{choice.adapter}", settings.sections[choice.adapter]
    key = ""
    if "api_key" in fields:
        key = _key_name(settings, flags, choice, url)
        if key and not os.environ.get(key):
            _tell(f"{key} is not set here. Nobody answers before it is: export {key}=…")
        settings.save({f"{section}.api_key": secret_reference(key) if key else None})
    if "model" in fields:
        offered = choice.models or _offered(url, os.environ.get(key, ""))
        settings.save(
            {f"{section}.model": _model(settings.current_value(f"{section}.model"), flags, offered) or None}
        )


# The model -------------------------------------------------------------------------------------------------


def _chosen(settings: InitSettings, flags: "InitFlags") -> ModelChoice:
    if flags.adapter or flags.base_url:
        return ModelChoice("", flags.adapter or COMPATIBLE, url=None if flags.adapter else flags.base_url)
    found = _found(settings)
    choices = [*_as_it_is(settings), *found, *_choices(settings)]
    click.echo("Who should answer?", err=True)
    for number, choice in enumerate(choices, 1):
        _tell(f"  {number}  {choice.label}")
    best = next(number for number, choice in enumerate(choices, 1) if choice.works)
    number = click.prompt("Number", type=click.IntRange(1, len(choices)), default=best, err=True)
    return choices[number - 1]


def _found(settings: InitSettings) -> list[ModelChoice]:
    """Announce the search, and return the model servers that answer on this machine."""
    if COMPATIBLE not in settings.sections:
        return []
    servers = default_servers()
    places = ", ".join(f"{one.name} ({one.url})" for one in servers)
    _tell(f"Looking for model servers on this machine: {places}.")
    found = probe_servers(servers)
    if not found:
        click.echo("None of them answers.", err=True)
    return [_local(one) for one in found]


def _local(server: ModelServer) -> ModelChoice:
    many = f"{len(server.models)} model{'s' if len(server.models) != 1 else ''}"
    return ModelChoice(
        f"{server.name} at {server.url} ({many})", COMPATIBLE, server.url, server.models,
        keyless=True, works=bool(server.models),
    )  # fmt: skip


def _as_it_is(settings: InitSettings) -> list[ModelChoice]:
    """Return the current model as a choice, if one is set."""
    adapter = settings.current_value("runtime.provider_adapter")
    if adapter not in settings.sections or adapter == OFFLINE:
        return []
    address = settings.address_key(adapter)
    url = settings.current_value(address) if address else ""
    return [ModelChoice(f"as it is: {adapter}{f' at {url}' if url else ''}", adapter, url, works=True)]


def _choices(settings: InitSettings) -> list[ModelChoice]:
    # The vendors of OpenAI's protocol have its keys: too many to list, and their addresses can be given.
    compatible = settings.sections.get(COMPATIBLE)
    others = [
        ModelChoice(f"the adapter {name}", name, None)
        for name, keys in sorted(settings.sections.items())
        if name not in (COMPATIBLE, OFFLINE) and keys != compatible
    ]
    offline = ModelChoice(
        "no model yet: Trunkline searches memory and quotes what it finds", OFFLINE, works=True
    )
    if COMPATIBLE not in settings.sections:
        return [*others, offline]
    has_key = bool(os.environ.get(OWN_KEY))
    state = "is set" if has_key else "is not set here"
    return [
        ModelChoice(f"OpenAI (its key is read from a variable; {OWN_KEY} {state})", COMPATIBLE, works=has_key),
        ModelChoice("another server with OpenAI's protocol, on any machine", COMPATIBLE, None),
        *others,
        offline,
    ]  # fmt: skip


# The model's settings ----------------------------------------------------------------------------------------


def _url(settings: InitSettings, flags: "InitFlags", choice: ModelChoice) -> str:
    address = settings.address_key(choice.adapter)
    if address is None or flags.base_url is not None or choice.url is not None:
        return flags.base_url or choice.url or ""
    now = settings.current_value(address)
    optional = choice.label == ""  # the adapter was given as a flag: it may have a default address
    hint = " (Enter: the vendor's own)" if optional else ', such as "http://127.0.0.1:11434/v1"'
    return _prompt(f"Its address{hint}", now, lambda text: _address(text, empty=optional))


def _address(text: str, *, empty: bool) -> str:
    if text.startswith(("http://", "https://")) or (empty and not text):
        return text
    raise click.UsageError("That is not a URL: a URL begins with http:// or https://.")


def _key_name(settings: InitSettings, flags: "InitFlags", choice: ModelChoice, url: str) -> str:
    """Return the name of the key's environment variable, "" for none."""
    if flags.key_env is not None or choice.keyless:
        return flags.key_env or ""
    now = settings.current_value(f"adapters.{choice.adapter}.api_key")
    return _prompt(
        "Environment variable that holds the key (its name, not the key"
        + ("; Enter: none)" if url and not now else ")"),
        now or ("" if url else f"{choice.adapter.upper()}_API_KEY"), _variable,
    )  # fmt: skip


def _variable(text: str) -> str:
    try:
        return secret_reference(text).env if text else ""
    except ConfigError as error:
        raise click.UsageError(f"{error.sentence} {error.hint}") from None


def _offered(url: str, key: str) -> tuple[str, ...]:
    """Return the models of the server at an address. An error is printed."""
    if not url:
        return ()
    click.echo(f"Reading the list of models from {url} …", err=True)
    try:
        return list_models(url, key, seconds=10.0)
    except (OSError, ValueError) as error:
        click.echo(f"It returned no list of models: {error}.", err=True)
        return ()


def _model(now: str, flags: "InitFlags", offered: Sequence[str]) -> str:
    if flags.model is not None:
        return flags.model
    for number, name in enumerate(offered[:LISTED], 1):
        click.echo(f"  {number}  {name}", err=True)
    default = now if now in offered or not offered else offered[0]
    hint = "number or name" if offered else "Enter: the server's first, or the vendor's default"
    return _prompt(f"Model ({hint})", default, lambda text: _numbered(text, offered))


def _numbered(text: str, offered: Sequence[str]) -> str:
    inside = text.isdecimal() and 0 < int(text) <= min(len(offered), LISTED)
    return offered[int(text) - 1] if inside else text


def _tell(text: str) -> None:
    click.echo(fit_text(text, err=True), err=True)


def _prompt(text: str, default: str, read: Any) -> str:
    answer: str = click.prompt(text, default=default, show_default=bool(default), value_proc=read, err=True)
    return answer.strip()
