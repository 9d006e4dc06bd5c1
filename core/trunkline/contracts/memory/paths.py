"""Whose a folder of memory is, and which path is meant. Rules on text only.

An actor's private layer lies in ``agents/<actor>/`` or ``blocks/<block>/agents/<actor>/``, and no other actor's tools
come to see it.
"""

import re

from trunkline.contracts.blocks.paths import BLOCK_FILE, BLOCKS_FOLDER, block_folder
from trunkline.contracts.memory.chunks import Layer
from trunkline.contracts.memory.initial_files import INITIAL_FILES
from trunkline_bus import key_of

OWNER = "owner"
"""The person whose memory it is: sees everything."""

AGENT = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_CHUNKS = re.compile(rf"(?:{BLOCKS_FOLDER}/[^/]+/)?(?:agents/[^/]+/)?chunks(?:/|$)", re.IGNORECASE)
_PRIVATE = re.compile(rf"(?:{BLOCKS_FOLDER}/[^/]+/)?agents(?:/([^/]+))?(?:/|$)", re.IGNORECASE)


def agent_folder(actor: str) -> str:
    """The name of an actor's private folder."""
    return actor if re.fullmatch(AGENT, actor) else key_of(actor)


def root_path(block: str, path: str) -> str:
    """A path from the memory root: one that begins with ``/`` is, every other is relative to the block's folder.

    The files that every memory begins with are named without the slash too, as people and texts name them
    (``AGENT.md``): in exactly these letters, so that no spelling of a path means one file here and another one to the
    policies. A block's own file of that name is reached from the root (``/blocks/main/AGENT.md``).
    """
    if path.startswith("/"):
        return path[1:]
    if path in INITIAL_FILES:
        return path
    return f"{block_folder(block)}/{path}" if path.strip("/") else block_folder(block)


def path_in_block(block: str, whole: str) -> str:
    """Return the name in a block of a path from the memory root: ``root_path`` makes the same path of it again."""
    name = whole.removeprefix(f"{block_folder(block)}/")
    return f"/{whole}" if name == whole or name in INITIAL_FILES else name


def layer_folder(layer: Layer, block: str, actor: str) -> str:
    """The folder of a layer of chunks, before its ``chunks/``."""
    parts = [block_folder(block)] if layer.startswith("project") else []
    parts += [f"agents/{agent_folder(actor)}"] if layer.endswith("agent") else []
    return "/".join(parts)


def is_owner_only(path: str) -> bool:
    """Report whether a path is the owner's alone to change, by whatever way: what agents may do (policies and
    each block's settings) and what was done. Preferences are choices and no limits, so agents may write them, by a
    call that shows a person their text; they do not come unseen with an archive (``is_preferences``).
    """
    parts = [part.casefold() for part in path.split("/") if part not in ("", ".")]
    settings = len(parts) == 3 and parts[0] in (BLOCKS_FOLDER, "archive") and parts[2] == BLOCK_FILE
    return settings or parts[:1] in (["policies"], ["audit"])


def is_preferences(path: str) -> bool:
    """Report whether a path is that of the owner's preferences: which models are asked, for how much."""
    return [part.casefold() for part in path.split("/") if part not in ("", ".")] == ["preferences.toml"]


def is_chunk_path(path: str) -> bool:
    """Report whether a path lies in or is a folder of chunks: these are made and changed as chunks, within their
    policy.
    """
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    return _CHUNKS.match(plain) is not None


def is_private_to_another(path: str, actor: str) -> bool:
    """Report whether a path of memory lies in the private folder of somebody else, or is the folder that holds them."""
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    found = _PRIVATE.match(plain)
    return found is not None and actor != OWNER and found[1] != agent_folder(actor)
