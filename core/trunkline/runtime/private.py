"""Whose a folder of memory is. Rules on text only.

An actor's private layer lies in ``agents/<actor>/`` or ``blocks/<block>/agents/<actor>/``, and no other actor's tools
come to see it.
"""

import re

from trunkline_bus import key_of

OWNER = "owner"
"""The person whose memory it is: sees everything."""

AGENT = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_CHUNKS = re.compile(r"(?:blocks/[^/]+/)?(?:agents/[^/]+/)?chunks(?:/|$)", re.IGNORECASE)
_PRIVATE = re.compile(r"(?:blocks/[^/]+/)?agents(?:/([^/]+))?(?:/|$)", re.IGNORECASE)


def agent_folder(actor: str) -> str:
    """The name of an actor's private folder."""
    return actor if re.fullmatch(AGENT, actor) else key_of(actor)


def is_chunk_place(path: str) -> bool:
    """Whether a path lies in or is a folder of chunks: these are made and changed as chunks, within their policy."""
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    return _CHUNKS.match(plain) is not None


def private_to_another(path: str, actor: str) -> bool:
    """Whether a path of memory lies in the private folder of somebody else, or is the folder that holds them."""
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    found = _PRIVATE.match(plain)
    return found is not None and actor != OWNER and found[1] != agent_folder(actor)
