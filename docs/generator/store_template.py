"""The modules of the template of ``plugins new store``: those of the example ``trunkline-onefile``, renamed.

The example is the source: its tests run the contract suite for stores.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/trunkline-onefile/src/trunkline_onefile"
PROJECT = ROOT / "core/trunkline/cli/templates/store"

MODULES = ("conversation", "records", "state", "store")
"""The modules that do not depend on where the records are kept. The template has its own ``__init__``."""


def files() -> dict[Path, str]:
    """The text of each module as it should be."""
    folder = PROJECT / "src/trunkline_sample"
    return {folder / f"{module}.py": _renamed(module) for module in MODULES}


def _renamed(module: str) -> str:
    """Return the module of the example in the template's package. Ruff groups its imports as in a project of its own,
    in which Trunkline is a third party.
    """
    text = (EXAMPLE / f"{module}.py").read_text(encoding="utf-8").replace("onefile", "sample")
    ruff = Path(sys.executable).with_name("ruff")
    name = f"src/trunkline_sample/{module}.py"
    command = [
        ruff,
        "check",
        "--quiet",
        "--no-cache",
        "--select",
        "I",
        "--fix",
        "--stdin-filename",
        name,
        "-",
    ]
    done = subprocess.run(command, cwd=PROJECT, input=text, capture_output=True, encoding="utf-8", check=True)
    return done.stdout
