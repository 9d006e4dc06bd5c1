"""Creates the files of a new plugin: a copy of ``templates/<kind>`` in which "sample" is replaced by the new name.

The templates are complete working packages, so the platform's tests run them.
"""

import re
from collections.abc import Iterator
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, get_args

from trunkline.errors import PluginError, StorageError

PluginKind = Literal["tool", "channel", "adapter", "store"]
KINDS: tuple[PluginKind, ...] = get_args(PluginKind)

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 40
CACHES = ("__pycache__", ".")
"""The prefixes of folders that running a template creates."""


def write_plugin(kind: PluginKind, name: str, folder: Path) -> Path:
    """Write the package ``trunkline-<name>`` into ``folder`` and return its path.

    Raises:
        PluginError: the name is not valid for a package.
        StorageError: the target exists, or the folder cannot be written.
    """
    if NAME.fullmatch(name) is None or len(name) > LONGEST:
        raise PluginError(
            f"{name!r} is not a valid name for a plugin.",
            hint=f"Use lower-case words with dashes, {LONGEST} letters at most: my-{kind}.",
        )
    if any(True for _ in metadata.Distribution.discover(name=f"trunkline-{name}")):
        raise PluginError(f"There is a plugin trunkline-{name} already.", hint="Choose another name.")
    root = folder / f"trunkline-{name}"
    if root.exists():
        raise StorageError(f"{root} exists already.", hint="Choose another name or folder.")
    try:
        for path, text in _files(files("trunkline.cli") / "templates" / kind):
            target = root / _named(path, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_named(text, name), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{root} cannot be written: {error.strerror}.", hint="Choose another folder."
        ) from error
    return root


def _files(folder: Traversable, below: str = "") -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir() and not item.name.startswith(CACHES):
            yield from _files(item, f"{below}{item.name}/")
        elif item.is_file():
            yield below + item.name, item.read_text(encoding="utf-8")


def _named(text: str, name: str) -> str:
    """Return the text of a template with the plugin's name in its three spellings: as a class, as a module, and as a
    title.
    """
    module = name.replace("-", "_")
    text = text.replace("Sample", "".join(map(str.capitalize, name.split("-"))))
    text = re.sub(r"(?<=_)sample|sample(?=_)", module, text)
    return text.replace("sample", name)
