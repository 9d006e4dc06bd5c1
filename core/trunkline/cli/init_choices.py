"""The choices of ``trunkline init``: the servers of this machine, and all installed adapters with what each needs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from trunkline.cli.init_settings import InitSettings
from trunkline.cli.output import fit_text
from trunkline.runtime.model_servers import ModelServer, default_servers, probe_servers

if TYPE_CHECKING:
    from trunkline.contracts.plugins.extensions import AdapterSetup

COMPATIBLE, OFFLINE = "openai", "offline"
"""The adapter for servers with OpenAI's protocol, and the adapter that needs no model."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that may answer. ``adapter`` is "" where another question asks for it. ``url`` is its address: None asks
    for one, "" means the adapter's default. ``works`` reports whether it seems usable, as far as is known without a
    request. Enter selects the first choice that ``works``.
    """

    label: str
    adapter: str
    url: str | None = ""
    models: tuple[str, ...] = ()
    keyless: bool = False
    works: bool = False


def choose_model(settings: InitSettings) -> ModelChoice:
    """List the choices and return the person's. Raises click.Abort."""
    choices = [*_as_it_is(settings), *_found(settings), *_vendors(settings), *_others(settings)]
    click.echo("Who should answer?", err=True)
    for number, choice in enumerate(choices, 1):
        click.echo(fit_text(f"  {number}  {choice.label}", err=True), err=True)
    best = next(number for number, choice in enumerate(choices, 1) if choice.works)
    number = click.prompt("Number", type=click.IntRange(1, len(choices)), default=best, err=True)
    choice = choices[number - 1]
    return choice if choice.adapter else _named_vendor(settings)


def _as_it_is(settings: InitSettings) -> Iterator[ModelChoice]:
    """Yield the current model as a choice, if one is set."""
    adapter = settings.current_value("runtime.provider_adapter")
    if adapter in settings.sections and adapter != OFFLINE:
        address = settings.address_key(adapter)
        url = settings.current_value(address) if address else ""
        yield ModelChoice(f"as it is: {adapter}{f' at {url}' if url else ''}", adapter, url, works=True)


def _found(settings: InitSettings) -> list[ModelChoice]:
    """Announce the search, and return the model servers that answer on this machine."""
    if COMPATIBLE not in settings.sections:
        return []
    servers = default_servers()
    places = ", ".join(f"{one.name} ({one.url})" for one in servers)
    click.echo(fit_text(f"Looking for model servers on this machine: {places}.", err=True), err=True)
    found = probe_servers(servers)
    if not found:
        click.echo("None of them answers.", err=True)
    return [_local(settings, one) for one in found]


def _local(settings: InitSettings, server: ModelServer) -> ModelChoice:
    many = f"{len(server.models)} model{'s' if len(server.models) != 1 else ''}"
    native = server.adapter in settings.sections
    url = server.url.removesuffix("/v1") if native else server.url
    return ModelChoice(
        f"{server.name} at {url} ({many})", server.adapter if native else COMPATIBLE, url, server.models,
        keyless=True, works=bool(server.models),
    )  # fmt: skip


def _vendors(settings: InitSettings) -> list[ModelChoice]:
    """Return the vendors that say what they need, those whose key is set first."""
    choices = [
        ModelChoice(
            _label(setup), name, None if _asks_address(settings, name, setup) else "", works=_has_key(setup)
        )
        for name, setup in settings.setups.items()
        if setup.listed or _has_key(setup)
    ]
    return sorted(choices, key=lambda choice: not choice.works)


def _others(settings: InitSettings) -> Iterator[ModelChoice]:
    hidden = [
        name for name, setup in sorted(settings.setups.items()) if not setup.listed and not _has_key(setup)
    ]
    if hidden:
        yield ModelChoice(f"another vendor of OpenAI's protocol: {', '.join(hidden)}", "")
    if COMPATIBLE in settings.sections:
        yield ModelChoice("another server with OpenAI's protocol, on any machine", COMPATIBLE, None)
    for name in sorted(settings.sections.keys() - settings.setups.keys() - {OFFLINE}):
        yield ModelChoice(f"the adapter {name}", name, None)
    yield ModelChoice("no model yet: Trunkline searches memory and quotes what it finds", OFFLINE, works=True)


def _label(setup: "AdapterSetup") -> str:
    """Return the title of a vendor with its state: whether what it needs is there."""
    if setup.keys:
        found = [name for name in setup.keys if os.environ.get(name)]
        state = f"{found[0]} is set" if found else f"{setup.keys[0]} is not set here"
        return f"{setup.title} (its key is read from a variable; {state})"
    set_here = [name for field in setup.fields for name in field.variables if os.environ.get(name)]
    return f"{setup.title} ({', '.join(set_here)} set)" if set_here else setup.title


def _has_key(setup: "AdapterSetup") -> bool:
    return any(os.environ.get(name) for name in setup.keys)


def _asks_address(settings: InitSettings, name: str, setup: "AdapterSetup") -> bool:
    """Report whether the address has to be asked for: a vendor without a key runs on a machine of the owner."""
    return not setup.keys and not setup.fields and settings.address_key(name) is not None


def _named_vendor(settings: InitSettings) -> ModelChoice:
    names = [name for name, setup in settings.setups.items() if not setup.listed]
    name = click.prompt("Its name", type=click.Choice(sorted(names)), err=True)
    return ModelChoice(settings.setups[name].title, name, "", keyless=not settings.setups[name].keys)
