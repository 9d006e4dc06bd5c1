"""Texts and questions that every machine has: the documentation of Python's standard library.

The first sentence of a docstring is the question, the rest of it the text that should be found. Technical prose, in
place of abstracts that may not be committed.
"""

import importlib
import inspect
import random
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

PACKAGES = (
    "argparse", "asyncio", "codecs", "collections", "concurrent.futures", "contextlib", "csv", "datetime", "decimal",
    "difflib", "email.message", "email.policy", "fractions", "functools", "heapq", "http.client", "http.cookies",
    "imaplib", "inspect", "io", "ipaddress", "itertools", "json", "logging", "logging.handlers", "mailbox", "math",
    "multiprocessing", "os", "pathlib", "pickle", "platform", "queue", "random", "re", "sched", "shutil", "smtplib",
    "socket", "socketserver", "sqlite3", "ssl", "statistics", "string", "struct", "subprocess", "tarfile", "tempfile",
    "textwrap", "threading", "traceback", "typing", "unittest", "unittest.mock", "urllib.parse", "urllib.request",
    "uuid", "weakref", "xml.dom.minidom", "xml.etree.ElementTree", "zipfile",
)  # fmt: skip
QUESTIONS = 400
SHORTEST_QUESTION, LONGEST_QUESTION = 25, 200
SHORTEST_TEXT, LONGEST_TEXT = 120, 1_500
_SIGNATURE = re.compile(r"^[\w.]+\(.*\)\s*(->.*)?\n+")
_EXAMPLE = re.compile(r">>>.*")


def entry() -> dict[str, Any]:
    """As one entry of the data that ``recall`` reads."""
    found = {text: question for question, text in pairs()}
    documents = [{"id": str(number), "text": text} for number, text in enumerate(found)]
    questions = [
        {"question": question, "evidence": [str(number)]} for number, question in enumerate(found.values())
    ]
    random.Random(1).shuffle(questions)
    return {"conversation": "docstrings", "documents": documents, "questions": questions[:QUESTIONS]}


def pairs() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        for docstring in _docstrings(importlib.import_module(name)):
            first, _, rest = _SIGNATURE.sub("", docstring).partition("\n\n")
            question, text = " ".join(first.split()), _EXAMPLE.sub("", rest).strip()
            fits = SHORTEST_QUESTION < len(question) < LONGEST_QUESTION and len(text) > SHORTEST_TEXT
            if fits:
                yield question, text[:LONGEST_TEXT]


def _docstrings(module: ModuleType) -> Iterator[str]:
    """Of what a module shows, methods too."""
    for name, thing in vars(module).items():
        if not name.startswith("_"):
            shown = [thing, *vars(thing).values()] if inspect.isclass(thing) else [thing]
            yield from (found for one in shown if isinstance(found := inspect.getdoc(one), str))
