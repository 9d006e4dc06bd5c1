"""The questions of ``trunkline init``. Each answer is saved before the next question."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.confirmation import agrees
from trunkline.cli.init_choices import COMPATIBLE, OFFLINE, ModelChoice, choose_model
from trunkline.cli.init_settings import InitSettings, secret_reference
from trunkline.cli.output import fit_text
from trunkline.errors import ConfigError

if TYPE_CHECKING:
    from trunkline.cli.init import InitFlags
    from trunkline.contracts.models.listing import AdapterListing

LISTED = 20
"""Largest number of models that are listed."""


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


def _chosen(settings: InitSettings, flags: "InitFlags") -> ModelChoice:
    if flags.adapter or flags.base_url:
        return ModelChoice("", flags.adapter or COMPATIBLE, url=None if flags.adapter else flags.base_url)
    return choose_model(settings)


def _ask_adapter(settings: InitSettings, flags: "InitFlags", choice: ModelChoice, url: str) -> None:
    section, fields = f"adapters.{choice.adapter}", settings.sections[choice.adapter]
    if "api_key" in fields:
        key = _key_name(settings, flags, choice, url)
        if key and not os.environ.get(key):
            _tell(f"{key} is not set here. Nobody answers before it is: export {key}=…")
        settings.save({f"{section}.api_key": secret_reference(key) if key else None})
    settings.save(settings.further_settings(choice.adapter, flags.further))
    _ask_fields(settings, flags, choice)
    if "model" in fields:
        _ask_model(settings, flags, choice)


def _ask_fields(settings: InitSettings, flags: "InitFlags", choice: ModelChoice) -> None:
    """Ask for the further settings that the adapter needs, except those given as flags."""
    setup = settings.setups.get(choice.adapter)
    given = {one.partition("=")[0] for one in flags.further}
    for field in setup.fields if setup is not None else ():
        if field.name in given:
            continue
        key = f"adapters.{choice.adapter}.{field.name}"
        found = [f"{name} is {os.environ[name]}" for name in field.variables if os.environ.get(name)]
        note = f" (Enter: {found[0]})" if found else ""
        settings.save({key: _prompt(f"{field.question}{note}", settings.current_value(key), str) or None})


# The address and the key -----------------------------------------------------------------------------------


def _url(settings: InitSettings, flags: "InitFlags", choice: ModelChoice) -> str:
    address = settings.address_key(choice.adapter)
    if address is None or flags.base_url is not None or choice.url is not None:
        return flags.base_url or choice.url or ""
    now = settings.current_value(address)
    optional = choice.label == "" or (choice.adapter in settings.setups and choice.adapter != COMPATIBLE)
    hint = " (Enter: the usual one)" if optional else ', such as "http://127.0.0.1:11434/v1"'
    return _prompt(f"Its address{hint}", now, lambda text: _address(text, empty=optional))


def _address(text: str, *, empty: bool) -> str:
    if text.startswith(("http://", "https://")) or (empty and not text):
        return text
    raise click.UsageError("That is not a URL: a URL begins with http:// or https://.")


def _key_name(settings: InitSettings, flags: "InitFlags", choice: ModelChoice, url: str) -> str:
    """Return the name of the key's environment variable, "" for none."""
    if flags.key_env is not None or choice.keyless:
        return flags.key_env or ""
    setup = settings.setups.get(choice.adapter)
    if setup is not None and not setup.keys:
        return ""
    now = settings.current_value(f"adapters.{choice.adapter}.api_key")
    return _prompt(
        "Environment variable that holds the key (its name, not the key"
        + ("; Enter: none)" if url and not now else ")"),
        now or ("" if url else _usual_key(settings, choice.adapter)), _variable,
    )  # fmt: skip


def _usual_key(settings: InitSettings, adapter: str) -> str:
    """Return the usual variable of an adapter's key: of several, the first that is set."""
    setup = settings.setups.get(adapter)
    names = setup.keys if setup is not None and setup.keys else (f"{adapter.upper()}_API_KEY",)
    return next((name for name in names if os.environ.get(name)), names[0])


def _variable(text: str) -> str:
    try:
        return secret_reference(text).env if text else ""
    except ConfigError as error:
        raise click.UsageError(f"{error.sentence} {error.hint}") from None


# The model -------------------------------------------------------------------------------------------------


def _ask_model(settings: InitSettings, flags: "InitFlags", choice: ModelChoice) -> None:
    section = f"adapters.{choice.adapter}"
    offered = choice.models or (() if flags.model is not None else _offered(settings, choice.adapter))
    now = settings.current_value(f"{section}.model")
    setup = settings.setups.get(choice.adapter)
    has_default = setup is not None and bool(setup.keys) and not settings.current_value(f"{section}.base_url")
    model = _model(now, flags, offered, has_default=has_default)
    settings.save({f"{section}.model": model or None})
    if model and offered and "pull" in settings.sections[choice.adapter]:
        _ask_pull(settings, section, model, offered)


def _ask_pull(settings: InitSettings, section: str, model: str, offered: Sequence[str]) -> None:
    """Offer to pull a model that the server does not have."""
    from trunkline.contracts.models.listing import is_listed

    if is_listed(model, offered):
        return
    question = f"The server does not have {model}. Pull it when it is first used? That may be many gigabytes."
    settings.save({f"{section}.pull": agrees(question)})


def _offered(settings: InitSettings, adapter: str) -> tuple[str, ...]:
    """Return the names of the models that an adapter lists. A problem is printed."""
    from trunkline.cli.aio import run
    from trunkline.cli.model_errors import describe_fault

    click.echo(f"Reading the list of models of {adapter} …", err=True)
    listing = run(_listing, settings, adapter)
    if listing is None or listing.problem:
        problem = describe_fault(listing.problem) if listing else "it lacks its settings"
        click.echo(f"The list cannot be read: {problem}.", err=True)
        return ()
    return tuple(name.removeprefix(f"{adapter}/") for name in listing.names)


async def _listing(settings: InitSettings, adapter: str) -> "AdapterListing | None":
    from trunkline.contracts.models.listing import list_models
    from trunkline.contracts.models.prices import PriceTable
    from trunkline.plugins import Plugins

    found = next(
        (one.item for one in Plugins.load(settings.config()).models() if one.item.name == adapter), None
    )
    if found is None:
        return None
    try:
        return await list_models(found, PriceTable({}))
    finally:
        await found.aclose()


def _model(now: str, flags: "InitFlags", offered: Sequence[str], *, has_default: bool) -> str:
    if flags.model is not None:
        return flags.model
    for number, name in enumerate(offered[:LISTED], 1):
        click.echo(f"  {number}  {name}", err=True)
    if len(offered) > LISTED:
        click.echo(f"  and {len(offered) - LISTED} more; trunkline models lists them.", err=True)
    default = now if now in offered or has_default or not offered else offered[0]
    hint = (
        "number or name"
        if offered and not has_default
        else "Enter: the server's first, or the vendor's default"
    )
    return _prompt(f"Model ({hint})", default, lambda text: _numbered(text, offered))


def _numbered(text: str, offered: Sequence[str]) -> str:
    inside = text.isdecimal() and 0 < int(text) <= min(len(offered), LISTED)
    return offered[int(text) - 1] if inside else text


def _tell(text: str) -> None:
    click.echo(fit_text(text, err=True), err=True)


def _prompt(text: str, default: str, read: Any) -> str:
    answer: str = click.prompt(text, default=default, show_default=bool(default), value_proc=read, err=True)
    return answer.strip()
