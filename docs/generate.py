"""Writes ``docs/reference`` from the code. ``make docs`` runs it; ``--check`` only says which pages are out of date.

Each page is one module of ``generator`` with a function ``page()``. No page's text may be in here.
"""

import importlib
import sys
from pathlib import Path

REFERENCE = Path(__file__).parent / "reference"

PAGES = (
    "api",
    "cli",
    "configuration",
    "doctor",
    "errors",
    "events",
    "hooks",
    "http",
    "messages",
    "subjects",
    "turn",
)


def written(name: str) -> str:
    """The text of a page as it should be."""
    source = f"docs/generator/{name}.py"
    mark = f"<!-- Made by `make docs` from the code ({source}). Do not edit it here. -->"
    text: str = importlib.import_module(f"generator.{name}").page()
    return f"{mark}\n{text.strip()}\n"


def main(arguments: list[str]) -> int:
    """Write every page, or with ``--check`` name those that differ. Returns the exit status."""
    stale = []
    for name in PAGES:
        file = REFERENCE / f"{name}.md"
        text = written(name)
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(f"docs/reference/{name}.md")
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    verb = "out of date" if "--check" in arguments else "written"
    sys.stdout.writelines(f"{verb}: {page}\n" for page in stale)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
