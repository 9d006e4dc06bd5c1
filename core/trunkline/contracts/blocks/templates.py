"""Block templates: what a new block may begin with, and the request that lists them."""

import msgspec

from trunkline.contracts.blocks.messages import BlockConfig
from trunkline_bus import Payload


class BlockTemplate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A template. ``summary`` tells people what it is for. A new block gets the settings of ``config`` in its
    ``block.toml``, and ``personality`` and ``roles`` in its ``monitor.md``. ``is_own`` is whether the file is in the
    home, not shipped. ``problem`` says why it cannot be used, "" if it can.
    """

    name: str
    summary: str = ""
    config: BlockConfig = BlockConfig()
    personality: str = ""
    roles: str = ""
    is_own: bool = False
    problem: str = ""


class ListBlockTemplates(Payload, frozen=True, kw_only=True, tag="blocks.templates.v1"):
    """Ask for all templates."""


class BlockTemplateList(Payload, frozen=True, kw_only=True, tag="blocks.templates-listed.v1"):
    """The templates, sorted by name."""

    templates: tuple[BlockTemplate, ...] = ()
