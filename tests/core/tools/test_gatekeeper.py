"""The gatekeeper: the calls that need approval, and a preview that cannot mislead a person."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trunkline
from trunkline import ApprovalDetail, ToolContext, ToolError, ToolOutcome
from trunkline._util.secrets.redactor import Redactor
from trunkline._util.text import printable
from trunkline.api.tool import FunctionTool, Proceed, ToolInvocation
from trunkline.contracts.approvals.preview import (
    MAX_TEXT,
    arguments_preview,
    arguments_summary,
    command_preview,
    diff_preview,
    message_preview,
)
from trunkline.contracts.policies.messages import PermissionTable, Policy
from trunkline.policy import DEFAULT_TABLE, shape_of
from trunkline.testing.contexts import tool_context
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.dispatch import Dispatch, Guard, call_hash
from trunkline.workers.tools.gatekeeper import Gatekeeper
from trunkline.workers.tools.quotas import Quotas

pytestmark = pytest.mark.anyio


@trunkline.tool(effect="write", unbound_params=("content",))
def note(context: ToolContext, path: str, content: str = "") -> str:
    """Note something."""
    return "noted"


@note.previewer
def _shown(context: ToolContext, path: str, content: str) -> ApprovalDetail:
    if path == "broken":
        raise OSError("secret detail")
    return diff_preview(path, "old\n", content)


@trunkline.tool(effect="read")
def peek(path: str) -> str:
    """Peek."""
    return "seen"


@trunkline.tool(effect="read", network=("url",), unbound_params=("offset",))
def fetch(url: str, offset: int = 0) -> str:
    """Fetch."""
    return "page"


class NoBus:
    """No policy in here has a number a day, so nothing is counted."""

    def kv(self, spec: object) -> None:
        return None


UNCOUNTED = Quotas(NoBus())  # type: ignore[arg-type]

TOOLS = {tool.spec.name: tool for tool in (note, peek, fetch)}


async def outcome_of(
    tool: FunctionTool,
    arguments: dict[str, Any],
    *,
    table: PermissionTable = DEFAULT_TABLE,
    rules: tuple[Policy, ...] = (),
    approved: str | None = None,
    unknown: bool = False,
) -> ToolOutcome:
    """Return the gatekeeper's outcome of a call."""

    async def table_of(block: str) -> PermissionTable:
        if unknown:
            raise ToolError("It cannot be known now.")
        return table

    async def rules_now() -> tuple[Policy, ...]:
        return rules

    async def tool_of(name: str) -> trunkline.Tool:
        return TOOLS[name]

    async def perform(invocation: ToolInvocation) -> ToolOutcome:
        return ToolOutcome(call="", status="ok", output="ran")

    gatekeeper = Gatekeeper(CallAuthorizer(table_of, rules_now, UNCOUNTED), tool_of, Redactor(("password",)))
    invocation = ToolInvocation(
        spec=tool.spec,
        arguments=arguments,
        context=tool_context(Path()),
        call_hash=call_hash(tool.spec, arguments),
        approved=approved,
    )
    return await Dispatch([Guard("trunkline", gatekeeper)])(invocation, perform)


def detail(outcome: ToolOutcome) -> ApprovalDetail:
    assert outcome.status == "approval" and not isinstance(outcome.detail, msgspec.UnsetType)
    return outcome.detail


async def test_a_write_is_asked_about_with_its_diff_and_a_read_is_not() -> None:
    """The default for new installs; the question says what kind of thing would be done, and of which tool."""
    assert (await outcome_of(peek, {"path": "a"})).output == "ran"
    asked = await outcome_of(note, {"path": "a.md", "content": "new\n"})
    assert "change something: note" in asked.question
    shown = detail(asked)
    assert (shown.kind, shown.text.splitlines()[-2:]) == ("diff", ["-old", "+new"])
    assert shown.covers == 'note with path="a.md"; any content' and shown.effect == "write"


async def test_all_and_none() -> None:
    """The spectrum of the block's table."""
    every = msgspec.structs.replace(DEFAULT_TABLE, approvals="all")
    nothing = msgspec.structs.replace(DEFAULT_TABLE, approvals="none")
    assert (await outcome_of(peek, {"path": "a"}, table=every)).status == "approval"
    assert (await outcome_of(note, {"path": "a"}, table=nothing)).output == "ran"


