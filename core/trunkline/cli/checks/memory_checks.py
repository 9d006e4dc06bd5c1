"""Checks of memory: the settings, instructions and policies in it, and its search.

The checks read files as the workers do, so a file that a worker ignores is never reported as valid.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
import msgspec

from trunkline._util.regular_file import read_regular
from trunkline._util.toml import SettingsFileError, line_of, read_settings, read_toml
from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.config.problems import closest_matches
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, block_file_path
from trunkline.contracts.blocks.preferences import PREFERENCES, Preferences
from trunkline.contracts.memory.files import MemoryFile, MemoryListing
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.paths import root_path
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_SEARCH
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.contracts.policies.messages import Policy
from trunkline.home.root_reader import RootReader
from trunkline.policy import quota_day
from trunkline.runtime.owner_policies import (
    NEVER,
    POLICY_FOLDER,
    PolicyListing,
    classify_listing,
    parse_policy,
    unread_policy_file,
)
from trunkline.workers.tools.policy_lint import find_unknown_names, known_tools
from trunkline_bus import BusError, NoResponders, Refusal

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

SEARCH_SECONDS = 4.0


async def memory_settings(context: CheckContext) -> HealthResult:
    """memory.settings: `preferences.toml` and each `block.toml` in memory can be read and have valid values.
    Each table of the preferences has the name of a plugin."""
    wrong, count = await _with_memory(context, _settings, (list[str](), 0))
    if not wrong and (unread := _unread_tables(context, context.home.memory / PREFERENCES)):
        return warning(" ".join(unread), "Correct the name of the plugin, or remove the table.")
    if not wrong:
        return ok(f"The preferences can be read, and so can the settings of all blocks ({count})")
    hint = (
        "Correct the file. Until then, a block with an invalid block.toml accepts no messages. "
        "With invalid preferences, no block does."
    )
    return failure(" ".join(wrong), hint)


def _unread_tables(context: CheckContext, file: Path) -> list[str]:
    """Return the tables of the preferences that no plugin reads. A plugin's table has the plugin's name."""
    if context.plugins is None or not file.exists():
        return []
    text = read_regular(file).decode("utf-8")
    known = [field.encode_name for field in msgspec.structs.fields(Preferences)]
    known += [state.name for state in context.plugins.report.plugins]
    tables = [name for name, value in read_toml(text).items() if isinstance(value, dict)]
    return [
        f"{file}{line_of(text, name)}: nothing reads [{name}]."
        + (f" Did you mean [{meant[0]}]?" if (meant := closest_matches(name, known)) else "")
        for name in tables
        if name not in known
    ]


def _settings(memory: RootReader) -> tuple[list[str], int]:
    """Return the problems of settings files, and the number of blocks that have such a file."""
    wrong: list[str] = []
    _read(memory, PREFERENCES, Preferences, wrong)
    own = [_read(memory, path, BlockConfig, wrong) for path in _block_files(memory, wrong)]
    return wrong, len([one for one in own if one is not None])


async def memory_instructions(context: CheckContext) -> HealthResult | None:
    """memory.instructions: each file with instructions for agents, such as `AGENT.md` and `identity/SOUL.md`, is
    readable text. While one is not, no model is called."""
    if context.plugins is None:
        return None
    sources = [owned.item for owned in context.plugins.context_sources()]
    names = tuple(name for source in sources for name in getattr(source, "files", ()))
    wrong = await _with_memory(context, lambda memory: _unread_texts(memory, names), list[str]())
    if wrong:
        return failure(
            " ".join(wrong),
            "Rewrite it as UTF-8 text, not as a link. Until then no model is called.",
        )
    return ok("All files with instructions can be read")


def _unread_texts(memory: RootReader, names: Sequence[str]) -> list[str]:
    """Return the reasons why existing files cannot be read."""
    wrong: dict[str, None] = {}
    blocks = [Path(path).parent.name for path in _block_files(memory, [])]
    for path in {root_path(block, name): None for block in blocks or ["main"] for name in names}:
        try:
            memory.text(path)
        except Refusal as refusal:
            if refusal.code != "not_found":
                wrong[refusal.message] = None
    return list(wrong)


async def memory_policies(context: CheckContext) -> HealthResult:
    """memory.policies: each file of `policies/` in memory is a valid policy. While one is not, no tool may be used. The
    blocks and tools that the policies name exist."""
    found = await _with_memory(context, _policies, PolicyFiles())
    if found.wrong:
        return warning(
            "; ".join(found.wrong), "Correct or delete the file: until then no agent may use any tool."
        )
    if found.others:
        hint = f"A rule is a file NAME.json in the folder {POLICY_FOLDER}. Rename the file, or move it elsewhere."
        return warning(f"These files are ignored and are not rules: {', '.join(found.others)}", hint)
    if unknown := await _unknown(context, found.policies):
        return warning(
            "; ".join(unknown),
            "Correct the rule if the name is wrong; keep it if the block or tool will be added later.",
        )
    return ok(f"All policies can be read ({len(found.policies)})")


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """The policies, the problems of files, and the files of the folder that are not policies."""

    policies: list[Policy] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def _policies(memory: RootReader) -> PolicyFiles:
    lying = _list_policies(memory)
    found = PolicyFiles(others=[*lying.others, *_near_misses(memory)])
    for file in (*lying.unread, *(_file(memory, path) for path in lying.paths)):
        try:
            policy = parse_policy(file)
            quota_day(policy.conditions, datetime.now(UTC))
            found.policies.append(policy)
        except SettingsFileError as error:
            found.wrong.append(str(error))
        except ValueError as error:
            found.wrong.append(f"{file.path}: {error}")
    return found


def _list_policies(memory: RootReader) -> PolicyListing:
    """List the folder of policies, classified as by the tools worker."""
    try:
        entries = tuple(memory.entries(POLICY_FOLDER, recursive=True))
        return classify_listing(MemoryListing(entries=entries, unread=tuple(memory.unread(POLICY_FOLDER))))
    except Refusal as refusal:
        if refusal.code == "not_found":
            return PolicyListing()
        return PolicyListing(unread=(unread_policy_file(POLICY_FOLDER, refusal.message),))


def _near_misses(memory: RootReader) -> Iterator[str]:
    """Return the folders whose names differ from the policy folder's only in case."""
    for entry in memory.entries("", recursive=False):
        if entry.path != POLICY_FOLDER and entry.path.casefold() == POLICY_FOLDER:
            yield f"{entry.path}/"


