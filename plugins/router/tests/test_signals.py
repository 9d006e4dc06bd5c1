"""The route of obvious messages, which no model is asked about."""

import pytest

from trunkline_router.signals import is_trivial, obvious_category, signals

ROUTES = {
    "hello": "simple_qa",
    "Hello there!": "simple_qa",
    "thanks!": "simple_qa",
    "good morning": "simple_qa",
    "Read main.py": "code",
    "fix src/auth.py please": "code",
    "what is in ./notes and why": "code",
    "summarize report.pdf": "knowledge",
    "what's in data.csv": "knowledge",
    "screenshot.png?": "knowledge",
    "read https://example.com": "research",
    "read https://example.com/report.pdf": "research",
    "read config.yaml and fetch https://api.x.com": "full",
    "/Users/x/a.png what's in it?": "full",
    "explain recursion to me": None,
    "capital of France": None,
    "hello, can you explain recursion": None,
    "this and/or that, e.g. at 3.5 percent": None,
    "": None,
}


@pytest.mark.parametrize("text", ROUTES)
def test_MN_T1_the_signals_of_a_message_decide_its_route(text: str) -> None:
    """One signal decides, several make the turn ``full``, and none leaves it to the model (MN-F5)."""
    assert obvious_category(signals(text)) == ROUTES[text]


def test_a_message_with_a_picture_is_about_it() -> None:
    """A file that the message brings is a signal like the name of one."""
    assert obvious_category(signals("what is that?", has_files=True)) == "knowledge"


@pytest.mark.parametrize(
    ("text", "trivial"),
    [
        ("", True),
        ("capital of France", True),
        ("good morning", True),
        ("one two three four five six seven", False),
        ("read a.py and b.pdf", False),
    ],
)
def test_MN_F6_a_trivial_message_is_no_task_to_split(text: str, trivial: bool) -> None:
    """An empty message, and a short one without a signal."""
    assert is_trivial(text, signals(text)) is trivial
