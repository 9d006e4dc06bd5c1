"""The lock-in checks of Personal AI, as far as the source shows them: nothing outside of an adapter, a channel or a
store depends on one vendor, client or store.

That a swap works is for the conformance tests: SWAP-1 to SWAP-3, ARCH-2, ARCH-3, FS-2 and FS-6.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .sources import ROOT, nodes

VENDOR_LIBRARIES = frozenset(
    {
        "anthropic",
        "boto3",
        "botocore",
        "discord",
        "google",
        "nio",
        "ollama",
        "openai",
        "slack_sdk",
        "telegram",
    }
)
"""The modules of vendors' libraries. Only the adapters and channels of these vendors may import them."""

HOST = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)+)")
RESERVED = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|org|net))?|invalid|test)$|^[0-9.]+$")
"""Hosts that are nobody's: the reserved names, and addresses."""


def own_files(*folders: str) -> list[Path]:
    """Return the source files below some folders, without tests and the scripted vendors of tests."""
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    return [file for file in files if not {"tests", "testing", "templates"} & set(file.parts)]


def member_names(folder: str) -> set[str]:
    """Return the names of the adapters or channels that the platform brings."""
    return {path.name for path in (ROOT / folder).iterdir() if (path / "pyproject.toml").is_file()}


def hosts(file: Path) -> Iterator[str]:
    """Yield the hosts of addresses in the texts of a module."""
    for node in nodes(file, ast.Constant):
        if isinstance(node.value, str):
            yield from (host for host in HOST.findall(node.value) if not RESERVED.search(host))


def test_no_vendors_library_is_imported_outside_of_its_adapter() -> None:
    """Removing an adapter removes the dependency on its vendor. Core, bus and plugins import no vendor's library."""
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in own_files("core", "bus", "plugins")
        for node in nodes(file, ast.Import, ast.ImportFrom)
        for module in imported(node)
        if module.partition(".")[0] in VENDOR_LIBRARIES
    ]
    assert not wrong


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the modules that a statement imports absolutely."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module)] if node.level == 0 else []


def test_the_package_requires_no_vendors_library() -> None:
    """What is installed without an adapter has no library of a vendor."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {
        re.split(r"[^a-z0-9_-]", line.lower())[0].replace("-", "_")
        for line in table["project"]["dependencies"]
    }
    assert names and not names & VENDOR_LIBRARIES


def test_the_core_treats_no_adapter_and_no_channel_specially() -> None:
    """No comparison names an adapter or a channel of a vendor. They differ by what they declare."""
    own = {"offline", "terminal", "web", "webhook"}  # no vendor's; commands and certificates name them
    special = (member_names("adapters") | member_names("channels")) - own
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for file in own_files("core", "bus")
        for node in nodes(file, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and part.value in special
    ]
    assert not wrong


def test_no_address_of_a_vendor_is_in_the_core() -> None:
    """The hosts that adapters and channels reach are named in their own packages only."""
    vendors = {host for file in own_files("adapters", "channels") for host in hosts(file)}
    assert vendors
    wrong = {(str(file.relative_to(ROOT)), host) for file in own_files("core", "bus") for host in hosts(file)}
    assert not {place for place in wrong if place[1] in vendors}


def test_the_store_of_memory_is_named_by_a_setting_only() -> None:
    """The core imports no store: it finds the one that ``[memory] store`` names by its entry point."""
    stores = {path.name for path in (ROOT / "plugins").glob("*store*/src/*") if path.is_dir()}
    assert stores
    wrong = [
        str(file.relative_to(ROOT))
        for file in own_files("core", "bus")
        for node in nodes(file, ast.Import, ast.ImportFrom)
        for module in imported(node)
        if module.partition(".")[0] in stores
    ]
    assert not wrong
