"""A program of its own, for the sandbox: ``python -I -S -B build_backend.py``. Calls the object that builds a project
(PEP 517), whose code nobody has to trust, and writes into ``/workspace`` what came of it.

Reads a JSON object from its input: ``hook`` (``requires`` or ``wheel``), ``backend``, ``backend_path`` (below the
project), ``libraries`` (folders for ``sys.path``).
"""

import importlib
import json
import os
import site
import sys

PROJECT = "/workspace/project"
WHEELS = "/workspace/wheels"
REQUIRES = "/workspace/requires.json"


def main() -> None:
    """Exits with 0 when the result is there."""
    description = json.load(sys.stdin)
    for folder in description["libraries"]:
        site.addsitedir(folder)
    sys.path[:0] = [os.path.join(PROJECT, path) for path in description["backend_path"]]  # noqa: PTH118 starts in milliseconds
    os.chdir(PROJECT)
    module, _, names = description["backend"].partition(":")
    backend = importlib.import_module(module)
    for name in names.split(".") if names else ():
        backend = getattr(backend, name)
    if description["hook"] == "wheel":
        backend.build_wheel(WHEELS)
        return
    wanted = getattr(backend, "get_requires_for_build_wheel", list)
    with open(REQUIRES, "w") as file:  # noqa: PTH123 as above
        json.dump(wanted(), file)


if __name__ == "__main__":
    main()
