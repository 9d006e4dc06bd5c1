"""The layers of chunks: which layers an actor may read, and to which it may write. No I/O.

A project is a block, the user is the memory root, and an agent is an actor. A layer is the part of a chunk's path
before ``chunks/``: ``blocks/B/agents/A``, ``blocks/B``, ``agents/A``, or the root itself.
"""

import re

import msgspec

from trunkline.contracts.actors import OWNER
from trunkline.contracts.blocks.messages import MemoryPolicy
from trunkline.contracts.blocks.paths import BLOCK_NAME, BLOCKS_FOLDER, is_block_name
from trunkline.contracts.memory.chunk import Layer
from trunkline.contracts.memory.paths import AGENT, layer_folder
from trunkline_bus import Refusal

LAYERS: tuple[Layer, ...] = ("project_agent", "project_global", "user_agent", "user_global")
"""All layers, in the order of precedence."""

_PLACE = re.compile(rf"(?:{BLOCKS_FOLDER}/{BLOCK_NAME})?(?:(?:^|/)agents/{AGENT})?")


class LayerLocation(msgspec.Struct, frozen=True):
    """A layer, and the folder that contains its ``chunks/``."""

    layer: Layer
    folder: str


def layer_location(layer: Layer, block: str | None, actor: str) -> LayerLocation:
    """Return the location of a layer for an actor in a block.

    Raises:
        Refusal: ``invalid_scope``: a project layer without a block, or with an invalid block name.
    """
    if layer.startswith("project") and block is None:
        raise Refusal("invalid_scope", f"The layer {layer} belongs to a block; say which.")
    if block is not None and not is_block_name(block):
        raise Refusal("invalid_scope", f"{block[:80]!r} is not a block's name.")
    return LayerLocation(layer, layer_folder(layer, block or "", actor))


def is_no_layer(folder: str) -> bool:
    """Report whether a folder is not the folder of a layer."""
    return _PLACE.fullmatch(folder) is None


def layer_of(folder: str) -> Layer:
    """Return the layer of a folder."""
    project, agent = folder.startswith(f"{BLOCKS_FOLDER}/"), "agents/" in folder
    if project:
        return "project_agent" if agent else "project_global"
    return "user_agent" if agent else "user_global"


def readable_layers(policy: MemoryPolicy, block: str | None, actor: str) -> tuple[LayerLocation, ...]:
    """Return the layers that an actor may read, in the order of precedence. The result is empty if the policy turns
    memory off.
    """
    if not policy.enabled:
        return ()
    wanted: list[Layer] = [layer for layer in LAYERS if layer in policy.read_layers]
    return tuple(layer_location(one, block, actor) for one in wanted if block or one.startswith("user"))


def writable_layer(policy: MemoryPolicy, block: str | None, actor: str, layer: Layer | None) -> LayerLocation:
    """Return the layer to write to: ``layer``, or the first layer that the policy allows.

    Raises:
        Refusal: ``forbidden``: the policy does not allow to write to the layer. ``invalid_scope``: as
            ``layer_location``.
    """
    if not policy.enabled:
        raise Refusal("forbidden", "The policy of this block turns remembering off.")
    if block is None:
        return layer_location(layer or "user_global", block, actor)
    wanted = layer or next(iter(policy.write_layers), None)
    owned = wanted == "user_global" and (policy.allow_user_global_write or actor == OWNER)
    if wanted is None or not (owned or (wanted in policy.write_layers and wanted != "user_global")):
        raise Refusal("forbidden", f"The policy of this block does not allow writes to the layer {wanted}.")
    return layer_location(wanted, block, actor)
