"""The program that runs in the build sandbox: ``python -I -S -B build_backend.py``. It calls a project's build
backend (PEP 517), whose code is not trusted, and writes the result below ``/workspace``.

It reads a JSON object from standard input: ``hook`` (``requires`` or ``wheel``), ``backend``, ``backend_path``
(relative to the project) and ``libraries`` (folders for ``sys.path``).
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
    """Call the backend and write its result. The exit code is 0 if the result was written."""
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
