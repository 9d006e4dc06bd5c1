"""Source code: functions of Python's standard library without their docstrings, found by the docstring's first line."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.memory.collections.collection import Collection, Document, Question

MODULES = (
    "argparse", "ast", "calendar", "cmd", "codecs", "configparser", "csv", "dataclasses", "datetime", "difflib", "dis",
    "fileinput", "fractions", "functools", "gzip", "heapq", "imaplib", "inspect", "ipaddress", "locale", "mailbox",
    "mimetypes", "numbers", "optparse", "os", "pathlib", "pdb", "pickle", "platform", "plistlib", "pprint", "profile",
    "queue", "random", "selectors", "shelve", "shlex", "shutil", "smtplib", "socket", "ssl", "statistics", "string",
    "subprocess", "tarfile", "tempfile", "textwrap", "threading", "timeit", "tokenize", "trace", "traceback", "turtle",
    "typing", "urllib.parse", "urllib.request", "uuid", "weakref", "xml.dom.minidom", "zipfile", "zipapp",
)  # fmt: skip
QUESTIONS, LONGEST = 300, 3_500


def collection() -> Collection:
    """Return the functions, a file each."""
    documents, questions = [], []
    for number, (question, code) in enumerate(_functions()):
        id = f"function-{number}.py"
        documents.append(Document(id, code))
        questions.append(Question(question, (frozenset({id}),)))
    Random(61).shuffle(questions)
    return Collection("source code", questions[:QUESTIONS], documents=documents)


def _functions() -> Iterator[tuple[str, str]]:
    known: set[str] = set()
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or len(node.body) < 3:
                continue
            said = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            node.body = node.body[1:]
            code = ast.unparse(node)
            if 25 < len(said) < 200 and len(code) < LONGEST and said not in known:
                known.add(said)
                yield said, code
