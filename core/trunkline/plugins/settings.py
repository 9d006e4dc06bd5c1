"""The configuration that a plugin's hooks receive."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from trunkline.config import Config
from trunkline.contracts.plugins.extensions import ConfigSection

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class ScopedPluginSettings:
    """The ``PluginSettings`` of the plugin whose entry point is ``name`` and that declared these sections."""

    config: Config
    name: str
    declared: Sequence[ConfigSection]

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.config.home

    def section(self, kind: type[S]) -> S:
        """Return the section of this type: the platform's, otherwise the one that the plugin declared, otherwise
        ``[plugins.<name>]``.
        """
        settings = self.config.settings
        for name in settings.__struct_fields__:
            part = getattr(settings, name)
            if type(part) is kind:
                return part
        for section in self.declared:
            if section.type is kind:
                return self.config.section(section.table, section.name, kind)
        return self.config.section("plugins", self.name, kind)
