"""``plugins.toml`` in the home folder: the plugins that the program installed, and the manifests that were agreed to.

A pin records versions and hashes. The file contains no addresses and no paths, so it may be shared.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from trunkline._util.private_folders import make_private
from trunkline._util.regular_file import read_regular
from trunkline._util.toml import read_toml
from trunkline.errors import PluginError, StorageError
from trunkline.plugins.manifest import PluginManifest

FILE = "plugins.toml"
HEAD = """\
# Written by "trunkline plugins install" and "remove": what they brought, and what was agreed to.
# A plugin that asks for more than stands here is not loaded.

"""


class PinnedWheel(msgspec.Struct, frozen=True, kw_only=True):
    """An installed distribution: its version, and the SHA-256 of its wheel in hexadecimal."""

    version: str
    sha256: str


class Pin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An installed plugin. ``agreed`` is None when the plugin has no manifest and was installed nevertheless.

    ``source`` is the kind of its origin. ``brought`` are the distributions that were installed with it, by name.
    """

    version: str
    sha256: str
    source: Literal["index", "wheel", "folder"]
    agreed: PluginManifest | None = None
    brought: dict[str, PinnedWheel] = {}


def read_pins(home: Path) -> dict[str, Pin]:
    """Return the pins by distribution; none when there is no file.

    Raises:
        PluginError: the file cannot be read, so it is unknown what was agreed to.
    """
    file = home / FILE
    try:
        table = read_toml(read_regular(file).decode("utf-8"))
        return {name: _pin(name, entry) for name, entry in table.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise PluginError(
            f"{file} cannot be read ({error}), so the accepted manifests of plugins are unknown.",
            hint="Repair the file or restore it from a backup. Without it, the plugins' own manifests apply.",
        ) from error


def _pin(name: str, entry: object) -> Pin:
    """Convert an entry of the file. Raises ValueError with the plugin's name."""
    try:
        return msgspec.convert(entry, Pin)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from error


def write_pins(home: Path, pins: Mapping[str, Pin]) -> None:
    """Write the pins atomically. Raises StorageError."""
    import tomlkit

    file = home / FILE
    draft = file.with_suffix(".part")
    try:
        make_private(home)
        draft.write_text(
            HEAD + tomlkit.dumps(msgspec.to_builtins(dict(sorted(pins.items())))), encoding="utf-8"
        )
        draft.replace(file)
    except OSError as error:
        raise StorageError(
            f"{file} cannot be written: {error.strerror}.", hint="Free space or rights."
        ) from error
