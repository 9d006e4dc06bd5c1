"""Layers: which chunks an actor may read and where it may write. Names and rules; no I/O.

A block is the project and the memory root is the user, so a layer is a place before ``chunks/``: ``blocks/B/agents/A``,
``blocks/B``, ``agents/A``, or the root itself. Who acts is the agent.
"""

import re

import msgspec

from trunkline.contracts.blocks.messages import MemoryPolicy
from trunkline.contracts.blocks.paths import BLOCK_NAME, BLOCKS_FOLDER, is_block_name
from trunkline.contracts.memory.chunks import Layer
from trunkline.contracts.memory.paths import AGENT, OWNER, layer_folder
from trunkline_bus import Refusal

LAYERS: tuple[Layer, ...] = ("project_agent", "project_global", "user_agent", "user_global")
"""All layers, in the order of precedence."""

_PLACE = re.compile(rf"(?:{BLOCKS_FOLDER}/{BLOCK_NAME})?(?:(?:^|/)agents/{AGENT})?")


class LayerLocation(msgspec.Struct, frozen=True):
    """A layer, and the folder before its ``chunks/``."""

    layer: Layer
    folder: str


def layer_location(layer: Layer, block: str | None, actor: str) -> LayerLocation:
    """Where a layer lies for an actor in a block.

    Raises:
        Refusal: ``invalid_scope``: a project layer without a block, or a block that can have none.
    """
    if layer.startswith("project") and block is None:
        raise Refusal("invalid_scope", f"The layer {layer} belongs to a block; say which.")
    if block is not None and not is_block_name(block):
        raise Refusal("invalid_scope", f"{block[:80]!r} is not a block's name.")
    return LayerLocation(layer, layer_folder(layer, block or "", actor))


def is_no_layer(folder: str) -> bool:
    """Report whether no layer lies at a folder."""
    return _PLACE.fullmatch(folder) is None


def layer_of(folder: str) -> Layer:
    """The layer that a folder is."""
    project, agent = folder.startswith(f"{BLOCKS_FOLDER}/"), "agents/" in folder
    if project:
        return "project_agent" if agent else "project_global"
    return "user_agent" if agent else "user_global"


def readable_layers(policy: MemoryPolicy, block: str | None, actor: str) -> tuple[LayerLocation, ...]:
    """The places that an actor reads, the ones that count first in front. Empty when the policy turns memory off."""
    if not policy.enabled:
        return ()
    wanted: list[Layer] = [layer for layer in LAYERS if layer in policy.read_layers]
    return tuple(layer_location(one, block, actor) for one in wanted if block or one.startswith("user"))


def writable_layer(policy: MemoryPolicy, block: str | None, actor: str, layer: Layer | None) -> LayerLocation:
    """The place to write to: that of ``layer``, or of the first one that the policy allows.

    Raises:
        Refusal: ``forbidden``: the policy does not let it be written. ``invalid_scope``: as ``layer_location``.
    """
    if not policy.enabled:
        raise Refusal("forbidden", "The policy of this block turns remembering off.")
    if block is None:
        return layer_location(layer or "user_global", block, actor)
    wanted = layer or next(iter(policy.write_layers), None)
    owned = wanted == "user_global" and (policy.allow_user_global_write or actor == OWNER)
    if wanted is None or not (owned or (wanted in policy.write_layers and wanted != "user_global")):
        raise Refusal("forbidden", f"The policy of this block does not let the layer {wanted} be written.")
    return layer_location(wanted, block, actor)
