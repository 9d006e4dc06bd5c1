"""``trunkline say`` on a scripted gateway: the text on each stream, and the exit status."""

import json
from collections.abc import Iterable

import anyio
import pytest

from trunkline.cli.say import send_and_follow
from trunkline.cli.turn_printer import JsonTurnPrinter, TurnPrinter
from trunkline.contracts.conversations.messages import ToolCall, Usage
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.testing.channel_suite import wait_until
from trunkline.testing.scripted_gateway import ScriptedGateway, Step
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio
CALL = ToolCall(id="c1", name="read_file", arguments={"path": "a.md"})
END = TurnEnded(reason="stop", message_id="msg_1", usage=Usage(input_tokens=3, output_tokens=2))
MESSAGE = SendMessage(content="hello", client_id="c")


def text(part: str, offset: int = 0, step: int = 0) -> TextDelta:
    return TextDelta(step=step, offset=offset, text=part)


async def said(steps: Iterable[Step], saying: TurnPrinter) -> int:
    async with ScriptedGateway(lambda message: steps) as gateway:
        with anyio.fail_after(60):
            return await send_and_follow(gateway, MESSAGE, saying)


WITH_A_TOOL = [
    text("I look."), ToolStarted(step=0, call=CALL), ToolEnded(step=0, call_id="c1", name="read_file"),
    text("Two ", step=1), text("wo words", 1, step=1), END,
]  # fmt: skip


@pytest.mark.parametrize("stream", [True, False])
async def test_the_answer_goes_to_stdout_and_the_rest_to_stderr(
    capsys: pytest.CaptureFixture[str], stream: bool
) -> None:
    """Text only in standard output, once, each step on its lines; the conversation's id last in standard error."""
    assert await said(WITH_A_TOOL, TurnPrinter(stream=stream)) == 0
    out, err = capsys.readouterr()
    assert out == "I look.\nTwo words\n"
    assert "[ok] read_file" in err
    assert err.splitlines()[-1].startswith("conversation conv_")


async def test_discovery_tools_are_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """Finding and loading tools is reported only on failure."""
    found = ToolEnded(step=0, call_id="c1", name="load_tools")
    failed = ToolEnded(step=0, call_id="c2", name="discover_tools", error=True)
    assert await said([found, failed, text("Done."), END], TurnPrinter(stream=True)) == 0
    err = capsys.readouterr().err
    assert "load_tools" not in err and "[failed] discover_tools" in err


async def test_a_withdrawn_answer_is_not_printed_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Without streaming only final text is printed; with streaming the reset is reported."""
    steps = [text("False"), TextReset(step=0), text("True"), END]
    assert await said(steps, TurnPrinter(stream=False)) == 0
    assert capsys.readouterr().out == "True\n"
    assert await said(steps, TurnPrinter(stream=True)) == 0
    out, err = capsys.readouterr()
    assert out == "False\nTrue\n" and "ignore the text above" in err


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (TurnEnded(reason="error", code=ErrorCode.PROVIDER_ERROR, sentence="No."), 1),
        (TurnEnded(reason="cancelled"), 1),
        (TurnEnded(reason="max_tokens"), 0),
        (ApprovalRequested(call=CALL, call_hash="h", question="May I?"), 3),
    ],
)
async def test_the_exit_status_reports_how_the_turn_ended(
    capsys: pytest.CaptureFixture[str], end: Step, status: int
) -> None:
    """1 is a failure, 3 a pending decision, 0 anything else; the answer is printed in every case."""
    assert await said([text("Half"), end], TurnPrinter(stream=False)) == status
    out, err = capsys.readouterr()
    assert out == "Half\n" and len(err.splitlines()) >= 2


async def test_a_provider_failure_is_shown_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names no cause; the hint says who knows it."""
    await said(
        [TurnEnded(reason="error", code=ErrorCode.PROVIDER_ERROR, sentence="No.")], TurnPrinter(stream=False)
    )
    error, hint, _ = capsys.readouterr().err.splitlines()
    assert error == "Error: No." and hint.startswith("Hint: ") and "doctor --online" in hint


async def test_control_codes_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the answer nor the name of a tool can steer the terminal."""
    bad = ToolEnded(step=0, call_id="c", name="\x1b[2J", error=True)
    await said([text("\x1b]0;x\x07"), bad, END], TurnPrinter(stream=True))
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "␛]0;x␇" in out


async def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """It has every field that a program needs, and nothing else is on standard output."""
    assert await said(WITH_A_TOOL, JsonTurnPrinter()) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["answer"] == "I look.\n\nTwo words"
    assert answer["tools"] == [{"name": "read_file", "arguments": {"path": "a.md"}, "error": False}]
    assert (answer["reason"], answer["code"], answer["message_id"]) == ("stop", None, "msg_1")
    assert (answer["input_tokens"], answer["output_tokens"]) == (3, 2)
    assert answer["conversation"].startswith("conv_") and answer["turn"].startswith("turn_")
    assert err == ""


async def test_json_of_a_failed_turn(capsys: pytest.CaptureFixture[str]) -> None:
    """The code and its fixed sentence, and status 1."""
    sentence = FIXED_SENTENCES[ErrorCode.INTERNAL]
    end = TurnEnded(reason="error", code=ErrorCode.INTERNAL, sentence=sentence)
    assert await said([text("Half"), end], JsonTurnPrinter()) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["answer"], answer["code"], answer["sentence"]) == ("Half", "internal", sentence)


async def test_leaving_early_ends_the_turn() -> None:
    """Ctrl-C in ``say`` leaves no running turn."""
    async with ScriptedGateway(lambda message: [text("I begin"), anyio.Event()]) as gateway:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_and_follow, gateway, MESSAGE, TurnPrinter(stream=False))
            await wait_until(lambda: gateway.sent)
            await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
        assert len(gateway.cancelled) == 1


async def test_a_refused_message_is_an_error() -> None:
    """The gateway's sentence reaches the command line."""
    async with ScriptedGateway() as gateway:
        gateway.refuses = RemoteFault("not_found", "There is no block 'x'.")
        with pytest.raises(RemoteFault, match="no block"):
            await send_and_follow(gateway, MESSAGE, TurnPrinter(stream=False))
