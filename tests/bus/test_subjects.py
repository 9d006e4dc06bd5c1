"""Subject templates, by property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_bus import Subject, SubjectError

words = st.text("abcXYZ019_-", min_size=1, max_size=64)
names = st.text("abc_1", min_size=1, max_size=8).filter(lambda one: one[0] in "abc")


@st.composite
def templates(draw: st.DrawFn) -> tuple[Subject, dict[str, str]]:
    keys = draw(st.dictionaries(names, words, min_size=1, max_size=4))
    literals = draw(st.lists(words, min_size=1, max_size=4))
    tokens = draw(st.permutations([f"{{{name}}}" for name in keys] + literals))
    return Subject(".".join(tokens)), keys


@given(templates())
def test_parse_undoes_format(case: tuple[Subject, dict[str, str]]) -> None:
    """The values passed to format are returned."""
    subject, keys = case
    assert subject.parse(subject.format(**keys)) == keys


@given(templates(), st.data())
def test_a_filter_matches_its_subject(case: tuple[Subject, dict[str, str]], data: st.DataObject) -> None:
    """A filter has the same tokens as a subject, with a star for each missing key."""
    subject, keys = case
    given_keys = data.draw(st.sets(st.sampled_from(sorted(keys))))
    wildcard = subject.wildcard_filter(**{name: keys[name] for name in given_keys})
    full = subject.format(**keys)
    assert len(wildcard.split(".")) == len(full.split("."))
    assert all(w in (f, "*") for w, f in zip(wildcard.split("."), full.split("."), strict=True))
    assert wildcard.count("*") == len(keys) - len(given_keys)


@given(st.text())
def test_no_text_escapes_its_token(text: str) -> None:
    """A key either is refused or stays one token without wildcards, blanks or line breaks."""
    try:
        subject = Subject("a.{key}.b").format(key=text)
    except SubjectError:
        return
    assert subject.split(".") == ["a", text, "b"]
    assert not set(text) & set(" .*>\r\n\t\0")


@pytest.mark.parametrize("key", ["", "a.b", "*", ">", "a b", "a\n", "é", "x" * 65])
def test_invalid_keys_are_refused_with_a_hint(key: str) -> None:
    """The error quotes the key and names key_of()."""
    with pytest.raises(SubjectError, match="key_of"):
        Subject("a.{key}").format(key=key)


@pytest.mark.parametrize("template", ["", ".", "a..b", "a.*", "a.>", "a.{b}x", "{A}", "a b", "a.{k}.{k}"])
def test_bad_templates_are_refused(template: str) -> None:
    """Wildcards, empty tokens, half keys and repeated keys are no templates."""
    with pytest.raises(SubjectError):
        Subject(template)


def test_missing_and_unknown_keys_are_named() -> None:
    """The error says which key is missing or not known."""
    subject = Subject("a.{one}.{two}")
    with pytest.raises(SubjectError, match="'two'"):
        subject.format(one="1")
    with pytest.raises(SubjectError, match="'three'"):
        subject.format(one="1", two="2", three="3")
    with pytest.raises(SubjectError, match="'three'"):
        subject.wildcard_filter(three="3")


@pytest.mark.parametrize("subject", ["a.1.c", "a.1.b.2", "a..b", "b.1.b", "a.1.b\n"])
def test_subjects_of_other_templates_do_not_parse(subject: str) -> None:
    """Only subjects made from the template are taken apart."""
    with pytest.raises(SubjectError):
        Subject("a.{k}.b").parse(subject)


def test_equal_templates_are_equal() -> None:
    """Subjects compare and hash by template."""
    assert len({Subject("a.{k}"), Subject("a.{k}"), Subject("a.{l}")}) == 2
