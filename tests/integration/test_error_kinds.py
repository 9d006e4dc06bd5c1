"""Each tool error has a kind for programs: in outcome, ledger, journal, feed, conversation and span (MN-F18)."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.contracts.conversations.messages import LoadConversation
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES
from trunkline.contracts.tools.messages import EffectFinished, ToolOutcome
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.contracts.turns.journal_messages import ToolFinished
from trunkline.contracts.turns.subjects import EFFECT, JOURNAL
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry import semconv
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.testing.tool_calls import call_tool

from .approval_helpers import asked_by, decide, write

pytestmark = pytest.mark.anyio


class Shop:
    """Tools that fail in each way in which a plugin's tool may fail."""

    def __init__(self) -> None:
        self.model = ScriptedModel()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[Any]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[Any]:
        @trunkline.tool(effect="write")
        def sell(how: str) -> str:
            """Sell in a way."""
            match how:
                case "said":
                    raise trunkline.ToolError("Sold out.", kind="conflict")
                case "plain":
                    raise trunkline.ToolError("It did not work.")
                case "newer":
                    raise trunkline.ToolError("A kind of a later version.", kind="haunted")  # type: ignore[arg-type]
                case _:
                    raise ValueError(how)

        @trunkline.tool(effect="read")
        def look(how: str) -> str:
            """Look."""
            raise ValueError(how)

        @trunkline.tool(effect="read", timeout=0.2)
        async def stare() -> str:
            """Read without end."""
            await anyio.sleep_forever()
            return ""

        @trunkline.tool(effect="write", timeout=0.2)
        async def carve() -> str:
            """Write without end."""
            await anyio.sleep_forever()
            return ""

        return [sell, look, stare, carve]


@pytest.fixture(scope="module")
async def shop(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    plugin = Shop()
    config = {"runtime.provider_adapter": plugin.model.name}
    async with platform(tmp_path_factory.mktemp("shop"), plugins=[plugin], config=config) as running:
        yield running


CALLS: tuple[tuple[str, dict[str, Any] | str, str], ...] = (
    ("no_such_tool", {}, "not_found"),
    ("read_file", {"path": "absent.txt"}, "not_found"),
    ("memory_read", {"path": "absent.md"}, "not_found"),
    ("use_skill", {"name": "absent"}, "not_found"),
    ("replace_in_file", {"path": "note.txt", "find": "absent", "replace": "x"}, "no_match"),
    ("memory_edit", {"path": "note.md", "old_content": "absent", "new_content": "x"}, "conflict"),
    ("write_file", {"path": "note.txt"}, "invalid_arguments"),
    ("write_file", '{"path": ', "invalid_arguments"),
    ("read_file", {"path": "."}, "invalid_arguments"),
    ("copy_file", {"source": "note.txt", "target": "other.txt"}, "conflict"),
    ("read_file", {"path": "../../../etc/passwd"}, "permission_denied"),
    ("fetch_webpage", {"url": "http://127.0.0.1:1/"}, "permission_denied"),
    ("fetch_webpage", {"url": "gopher://example.com"}, "invalid_arguments"),
    ("sell", {"how": "said"}, "conflict"),
    ("sell", {"how": "plain"}, "failed"),
    ("sell", {"how": "newer"}, "failed"),
    ("sell", {"how": "broken"}, "outcome_unknown"),
    ("look", {"how": "broken"}, "internal"),
    ("stare", {}, "timeout"),
    ("carve", {}, "outcome_unknown"),
)


async def test_mn_f18_every_kind_of_failure_has_its_kind(shop: Platform) -> None:
    """MN-F18: a program can distinguish the failures of the platform's own tools, its guards and a plugin's tools.
    An unknown kind, and none, are ``failed``."""
    workspace = shop.home.workspace("main")
    workspace.mkdir(parents=True, exist_ok=True)
    for name in ("note.txt", "other.txt"):
        (workspace / name).write_text("a note")
    await call_tool(shop.bus, "memory_write", {"path": "note.md", "content": "a note"})
    found = []
    for name, arguments, _ in CALLS:
        outcome = await call_tool(shop.bus, name, arguments)  # type: ignore[arg-type]
        found.append((name, arguments, outcome.kind))
        assert outcome.output, "the model is given a text as well"
    assert found == list(CALLS)


async def test_an_error_kind_reaches_every_interface(shop: Platform) -> None:
    """The kind is in the effect ledger, the journal, the feed, the stored conversation and the span."""
    answer = await shop.say('call:sell {"how": "said"} ;; say:Too late.')
    conversation, turn = answer.accepted.conversation, answer.accepted.turn
    assert [event.error_kind for event in answer.events if isinstance(event, ToolEnded)] == ["conflict"]
    ended = [stored.data async for stored in shop.bus.history(JOURNAL, conversation=conversation, turn=turn)]
    outcomes = [one.outcome for record in ended for one in record.entries if isinstance(one, ToolFinished)]
    assert [outcome.kind for outcome in outcomes] == ["conflict"]
    ledger = [one.data async for one in shop.bus.history(EFFECT, call=outcomes[0].call)]
    assert [one.outcome.kind for one in ledger if isinstance(one, EffectFinished)] == ["conflict"]
    request = LoadConversation(block="main", conversation=conversation, after=0)
    messages = (await shop.bus.call(LOAD_MESSAGES, request)).messages
    assert [one.error_kind for one in messages if one.role == "tool"] == ["conflict"]
    assert await span_kind(shop, turn) == "conflict"


async def span_kind(shop: Platform, turn: str) -> object:
    """The error type of the span of a turn's call, once it is there."""
    with anyio.fail_after(60):
        while True:
            async for batch in shop.bus.history(SPANS):
                for span in batch.data.spans:
                    ours = span.name.startswith("execute_tool") and span.attributes.get(semconv.TURN) == turn
                    if ours and not span.unfinished:
                        return span.attributes[semconv.ERROR_TYPE]
            await anyio.sleep(0.05)


async def test_a_persons_no_and_a_limit_of_the_block_have_their_kinds(tmp_path: Path) -> None:
    """A denied call is ``approval_denied``; a tool that the block may not use is ``permission_denied``."""
    plugin = Shop()
    config = {"runtime.provider_adapter": plugin.model.name, "permissions.approvals": "some"}
    async with platform(tmp_path / "home", plugins=[plugin], config=config) as running:
        accepted, asked = await asked_by(running, write("a.md"))
        await decide(GatewayClient(running.bus, "terminal"), asked, False)
        answer = await running.answer(accepted)
        assert [e.error_kind for e in answer.events if isinstance(e, ToolEnded)] == ["approval_denied"]
        folder = running.home.memory / "blocks/main"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "block.toml").write_text('tools = ["read_file"]\n')

        async def forbidden() -> ToolOutcome:
            return await call_tool(running.bus, "list_directory", {"path": "."})

        with anyio.fail_after(60):
            while (await forbidden()).kind != "permission_denied":  # noqa: ASYNC110  asked over the bus
                await anyio.sleep(0.05)
