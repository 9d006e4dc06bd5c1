"""The requirements of an imported memory that are missing here: models, tools, plugins, identities. Pure."""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from trunkline.api.files import read_toml
from trunkline.api.importer import ImportGap
from trunkline.api.memory import block_file_path
from trunkline.api.store import InstalledComponents

Read = Callable[[str], bytes | None]


class PolicySummary(msgspec.Struct, frozen=True):
    """As much of a policy as tells whom it is about and what it permits."""

    subject: str
    resource: str = "*"
    action: str = "*"
    effect: str = ""
    conditions: dict[str, Any] = {}

    @property
    def conditions_text(self) -> str:
        """Its conditions, in words that say no more than the file: each with its value, without the shape of a call."""
        wordings = {"shape": "calls like the one that was approved"}
        parts = (
            wordings.get(name) or f"{name.replace('_', ' ')} {value}"
            for name, value in self.conditions.items()
        )
        return "; ".join(parts)[:200]


def find_gaps(
    plugins: dict[str, str], blocks: Iterable[str], read: Read, here: InstalledComponents
) -> Iterator[ImportGap]:
    """Return all requirements that are missing. ``plugins`` are those of the other installation, ``read`` reads its
    files."""
    for name in sorted(plugins.keys() - here.plugins.keys()):
        yield ImportGap(
            what=f"the plugin {name} {plugins[name]}",
            why="is not installed here",
            hint=f"trunkline plugins install {name}",
        )
    yield from _model("preferences.toml", _toml(read("preferences.toml")), here)
    for block in blocks:
        path = block_file_path(block)
        settings = _toml(read(path))
        yield from _model(path, settings, here)
        yield from _tools(path, settings, here)


def policy_gaps(policies: dict[str, bytes], identities: set[str]) -> Iterator[ImportGap]:
    """Yield the gaps of imported policies.

    A policy about an unknown identity is kept and has no effect; an allow policy applies from now
    on. A block is known by its name, even before it is created.
    """
    for path, data in sorted(policies.items()):
        try:
            policy = msgspec.json.decode(data, type=PolicySummary)
        except msgspec.MsgspecError:
            yield ImportGap(what=path, why="is not a valid policy: no tool may be used until it is corrected")
            continue
        subject = policy.subject[:80]
        if subject != "*" and not subject.startswith(("type:", "block:")) and subject not in identities:
            yield ImportGap(what=path, why=f"is about {subject!r}, who is not known here: it has no effect")
        elif policy.effect == "allow":
            only = f" (only: {policy.conditions_text})" if policy.conditions_text else ""
            yield ImportGap(
                what=path,
                why=f"is in force from now on: {subject} may {policy.action[:80]} {policy.resource[:80]}{only}",
                hint=_undoing(path, policy),
            )


def _undoing(path: str, policy: PolicySummary) -> str:
    kind, _, block = policy.resource.partition(":")
    if kind == "block" and not policy.subject.startswith(("*", "type:", "block:")) and "*" not in block:
        return f"To undo it: trunkline auth unshare {block[:80]} {policy.subject[:80]}, or delete the file."
    id = path.rpartition("/")[2].removesuffix(".json")
    if id.startswith("approved-"):
        return f"To undo it: trunkline approvals forget {id}, or delete the file."
    return f"To undo it: trunkline permissions rules remove {id}, or delete the file."


def _model(path: str, settings: dict[str, Any], here: InstalledComponents) -> Iterator[ImportGap]:
    model = settings.get("model")
    if not isinstance(model, str) or "/" not in model or not here.adapters:
        return
    adapter = model.partition("/")[0]
    if adapter not in here.adapters:
        yield ImportGap(
            what=f"the model {model} of {path}",
            why=f"there is no adapter {adapter!r} here",
            hint=f"Install one, or name another model in {path}.",
        )


def _tools(path: str, settings: dict[str, Any], here: InstalledComponents) -> Iterator[ImportGap]:
    wanted = settings.get("tools")
    for tool in wanted if isinstance(wanted, list) and here.tools else ():
        if isinstance(tool, str) and tool.isidentifier() and tool not in here.tools:
            yield ImportGap(
                what=f"the tool {tool} of {path}",
                why="no plugin here provides it",
                hint="Install its plugin.",
            )


def _toml(data: bytes | None) -> dict[str, Any]:
    try:
        return read_toml((data or b"").decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}