def _file(memory: RootReader, path: str) -> MemoryFile:
    try:
        return MemoryFile(path=path, content=memory.text(path), hash="", modified_at=NEVER)
    except Refusal as refusal:
        return unread_policy_file(path, refusal.message)


async def _unknown(context: CheckContext, policies: Sequence[Policy]) -> list[str]:
    """Return the names in lasting policies that no block and no tool has. Policies that are bound to one call or one
    conversation (those of approvals and planning) are not checked."""
    if context.plugins is None:
        return []
    blocks = await _with_memory(context, lambda memory: _block_names(memory, []), list[str]())
    tools = await known_tools(context.bus, blocks, context.plugins)
    return [
        f"{POLICY_FOLDER}/{policy.id}.json: {one.message}"
        for policy in policies
        if policy.conditions.shape is None and policy.conditions.conversation is None
        for one in find_unknown_names(policy, blocks, tools)
    ]


async def memory_tool_names(context: CheckContext) -> HealthResult | None:
    """memory.tool_names: rules and the `tools` of blocks use the tools' own names. A rule that uses an alias can deny a
    call or require approval, but it permits nothing."""
    if context.plugins is None:
        return None
    wrong = [
        f"{file}: {name} is an alias of {', '.join(meant)}"
        for file, name in await _with_memory(context, _named_tools, list[tuple[str, str]]())
        if (meant := context.plugins.tools_called(name))
    ]
    if wrong:
        return warning("; ".join(wrong), "Use the tools' own names.")
    return ok("Every rule and every block uses the tools' own names")


def _named_tools(memory: RootReader) -> list[tuple[str, str]]:
    """Yield each name of a tool in the files of policies and blocks. Other checks report unreadable files."""
    said = [
        (f"{POLICY_FOLDER}/{policy.id}.json", policy.resource.rpartition(":")[2])
        for policy in _policies(memory).policies
        if policy.resource.startswith("tool:")
    ]
    for path in _block_files(memory, []):
        own = _read(memory, path, BlockConfig, [])
        said += [(path, name) for name in (own.tools if own is not None else ()) or ()]
    return said


async def _with_memory(context: CheckContext, read: Callable[[RootReader], T], otherwise: T) -> T:
    """Return the result of ``read``, called with memory in a thread; ``otherwise`` if there is no memory yet."""
    return await anyio.to_thread.run_sync(_look, context.home.memory, read, otherwise)


def _look(root: Path, read: Callable[[RootReader], T], otherwise: T) -> T:
    try:
        memory = RootReader(root)
    except FileNotFoundError:
        return otherwise
    with closing(memory):
        return read(memory)


def _block_names(memory: RootReader, wrong: list[str]) -> list[str]:
    """Return the names of the blocks. The reason for an unreadable folder is added to ``wrong``."""
    try:
        entries = memory.entries(BLOCKS_FOLDER, recursive=False)
    except Refusal as refusal:
        if refusal.code != "not_found":
            wrong.append(refusal.message)
        return []
    return [entry.path.rpartition("/")[2] for entry in entries if entry.kind == "folder"]


def _block_files(memory: RootReader, wrong: list[str]) -> list[str]:
    """Return the paths of the blocks' settings files. Links to folders are included, although the workers do not
    follow them.
    """
    links = [path.name for path in memory.root.glob(f"{BLOCKS_FOLDER}/*") if path.is_symlink()]
    return sorted(block_file_path(name) for name in (*_block_names(memory, wrong), *links))


def _read(memory: RootReader, path: str, kind: type[S], wrong: list[str]) -> S | None:
    """Return the content of a settings file. None where it is absent or cannot be read; the reason is added to
    ``wrong``."""
    try:
        return read_settings(path, memory.text(path), kind)
    except Refusal as refusal:
        if refusal.code != "not_found":
            wrong.append(refusal.message)
    except SettingsFileError as error:
        wrong.append(str(error))
    return None


async def memory_search(context: CheckContext) -> HealthResult | None:
    """memory.search: a search of memory succeeds, and the embedder works."""
    if context.bus is None:
        return None
    question = SearchMemory(query="memory", kinds=("file", "turn", "chunk"), limit=1)
    try:
        await context.bus.call(MEMORY_SEARCH, question, timeout=SEARCH_SECONDS)
        stats = await context.bus.call(MEMORY_INDEX_STATS, GetIndexStats(), timeout=SEARCH_SECONDS)
    except NoResponders:
        return None  # workers.alive reports it
    except BusError as error:
        return failure(
            f"A search of memory fails: {error}.",
            "Run: trunkline memory reindex. If that fails, stop the platform and delete "
            f"{context.home.cache / 'memory.db'}: memory rebuilds it.",
        )
    vectors = stats.vectors
    if vectors is not None and vectors.fault:
        return warning(
            f"The embedder {vectors.embedder} fails, so search uses words only: {vectors.fault}",
            "Check that it can be reached. If its model has changed, run: trunkline memory reindex --vectors.",
        )
    return ok(f"Search works; its index has {stats.passages} passages")
