"""The build of the app: its packages, its types, its size, and what happens where it cannot be built."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from trunkline.workers.gateway.http.openapi.openapi_document import openapi_document
from trunkline_web_app.plugin import FOLDER

MEMBER = Path(__file__).parents[1]
LIGHTHOUSE = MEMBER.parents[1] / "benchmarks/lighthouse"
WORK = Path(sys.prefix, "web-app")
FIRST_SCREEN = 200_000
"""The largest number of compressed bytes that are loaded before the first message can be typed."""


@pytest.mark.parametrize("folder", [MEMBER / "app", LIGHTHOUSE], ids=["app", "lighthouse"])
def test_packages_are_pinned_without_addresses(folder: Path) -> None:
    """Each package of the lock has a hash, no address, and no script that runs when it is installed."""
    text = (folder / "package-lock.json").read_text()
    packages = {name: package for name, package in json.loads(text)["packages"].items() if name}
    assert len(packages) > 50
    assert [
        name for name, package in packages.items() if not package.get("integrity", "").startswith("sha512-")
    ] == []
    assert "://" not in text
    assert "ignore-scripts=true" in (folder / ".npmrc").read_text()
    wanted = json.loads((folder / "package.json").read_text())
    versions = {**wanted["dependencies"], **wanted.get("devDependencies", {})}
    assert [name for name, version in versions.items() if not re.fullmatch(r"\d[\w.-]*", version)] == []


def test_german_buttons_that_allow_say_so() -> None:
    """Beside "Ablehnen", the label "Immer" alone could be read as denying always."""
    german = (MEMBER / "app/src/i18n/de.ts").read_text()
    labels = dict(re.findall(r'"approval\.(yes|conversation|always|no)": "(.*)"', german))
    assert [name for name, label in labels.items() if "erlauben" in label.lower()] == [
        "yes",
        "conversation",
        "always",
    ]


def build_app(*options: str, member: Path = MEMBER, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the build with these options and environment variables."""
    argv = [sys.executable, str(member / "build_app.py"), *options]
    return subprocess.run(
        argv, env={**os.environ, **environ}, capture_output=True, text=True, timeout=560, check=False
    )


def built_site() -> Path:
    site = FOLDER / "site"
    if not (site / "index.html").is_file():
        pytest.skip("the web app is not built (scripts/setup app says why)")
    return site


def test_the_first_screen_is_small() -> None:
    """What the page loads at first is less than 200 kB compressed, and all of it is the app's own."""
    site = built_site()
    page = (site / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert all(name.startswith("/") and not name.startswith("//") for name in named)
    sizes = {name: len(gzip.compress((site / name[1:]).read_bytes(), 9)) for name in named}
    assert sum(sizes.values()) < FIRST_SCREEN, sizes
    assert "<style" not in page and not re.search(r"<script(?![^>]*\bsrc=)", page)


@pytest.mark.timeout(600)  # two compilers and a linter need minutes beside other tests on a slow machine
def test_the_app_fits_the_api_of_this_checkout(tmp_path: Path) -> None:
    """The app compiles against types that are generated from the gateway's OpenAPI document, and eslint finds
    nothing."""
    if not (WORK / "node_modules/typescript").is_dir():
        pytest.skip("the packages of the web app are not there (scripts/setup test says why)")
    document = tmp_path / "openapi.json"
    document.write_bytes(msgspec.json.encode(openapi_document()))
    done = build_app("--check", str(document))
    assert done.returncode == 0, done.stderr


def test_without_a_registry_the_page_says_so(tmp_path: Path) -> None:
    """Where npm reaches nothing, the build ends with a sentence, and the page at ``/`` says how to build."""
    member = tmp_path / "web"
    shutil.copytree(
        MEMBER, member, ignore=shutil.ignore_patterns("node_modules", "site", "tests", "__pycache__")
    )
    unreachable = {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_fetch_retries": "0"}
    unreachable |= {"npm_config_cache": str(tmp_path / "cache")}
    done = build_app("--work", str(tmp_path / "work"), member=member, **unreachable)
    assert done.returncode == 1
    assert "The web app is not built: " in done.stderr and "scripts/setup app" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (member / "src/trunkline_web_app/site").exists()
    page = (member / "src/trunkline_web_app/unbuilt/index.html").read_text()
    assert "scripts/setup app" in page and "<script" not in page
