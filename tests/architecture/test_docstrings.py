"""Docstrings and texts name exceptions and settings that exist."""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from trunkline.config.settings import Settings

from .sources import nodes
from .test_names import DOCUMENTED, MODULES, Documented

RAISES = re.compile(r"\b[Rr]aises? .*?(?=[.;](?:\s|$)|$)")
"""A sentence or clause that names exceptions."""

EXCEPTION = re.compile(r"(?:,|\b(?:[Rr]aises?|and|or|the|an?)) `{0,2}([a-z_]+\.)?([A-Z]\w*[a-z]\w*)")
"""An exception in such a sentence: directly after the verb, a comma, a conjunction or an article."""

SECTION = re.compile(r"^Raises:\n((?:(?: .*)?\n?)+)", re.MULTILINE)

SECTION_ENTRY = re.compile(r"^    ((?:[a-z_]+\.)?[A-Z]\w+(?:, (?:[a-z_]+\.)?[A-Z]\w+)*):", re.MULTILINE)

SETTING = re.compile(r"\[([a-z]+)\]\s+([a-z_]+)")
"""A setting as texts name it: ``[section] key``."""


def raised_names(docstring: str) -> set[str]:
    """Return the exceptions that a docstring says are raised. ``module.Name`` stands for ``module``."""
    names = {
        found[1].rstrip(".") if found[1] else found[2]
        for sentence in RAISES.findall(" ".join(docstring.split()))
        for found in EXCEPTION.finditer(sentence)
    }
    for section in SECTION.findall(docstring):
        for entry in SECTION_ENTRY.findall(section):
            names |= {name.strip().partition(".")[0] for name in entry.split(",")}
    return names


@cache
def all_exceptions() -> frozenset[str]:
    """Every built-in exception, and every exception class of the shipped code."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for file in MODULES.values()
        for node in nodes(file, ast.ClassDef)
    }
    known = {
        name
        for name, one in vars(builtins).items()
        if isinstance(one, type) and issubclass(one, BaseException)
    }
    while added := {name for name, of in bases.items() if name not in known and of & known}:
        known |= added
    return frozenset(known)


@cache
def bound_names(file: Path) -> set[str]:
    """Return the names that a module imports, anywhere in it; of ``import a.b`` the first. Examples in docstrings use
    ``trunkline``.
    """
    return {"trunkline"} | {
        alias.asname or alias.name.partition(".")[0]
        for node in (*nodes(file, ast.Import), *nodes(file, ast.ImportFrom))
        for alias in node.names
    }


def documented(file: Path) -> Iterator[tuple[Documented, str]]:
    """Yield everything in a module that has a docstring, with the docstring."""
    for node in nodes(file, *DOCUMENTED):
        if text := ast.get_docstring(node):
            yield node, text


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("Raises Gone.", {"Gone"}),
        ("Raises ``Gone``, Lost and OSError for Trunkline; nothing else.", {"Gone", "Lost", "OSError"}),
        ("Raise click.UsageError when Python is old.", {"click"}),
        ("Raise recent passages slightly.", set()),
        (
            "Read it.\n\nRaises:\n    Gone, Lost: it is away,\n        too.\n    OSError: no.",
            {"Gone", "Lost", "OSError"},
        ),
    ],
)
def test_raised_names_are_found_in_sentences_and_sections(docstring: str, names: set[str]) -> None:
    """Only exceptions are found, and all of them."""
    assert raised_names(docstring) == names


def test_docstrings_name_only_exceptions_that_exist() -> None:
    """An exception that a docstring names is built in, defined in the shipped code, or imported by the module."""
    named = [
        (module, getattr(node, "lineno", 1), names)
        for module, file in MODULES.items()
        for node, text in documented(file)
        if "aise" in text and (names := raised_names(text))
    ]
    found = {
        (f"{module}:{line}", name)
        for module, line, names in named
        if (unknown := names - all_exceptions())
        for name in unknown - bound_names(MODULES[module])
    }
    assert found == set()
    assert len(named) > 500


def test_texts_name_only_settings_that_exist() -> None:
    """``[section] key`` in a docstring, hint or error names a setting of that section."""
    sections = {
        field.encode_name: set(field.type.__struct_fields__)
        for field in msgspec.structs.fields(Settings)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
    }
    named = {
        (f"{module}:{node.lineno}", section, key)
        for module, file in MODULES.items()
        for node in nodes(file, ast.Constant)
        if isinstance(node.value, str)
        for section, key in SETTING.findall(node.value)
        if section in sections
    }
    assert len(named) > 20
    assert [
        (place, f"[{section}] {key}") for place, section, key in named if key not in sections[section]
    ] == []
