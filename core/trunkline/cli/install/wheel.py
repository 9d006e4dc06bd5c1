"""Reads the metadata and the file list of a wheel from its archive. No code of the wheel is run or imported."""

import configparser
import hashlib
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from trunkline.cli.install.distribution import (
    SCRIPTS,
    DistributionInfo,
    plugin_packages,
    scan_source,
    valid_name,
)
from trunkline.errors import PluginError
from trunkline.plugins.manifest import MANIFEST_FILE, PluginManifest, parse_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel(DistributionInfo):
    """A wheel. ``places`` are the paths of the files that an installation writes; ``info`` is its metadata folder."""

    file: Path
    places: tuple[Path, ...]
    info: str

    @property
    def sha256(self) -> str:
        """The SHA-256 of the archive."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    @property
    def site_paths(self) -> Iterator[tuple[str, ...]]:
        """The relative paths of all files that would be installed into a folder of importable modules, whatever their
        path in the archive.
        """
        sites = [Path(sysconfig.get_path(key)).resolve() for key in ("purelib", "platlib", "stdlib")]
        for place in self.places:
            lies = place.parent.resolve() / place.name
            site = next((site for site in sites if lies.is_relative_to(site)), None)
            if site is not None:
                yield lies.relative_to(site).parts


def read_wheel(file: Path) -> Wheel:
    """Read a wheel. Raises PluginError when the file is not a wheel or its manifest is not valid."""
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(file, archive)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, configparser.Error) as error:
        raise PluginError(f"{file.name} is not a valid wheel: {error}.", hint="Build it again.") from error


def _read(file: Path, archive: zipfile.ZipFile) -> Wheel:
    names = [name for name in archive.namelist() if not name.endswith("/")]
    (info,) = {part for name in names if (part := name.split("/")[0]).endswith(".dist-info")}
    metadata = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode())
    points = _points(archive, f"{info}/entry_points.txt", names)
    source = "\n".join(archive.read(name).decode(errors="replace") for name in names if name.endswith(".py"))
    name = valid_name(metadata["Name"], file.name)
    return Wheel(
        file=file,
        name=name,
        version=metadata["Version"],
        summary=metadata.get("Summary", ""),
        requires=tuple(metadata.get_all("Requires-Dist", ())),
        entry_points=points,
        places=tuple(_places(names, points)),
        info=info,
        manifest=_asks(archive, names, points, name),
        source_manifest=scan_source(source),
    )


def _points(archive: zipfile.ZipFile, file: str, names: list[str]) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names are case-sensitive
    if file in names:
        parser.read_string(archive.read(file).decode())
    return {group: dict(parser[group]) for group in parser.sections()}


def _asks(
    archive: zipfile.ZipFile, names: list[str], points: dict[str, dict[str, str]], owner: str
) -> PluginManifest | None:
    for package in sorted(plugin_packages(points)):
        if (manifest := f"{package}/{MANIFEST_FILE}") in names:
            return parse_manifest(archive.read(manifest).decode(errors="replace"), owner)
    return None


def _inside(name: str) -> tuple[str, PurePosixPath]:
    """Return the target of a file of the archive: a key of sysconfig's paths, and the path below it."""
    first, *rest = name.split("/")
    if first.endswith(".data") and len(rest) > 1:
        return ("include" if rest[0] == "headers" else rest[0]), PurePosixPath(*rest[1:])
    return "purelib", PurePosixPath(name)


def _places(names: list[str], points: dict[str, dict[str, str]]) -> list[Path]:
    paths = sysconfig.get_paths()
    found = [Path(paths[key]) / below for key, below in map(_inside, names)]
    scripts = [name for group in SCRIPTS for name in points.get(group, ())]
    return found + [Path(paths["scripts"]) / script for script in scripts]
