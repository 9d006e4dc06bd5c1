"""Writes ``docs/reference`` and the architecture page from the code, and the template of a memory store from its
example. ``make docs`` runs it; ``--check`` writes nothing.

Each page is one module of ``generator`` with a function ``page()``. No page's text may be in here.
"""

import importlib
import sys
from pathlib import Path

from generator import store_template

DOCS = Path(__file__).parent

PAGES = {
    "adapters": "reference",
    "api": "reference",
    "architecture": "explanation",
    "cli": "reference",
    "configuration": "reference",
    "doctor": "reference",
    "errors": "reference",
    "events": "reference",
    "websocket": "reference",
    "hooks": "reference",
    "http": "reference",
    "messages": "reference",
    "subjects": "reference",
    "turn": "reference",
}
"""The pages, each with the folder of the documentation that it lies in."""


def written(name: str) -> str:
    """The text of a page as it should be."""
    source = f"docs/generator/{name}.py"
    mark = f"<!-- Made by `make docs` from the code ({source}). Do not edit it here. -->"
    text: str = importlib.import_module(f"generator.{name}").page()
    return f"{mark}\n{text.strip()}\n"


def main(arguments: list[str]) -> int:
    """Write every file, or with ``--check`` name those that differ. Returns the exit status."""
    pages = {DOCS / folder / f"{name}.md": written(name) for name, folder in PAGES.items()}
    stale = []
    for file, text in {**pages, **store_template.files()}.items():
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(file.relative_to(DOCS.parent))
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    verb = "out of date" if "--check" in arguments else "written"
    sys.stdout.writelines(f"{verb}: {file}\n" for file in stale)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
