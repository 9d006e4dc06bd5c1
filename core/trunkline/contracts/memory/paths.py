"""Rules about paths of memory: which file a path names, and who owns a folder. No I/O.

An actor's private layer is in ``agents/<actor>/`` or ``blocks/<block>/agents/<actor>/``. No other actor's tools can
read it.
"""

import re

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.identity import IDENTITY_FOLDER
from trunkline.contracts.blocks.paths import BLOCK_FILE, BLOCKS_FOLDER, block_folder
from trunkline.contracts.memory.chunk import Layer
from trunkline.contracts.memory.initial_files import INITIAL_FILES
from trunkline.contracts.schedules.paths import SCHEDULES_FOLDER
from trunkline_bus import key_of

AUDIT_FOLDER, COST_FOLDER, BUDGET_FOLDER = "audit", "costs", "budgets"
"""The folders of the audit log, of the cost ledger, and of the events of budgets."""

WORKFLOW_FOLDER = "workflows"
"""The folder of a block with the workflows that the owner installed, and the records of their runs."""

LOG_FOLDERS = (AUDIT_FOLDER, COST_FOLDER, BUDGET_FOLDER)
"""Folders that only Trunkline writes, one line for each event. Nobody remembered their text, so no search returns
it."""

AGENT = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_CHUNKS = re.compile(rf"(?:{BLOCKS_FOLDER}/[^/]+/)?(?:agents/[^/]+/)?chunks(?:/|$)", re.IGNORECASE)
_PRIVATE = re.compile(rf"(?:{BLOCKS_FOLDER}/[^/]+/)?agents(?:/([^/]+))?(?:/|$)", re.IGNORECASE)


def agent_folder(actor: str) -> str:
    """Return the name of an actor's private folder."""
    return actor if re.fullmatch(AGENT, actor) else key_of(actor)


def root_path(block: str, path: str) -> str:
    """Return the path from the memory root. A path with a leading ``/`` is relative to the root; any other path is
    relative to the block's folder.

    The initial files of memory (``AGENT.md``) are relative to the root without the slash too, because people and texts
    name them so. Only the exact spelling counts, so that no spelling of a path means one file here and another file to
    the policies. A block's own file of that name has the path ``/blocks/main/AGENT.md``.
    """
    if path.startswith("/"):
        return path[1:]
    if path in INITIAL_FILES:
        return path
    return f"{block_folder(block)}/{path}" if path.strip("/") else block_folder(block)


def path_in_block(block: str, whole: str) -> str:
    """Return the name in a block of a path from the memory root. ``root_path`` reverses this function."""
    name = whole.removeprefix(f"{block_folder(block)}/")
    return f"/{whole}" if name == whole or name in INITIAL_FILES else name


def layer_folder(layer: Layer, block: str, actor: str) -> str:
    """Return the folder of a layer, which is the part of a chunk's path before ``chunks/``."""
    parts = [block_folder(block)] if layer.startswith("project") else []
    parts += [f"agents/{agent_folder(actor)}"] if layer.endswith("agent") else []
    return "/".join(parts)


def is_owner_only(path: str) -> bool:
    """Report whether only the owner may change a path, in any way: who may enter (identities), the permissions of
    agents (policies and each block's settings), what runs in the owner's name (workflows and schedules), and the logs
    that Trunkline writes.

    The preferences are not owner-only, because they are choices and not limits. Agents may write them by a call that
    shows a person the text. An import does not change them without notice (``is_preferences``).
    """
    parts = [part.casefold() for part in path.split("/") if part not in ("", ".")]
    of_block = parts[2:] if parts and parts[0] in (BLOCKS_FOLDER, "archive") else []
    settings = of_block == [BLOCK_FILE] or of_block[:1] in ([WORKFLOW_FOLDER], [SCHEDULES_FOLDER])
    return settings or (bool(parts) and parts[0] in (IDENTITY_FOLDER, "policies", *LOG_FOLDERS))


def is_log_path(path: str) -> bool:
    """Report whether a path is a file of a log that Trunkline writes (``LOG_FOLDERS``)."""
    return path.startswith(tuple(f"{folder}/" for folder in LOG_FOLDERS))


def is_preferences(path: str) -> bool:
    """Report whether a path is the owner's preferences, which choose the models and their cost."""
    return [part.casefold() for part in path.split("/") if part not in ("", ".")] == ["preferences.toml"]


def is_chunk_path(path: str) -> bool:
    """Report whether a path is a folder of chunks or in one. Such files are created and changed by chunk operations
    only, within their policy.
    """
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    return _CHUNKS.match(plain) is not None


def is_private_to_another(path: str, actor: str) -> bool:
    """Report whether a path is in the private folder of another actor, or is the folder of all private folders."""
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    found = _PRIVATE.match(plain)
    return found is not None and actor != OWNER and found[1] != agent_folder(actor)
