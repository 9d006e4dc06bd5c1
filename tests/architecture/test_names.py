"""Names and docstrings use the terms of the glossary, and each name has one meaning."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import ROOT, nodes, tree_of
from .test_layers import packages

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"

RETIRED_MODULES = {
    "acting", "asking", "asks", "away", "beneath", "briefing", "care", "carrier", "carrying", "crumbs",
    "desk", "door", "drift", "errand", "fence", "foreign", "found", "gate", "given", "held", "items", "keeper", "known",
    "lapsed", "latch", "lending", "lent", "lineage", "locked", "look", "loose", "means", "owned", "past",
    "patience", "private", "pulse", "readable", "remembered", "roster", "sayable", "saying", "seed", "shares", "shelf",
    "stamps", "standing", "standins", "strand", "telling", "tending", "trail", "visible", "wanted", "wish", "wishes",
}  # fmt: skip
"""Names that modules had before the glossary. Each stood for several things, or for none that a newcomer knows."""

RETIRED_WORDS = {
    "acting", "asking", "briefing", "carrier", "carrying", "crumbs", "desk", "door", "drift", "errand", "fence",
    "foreign", "hears", "held", "homeless", "keeper", "lapsed", "latch", "lending", "lent", "lineage", "look",
    "meant", "means", "patience", "roster", "sayable", "seed", "shares", "shelf", "sitting", "standing", "standins",
    "strand", "tend", "tending", "wish", "wishes",
}  # fmt: skip
"""Words that no class and no public function has in its name."""

TEST_FOLDERS = ("tests", "plugins", "channels", "adapters", "bus", "core", "docs/examples")
"""Folders whose Python files have tests, the public suites of ``trunkline.testing`` and templates included."""

DOCUMENTED: tuple[type[Documented], ...] = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""The nodes that have a docstring."""

TEST_DEFINITION = re.compile(r"^[ \t]*(?:async )?def (test_\w*)", re.MULTILINE)

LONGEST_TEST_NAME = 65
"""A test's name has at most this many characters: subject, behaviour and condition."""

WORDS_OF_TEST_NAMES = {"seed"}
"""Words that test names have in their standard sense: the seed of a random generator."""

RETIRED_PARAMETER_WORDS = (RETIRED_WORDS - {"seed"}) | {
    "asking",
    "found",
    "given",
    "heard",
    "mend",
    "said",
    "saying",
    "told",
    "wanted",
}
"""Words that no parameter of a public function has in its name. ``seed`` is a term: of random numbers, and of NKeys."""

NOUNS_IN_ING = {
    "embedding", "framing", "learning", "listing", "onboarding", "planning", "ranking", "spelling", "testing",
    "tracing", "tuning",
}  # fmt: skip
"""Nouns of the field that a module may end in. Any other module ending in -ing is named by an activity."""

STRUCTURAL_CLASSES: set[str] = set()
"""Classes that may have the same name in several places."""

OPENERS = re.compile(
    r"(?:What|Whether|How|Where|Who|Whose|Whoever|Whatever|Nobody|Nothing|Somebody|Everything|Those|The one)\b"
)
"""Words that a docstring does not open with: they announce a thing instead of naming it."""


def modules() -> Iterator[tuple[str, Path]]:
    """The dotted names of all modules that are shipped, with their files."""
    for package in [ROOT / "bus" / "trunkline_bus", ROOT / "core" / "trunkline", *packages()]:
        for file in sorted(package.rglob("*.py")):
            if "templates" not in file.parts:
                parts = file.relative_to(package.parent).with_suffix("").parts
                yield ".".join(part for part in parts if part != "__init__"), file


MODULES = dict(modules())


def words(name: str) -> list[str]:
    """The words of a name in snake_case or CamelCase, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def stem(word: str) -> str:
    """A word without its plural's ending."""
    return re.sub(r"ies$", "y", re.sub(r"(?<=ss|ox)es$", "", word)).removesuffix("s")