async def test_an_approval_covers_exactly_this_call() -> None:
    """The hash of another call is no approval of this one."""
    hash = call_hash(note.spec, {"path": "a"})
    assert (await outcome_of(note, {"path": "a"}, approved=hash)).output == "ran"
    assert (await outcome_of(note, {"path": "b"}, approved=hash)).status == "approval"


async def test_a_matching_policy_replaces_approval_and_a_denial_refuses() -> None:
    """A call that the owner allowed for longer needs no approval; a denied call is refused without a question."""
    conditions = {"shape": shape_of(note.spec, {"path": "a", "content": "x"})}
    request = {
        "subject": "*",
        "resource": "tool:note",
        "action": "write",
        "effect": "allow",
        "conditions": conditions,
    }
    granted = msgspec.convert(request, Policy)
    assert (await outcome_of(note, {"path": "a", "content": "y"}, rules=(granted,))).output == "ran"
    assert (await outcome_of(note, {"path": "b", "content": "y"}, rules=(granted,))).status == "approval"
    denied = msgspec.convert({**request, "effect": "deny", "conditions": {}}, Policy)
    assert (await outcome_of(note, {"path": "a"}, rules=(granted, denied))).status == "error"


async def test_undecidable_calls_are_refused() -> None:
    """Guards fail closed."""
    assert (await outcome_of(peek, {"path": "a"}, unknown=True)).status == "error"


async def test_a_tool_without_a_preview_shows_its_arguments() -> None:
    """Its failure goes to the log, and the person decides by the arguments."""
    shown = detail(await outcome_of(note, {"path": "broken", "content": "one\ntwo"}))
    assert shown.text == "path: broken\ncontent:\n  one\n  two"


async def test_secrets_are_not_shown() -> None:
    """A preview goes to every channel."""
    shown = detail(await outcome_of(note, {"path": "a", "content": "password: hunter2hunter2\n"}))
    assert "hunter2" not in shown.text and "password" in shown.text
    shown = detail(await outcome_of(note, {"path": "password=hunter2hunter2"}))
    assert "hunter2" not in shown.covers


async def test_questions_of_a_plugins_gate_are_shown_too() -> None:
    """A gate that brings a question alone gets the preview from the gatekeeper."""

    class Careful:
        stage = "gate"

        async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
            return ToolOutcome(call="", status="approval", question="On a Sunday?")

    async def table_of(block: str) -> PermissionTable:
        return DEFAULT_TABLE

    async def nothing() -> tuple[Policy, ...]:
        return ()

    async def tool_of(name: str) -> trunkline.Tool:
        return TOOLS[name]

    gatekeeper = Gatekeeper(CallAuthorizer(table_of, nothing, UNCOUNTED), tool_of, Redactor(()))
    guards = [Guard("trunkline", gatekeeper), Guard("sundays", Careful())]  # type: ignore[arg-type]

    async def perform(invocation: ToolInvocation) -> ToolOutcome:
        raise AssertionError

    given_call = ToolInvocation(
        spec=peek.spec,
        arguments={"path": "a"},
        context=tool_context(Path()),
        call_hash=call_hash(peek.spec, {"path": "a"}),
    )
    asked = await Dispatch(guards)(given_call, perform)
    assert (asked.question, detail(asked).text, detail(asked).shape) == ("On a Sunday?", "path: a", "")


TEXT = st.text(max_size=400) | st.text(alphabet="\x1b[\u202e\u0000\r\nabc", max_size=400)


@given(TEXT, TEXT)
def test_no_text_moves_a_cursor_or_hides_in_a_preview(one: str, two: str) -> None:
    """Control characters written by a model are shown as pictures, and showing the result again does not change it."""
    for made in (
        diff_preview("a.md", one, two),
        arguments_preview({"a": one, "b": [two]}),
        command_preview([one, two]),
        message_preview(one, two),
    ):
        assert printable(made.text) == made.text
        assert "\x1b" not in made.text and "\u202e" not in made.text


@pytest.mark.parametrize("end", ["\n", "\u2028", "\r\n"])
async def test_long_argument_names_are_shortened_in_previews(end: str) -> None:
    """A tool that takes any arguments takes their names from the model. Wherever a person reads them, names and
    values stay in their line and are bounded."""
    forged = f"x{end}The agent of block main wants to read something: peek. Allow it?{end}path: a"
    assert len(arguments_preview({forged: "y"}).text.split("\n")) == 1
    assert all(line.startswith("  ") for line in arguments_preview({"a": forged}).text.split("\n")[1:])
    covers = arguments_summary({forged: "y", "b" * 5_000: "z"} | {f"n{n}": forged for n in range(1_000)})
    assert "\n" not in covers and len(covers) <= 1_000


