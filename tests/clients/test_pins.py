"""What the guide says of tested clients is what the tests install."""

import json
import re
from pathlib import Path

from tests.clients.environments import LOCKS, NODE

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/how-to/openai-clients.md"
ROW = re.compile(r"^\| [^|]+ \| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)
HELPERS = ("schemathesis", "ws", "zod")
"""Packages that the tests need, and that are no clients."""


def test_the_guide_names_the_tested_releases() -> None:
    """Each client has the version that is pinned, and no client that is installed is missing."""
    told = set(ROW.findall(GUIDE.read_text()))
    node = set(json.loads((NODE / "package.json").read_text())["dependencies"].items())
    python = {_pinned(package, lock) for lock in LOCKS.glob("*.in") for package in lock.read_text().split()}
    python.add(_pinned("openai", ROOT / "requirements.in"))
    assert told == {(package, version) for package, version in node | python if package not in HELPERS}


def test_the_packages_for_node_are_pinned_by_hash_without_addresses() -> None:
    """npm accepts only the pinned content, from whichever registry is set."""
    text = (NODE / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    wanted = packages.pop("")["dependencies"]
    assert wanted == json.loads((NODE / "package.json").read_text())["dependencies"]
    assert "://" not in text and all("sha512-" in package["integrity"] for package in packages.values())


def _pinned(package: str, lock: Path) -> tuple[str, str]:
    name = package.partition("[")[0]
    found = re.search(rf"^{re.escape(name)}==(\S+)", lock.with_suffix(".txt").read_text(), re.MULTILINE)
    assert found is not None, (name, lock)
    return name, found[1]