def glossary_terms() -> list[str]:
    """The terms of the glossary, in its order."""
    return re.findall(r"^\| `?([^`|]+?)`? \| .+ \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)[1:]


def glossary_words() -> set[str]:
    """The words that module names are made of."""
    lists = GLOSSARY.read_text(encoding="utf-8").partition("## Words in module names")[2]
    listed = [
        word
        for text in re.findall(r"^\* [^:]+: (.+(?:\n  .+)*)", lists, re.MULTILINE)
        for word in words(text)
    ]
    return {stem(word) for word in [*listed, *(part for term in glossary_terms() for part in words(term))]}


def public_definitions() -> Iterator[tuple[str, str]]:
    """Every class, function and method without an underscore, with the place that it is defined in."""

    def below(module: str, body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if not node.name.startswith("_"):
                    yield node.name, f"{module}:{node.lineno}"
                if isinstance(node, ast.ClassDef):
                    yield from below(module, node.body)

    for module, file in MODULES.items():
        yield from below(module, tree_of(file).body)


def test_the_glossary_defines_each_term_once_and_in_order() -> None:
    """The terms are in alphabetical order, each once."""
    terms = glossary_terms()
    assert len(terms) > 150
    assert terms == sorted(set(terms), key=str.lower)


def test_modules_are_named_with_words_of_the_glossary() -> None:
    """A module's name is made of words that the glossary has."""
    allowed = glossary_words()
    wrong = {
        module: missing
        for module in MODULES
        if (missing := [word for word in words(module.split(".")[-1]) if stem(word) not in allowed])
    }
    assert wrong == {}, "use words of docs/reference/glossary.md, or add the word there"


def test_no_module_has_a_retired_name() -> None:
    """No module is named by a word that the glossary replaced."""
    assert [module for module in MODULES if module.split(".")[-1] in RETIRED_MODULES] == []


def test_no_module_is_named_by_an_activity() -> None:
    """A module is named by a noun for its content, not by an activity."""
    wrong = [
        module
        for module in MODULES
        if (last := words(module.split(".")[-1])[-1]).endswith("ing") and last not in NOUNS_IN_ING
    ]
    assert wrong == []


def test_no_class_or_public_function_has_a_retired_word() -> None:
    """The private vocabulary of earlier versions is gone from names, too."""
    wrong = [
        f"{place} {name}" for name, place in public_definitions() if RETIRED_WORDS.intersection(words(name))
    ]
    assert wrong == []


def named_tests() -> Iterator[tuple[str, str]]:
    """Every test function, with the place that it is defined in."""
    for folder in TEST_FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ".venv" in file.parts:
                continue
            text = file.read_text(encoding="utf-8")
            for found in TEST_DEFINITION.finditer(text):  # parsing all tests takes seconds
                line = text.count("\n", 0, found.start()) + 1
                yield found[1], f"{file.relative_to(ROOT)}:{line}"


def test_test_names_are_short_and_have_no_retired_word() -> None:
    """A test is named by subject, behaviour and condition, in at most 65 characters and terms of the field."""
    found = list(named_tests())
    assert len(found) > 2500
    retired = RETIRED_WORDS - WORDS_OF_TEST_NAMES
    assert [
        f"{place} {name}"
        for name, place in found
        if len(name) > LONGEST_TEST_NAME or retired.intersection(words(name))
    ] == []


STORED_FIELDS = {"said_at"}
"""Fields that keep their names, because files of memory contain them."""


def public_parameters() -> Iterator[tuple[str, str]]:
    """Every parameter of a public function or method and of ``__init__``, with the place that it is defined in."""
    for module, file in MODULES.items():
        for node in (*nodes(file, ast.FunctionDef), *nodes(file, ast.AsyncFunctionDef)):
            if node.name == "__init__" or not node.name.startswith("_"):
                for parameter in ast.walk(node.args):
                    if isinstance(parameter, ast.arg):
                        yield parameter.arg, f"{module}:{parameter.lineno} {node.name}"


def class_fields() -> Iterator[tuple[str, str]]:
    """Every annotated field of a class, with the place that it is defined in."""
    for module, file in MODULES.items():
        for node in nodes(file, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    yield item.target.id, f"{module}:{item.lineno} {node.name}"


def test_no_parameter_of_a_public_function_has_a_retired_word() -> None:
    """Parameters of public functions are part of the interface: callers name them as keywords."""
    parameters = list(public_parameters())
    assert len(parameters) > 5_000
    wrong = [
        f"{place}({name})" for name, place in parameters if RETIRED_PARAMETER_WORDS.intersection(words(name))
    ]
    assert wrong == []


def test_no_field_has_a_retired_word() -> None:
    """Fields of structs and dataclasses are parameters of their constructors."""
    fields = list(class_fields())
    assert len(fields) > 2_000
    wrong = [
        f"{place}.{name}"
        for name, place in fields
        if RETIRED_PARAMETER_WORDS.intersection(words(name)) and name not in STORED_FIELDS
    ]
    assert wrong == []


def test_a_class_name_stands_for_one_class() -> None:
    """No two classes have the same name, in any modules."""
    places = defaultdict(list)
    for module, file in MODULES.items():
        for node in nodes(file, ast.ClassDef):
            places[node.name].append(f"{module}:{node.lineno}")
    double = {
        name: found for name, found in places.items() if len(found) > 1 and name not in STRUCTURAL_CLASSES
    }
    assert double == {}


def test_docstrings_name_the_thing() -> None:
    """A docstring's first sentence does not open with a question word or a pronoun."""
    wrong = [
        f"{module}:{getattr(node, 'lineno', 1)}"
        for module, file in MODULES.items()
        for node in nodes(file, *DOCUMENTED)
        if OPENERS.match(ast.get_docstring(node) or "")
    ]
    assert wrong == [], "open with the thing or the verb: 'Return ...', 'Report whether ...'"


@pytest.mark.parametrize("page", ["explanation/where-to-change.md", "explanation/architecture.md"])
def test_the_files_that_a_map_names_exist(page: str) -> None:
    """Every path in the pages that lead into the code is there."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    tops = "core|bus|plugins|adapters|channels|docs|tests|deploy"
    named = re.findall(rf"`((?:{tops})/[^`*]*|pyproject\.toml)`", text)
    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_architecture_page_has_every_part() -> None:
    """Every entry of the core and every bundled plugin, adapter and channel has a line that describes it."""
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", text, re.MULTILINE))
    core = ROOT / "core" / "trunkline"
    entries = [
        *(path for path in core.iterdir() if (path / "__init__.py").exists()),
        *(path for path in core.glob("*.py") if path.stem != "__init__"),
        *(package.parents[1] for package in packages()),
    ]
    bus = ROOT / "bus" / "trunkline_bus"
    entries += [path for path in bus.iterdir() if (path / "__init__.py").exists()]
    entries += [path for path in bus.glob("*.py") if path.stem != "__init__"]
    assert len(entries) > 30
    assert [
        str(path.relative_to(ROOT)) for path in entries if not rows.get(str(path.relative_to(ROOT)))
    ] == []