def test_a_preview_contains_no_invisible_characters() -> None:
    """A message can hold another one in signs without a shape; emoji and other scripts are left as they are."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "key")
    assert message_preview("a", f"Hello{hidden}").text == "to: a\n\nHello⟨U+E006B⟩⟨U+E0065⟩⟨U+E0079⟩"
    assert command_preview(["rm", "a\u200bb\u200d"]).text.count("⟨U+200") == 2
    assert "⟨U+FE0F⟩" * 3 in message_preview("a", "❤" + "\ufe0f" * 3).text
    for text in ("Hello 👩\u200d💻 ❤\ufe0f\u200d🔥", "می\u200cخواهم", "naïve — “x”"):
        assert message_preview("a", text).text.endswith(text)


@given(st.integers(MAX_TEXT, MAX_TEXT * 4))
def test_a_long_preview_shows_both_ends_and_counts_the_rest(length: int) -> None:
    """The dangerous part may be at the end."""
    made = arguments_preview({"text": "begin" + "x" * length + "the end"})
    assert made.text.startswith("text: begin") and made.text.endswith("the end")
    assert len(made.text) < MAX_TEXT + 100
    assert made.left_out == len("text: begin") + length + len("the end") - MAX_TEXT


def test_a_command_is_shown_as_a_shell_would_need_it() -> None:
    """An argument with a space is visibly one argument."""
    assert (
        command_preview(["rm", "-rf", "my notes; x"], "~/garden").text
        == "rm -rf 'my notes; x'\n(in ~/garden)"
    )


def test_huge_files_are_not_compared_line_by_line() -> None:
    """A diff of them would delay every caller."""
    many = "x\n" * 15_000
    made = diff_preview("big.txt", many, many + "y\n")
    assert made.text.startswith("big.txt: 15000 lines would become 15001 lines:") and made.left_out


# Hosts that the model chose ------------------------------------------------------------------------------------


def rule(effect: str, resource: str, action: str = "read", **conditions: Any) -> Policy:
    """Return a policy for all callers."""
    request = {
        "subject": "*",
        "resource": resource,
        "action": action,
        "effect": effect,
        "conditions": conditions,
    }
    return msgspec.convert(request, Policy)


async def test_a_read_from_a_host_of_the_models_choice_is_asked_about() -> None:
    """The address alone can carry a secret out. A wider yes is bound to the host, not to the page."""
    asked = await outcome_of(fetch, {"url": "https://Docs.example/a?b=c"})
    assert (
        "read from another host: fetch" in asked.question
        and "url: https://Docs.example/a?b=c" in detail(asked).text
    )
    assert detail(asked).covers == 'fetch with url="docs.example"; any offset'
    granted = rule("allow", "tool:fetch", shape=detail(asked).shape)
    for url in ("https://docs.example/other?x", "http://docs.example"):
        for more in ({}, {"offset": 5}):
            assert (await outcome_of(fetch, {"url": url, **more}, rules=(granted,))).output == "ran"
    for url in ("https://evil.example/", "https://docs.example.evil.example/", "https://www2.docs.example/"):
        assert (await outcome_of(fetch, {"url": url}, rules=(granted,))).status == "approval"


async def test_rules_for_hosts() -> None:
    """The owner allows or denies by ``external:HOST``; a name includes its form with ``www.``."""
    allowed = rule("allow", "external:docs.example")
    for url in ("https://docs.example/a", "https://www.docs.example/a"):
        assert (await outcome_of(fetch, {"url": url}, rules=(allowed,))).output == "ran"
    assert (
        await outcome_of(fetch, {"url": "https://a.docs.example/"}, rules=(allowed,))
    ).status == "approval"
    for denied in ("external:*", "external:docs.example", "external:www.docs.example"):
        rules = (allowed, rule("deny", denied))
        assert (await outcome_of(fetch, {"url": "https://docs.example/"}, rules=rules)).status == "error"
    whole = rule("allow", "tool:fetch")
    assert (await outcome_of(fetch, {"url": "https://a.example"}, rules=(whole,))).output == "ran"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://u@example.com", "http://0x7f.1/", "nonsense"])
async def test_an_invalid_address_is_refused_without_an_approval(url: str) -> None:
    """A policy for hosts cannot be asked about what names none."""
    assert (await outcome_of(fetch, {"url": url})).status == "error"
