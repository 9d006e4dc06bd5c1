"""Block templates: files ``NAME.toml``, shipped beside this module and the owner's own in the home.

A template is a proposal of a stranger as soon as it was copied from elsewhere. So it may never permit more than the
platform permits to a block without settings, and a file that is not as expected is refused as a whole.
"""

import errno
import os
import stat
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec
from anyio.to_thread import run_sync

from trunkline._util.toml import MAX_CHARACTERS, SettingsFileError, read_settings
from trunkline.contracts.blocks.messages import BlockConfig, MemoryPolicy
from trunkline.contracts.blocks.paths import BLOCK_NAME_RULE, is_block_name
from trunkline.contracts.blocks.templates import BlockTemplate
from trunkline.contracts.policies.messages import ApprovalMode, PermissionTable
from trunkline.policy.presets import DEFAULT_TABLE, SCOPES
from trunkline.workers.gateway.errors import InvalidField

SUFFIX = ".toml"

APPROVALS: tuple[ApprovalMode, ...] = ("all", "some", "none")
"""The modes of approval from strict to lax."""


class TemplateFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a file. ``block`` has the keys of ``block.toml``."""

    summary: str
    personality: str = ""
    roles: str = ""
    block: BlockConfig = BlockConfig()


class BlockTemplates:
    """Reads the templates anew for each request, so that a new file needs no restart. ``folder`` is the owner's; a
    template there takes the place of a shipped one of its name. ``defaults`` are the permissions of all blocks.
    """

    def __init__(self, folder: Path, defaults: PermissionTable) -> None:
        self._folder = folder
        self._defaults = defaults.with_defaults(DEFAULT_TABLE)

    async def list_templates(self) -> tuple[BlockTemplate, ...]:
        """Return all templates, those with a problem too, sorted by name."""
        return await run_sync(self._read_all)

    async def require(self, name: str) -> BlockTemplate:
        """Return a template. Raises InvalidField if there is none, or if it cannot be used."""
        found = {one.name: one for one in await self.list_templates()}
        if name not in found:
            usable = ", ".join(one.name for one in found.values() if not one.problem)
            raise InvalidField(("template",), f"There is no template {name!r}. There are {usable}.")
        if problem := found[name].problem:
            raise InvalidField(("template",), f"The template {name!r} cannot be used. {problem}")
        return found[name]

    def _read_all(self) -> tuple[BlockTemplate, ...]:
        found = {one.name: one for one in (*self._shipped(), *self._own())}
        return tuple(found[name] for name in sorted(found))

    def _shipped(self) -> Iterator[BlockTemplate]:
        for file in _shipped_files():
            yield self._parse(file.name, file.read_text(encoding="utf-8"), is_own=False)

    def _own(self) -> Iterator[BlockTemplate]:
        try:
            names = sorted(path.name for path in self._folder.iterdir())
        except OSError:
            return
        for file in (one for one in names if one.endswith(SUFFIX) and not one.startswith(".")):
            try:
                text = _read_own(self._folder / file)
            except (OSError, ValueError) as error:
                yield _broken(file, f"{file} cannot be read: {_reason(error)}.", is_own=True)
            else:
                yield self._parse(file, text, is_own=True)

    def _parse(self, file: str, text: str, *, is_own: bool) -> BlockTemplate:
        """Return the template of a file. Whatever is wrong with it is its problem, and nothing of it is used."""
        name = file.removesuffix(SUFFIX)
        if not is_block_name(name):
            return _broken(file, f"{file}: The name of a template is {BLOCK_NAME_RULE}.", is_own=is_own)
        try:
            read = read_settings(file, text, TemplateFile)
        except SettingsFileError as error:
            return _broken(file, str(error), is_own=is_own)
        if wider := wider_setting(read.block, self._defaults):
            sentence = f"{file}: block.{wider} permits more than the permissions of all blocks. Remove it."
            return _broken(file, sentence, is_own=is_own)
        return BlockTemplate(
            name=name,
            summary=" ".join(read.summary.split()),
            config=read.block,
            personality=read.personality.strip(),
            roles=read.roles.strip(),
            is_own=is_own,
        )


def wider_setting(config: BlockConfig, defaults: PermissionTable) -> str:
    """Return the first setting that permits a block more than the defaults do; "" if none does."""
    table, memory, usual = config.permissions, config.memory, MemoryPolicy()
    longest = defaults.max_timeout
    wider = {
        "permissions.scope": table.scope is not None
        and SCOPES.index(table.scope) > SCOPES.index(defaults.scope or SCOPES[0]),
        "permissions.approvals": table.approvals is not None
        and APPROVALS.index(table.approvals) > APPROVALS.index(defaults.approvals or APPROVALS[0]),
        "permissions.allow_shell": table.allow_shell is True and defaults.allow_shell is not True,
        "permissions.allow_network": table.allow_network is True and defaults.allow_network is not True,
        "permissions.max_timeout": table.max_timeout is not None
        and (longest is None or table.max_timeout > longest),
        "permissions.plan": table.plan is False and defaults.plan is True,
        "memory.read_layers": not set(memory.read_layers) <= set(usual.read_layers),
        "memory.write_layers": not set(memory.write_layers) <= set(usual.write_layers),
        "memory.allow_user_global_write": memory.allow_user_global_write,
    }
    return next((name for name, is_wider in wider.items() if is_wider), "")


def with_template(template: BlockTemplate, config: BlockConfig) -> BlockConfig:
    """Return the settings of a new block: the template's, and over them those that ``config`` says."""
    tables = [msgspec.to_builtins(one) for one in (template.config, config)]
    merged = {**tables[0], **tables[1]}
    for name in merged:
        parts = [table[name] for table in tables if isinstance(table.get(name), dict)]
        if len(parts) == len(tables):
            merged[name] = {**parts[0], **parts[1]}
    return msgspec.convert(merged, BlockConfig)


def _shipped_files() -> list[Traversable]:
    folder = files("trunkline.workers.gateway").joinpath("templates")
    return [one for one in folder.iterdir() if one.name.endswith(SUFFIX)]


def _read_own(path: Path) -> str:
    """Return the text of a regular file. A link could show a file from elsewhere, and a pipe would never end. Raises
    OSError and ValueError."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(4 * MAX_CHARACTERS + 1)
    if len(data) > 4 * MAX_CHARACTERS:
        raise ValueError("it is too large")
    return data.decode()


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "it is a symbolic link"
    return (error.strerror or "unknown reason") if isinstance(error, OSError) else str(error)


def _broken(file: str, problem: str, *, is_own: bool) -> BlockTemplate:
    return BlockTemplate(name=file.removesuffix(SUFFIX), is_own=is_own, problem=problem)
