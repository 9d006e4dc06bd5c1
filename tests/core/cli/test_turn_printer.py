"""The output of ``trunkline say`` for the events of a turn."""

import json

import pytest

from trunkline.cli.turn_printer import JsonTurnPrinter, TurnPrinter
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import FeedEvent, StatusShown, TextDelta, TurnEnded

ACCEPTED = MessageAccepted(turn="turn_a", conversation="conv_a", block="main", message_id="msg_a")
EVENTS: tuple[FeedEvent, ...] = (
    StatusShown(name="hud", data={"humor": 80}, text="[humor 80]"),
    StatusShown(name="silent", data={"a": 1}),
    TextDelta(step=0, offset=0, text="Tea."),
    TurnEnded(reason="stop"),
)


def test_a_status_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the answer, as it reads; the answer alone is on standard output."""
    saying = TurnPrinter(stream=True)
    assert [saying.handle_event(event) for event in EVENTS] == [False, False, False, True]
    assert saying.finish(ACCEPTED) == 0
    out, err = capsys.readouterr()
    assert out == "Tea.\n" and err == "[humor 80]\nconversation conv_a\n"


def test_json_has_the_statuses_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    """Under their names; a turn without any has no such key."""
    for events, statuses in ((EVENTS, {"hud": {"humor": 80}, "silent": {"a": 1}}), (EVENTS[2:], None)):
        saying = JsonTurnPrinter()
        for event in events:
            saying.handle_event(event)
        saying.finish(ACCEPTED)
        assert json.loads(capsys.readouterr().out).get("statuses") == statuses


@pytest.mark.parametrize(
    ("answered_by", "told"),
    [("up/small", ["up/small answered, in place of down/big."]), ("down/big", []), ("", [])],
)
def test_a_fallback_that_answered_is_named(
    capsys: pytest.CaptureFixture[str], answered_by: str, told: list[str]
) -> None:
    """People and programs are told which model answered, not only which one was asked."""
    for saying in (TurnPrinter(stream=True), JsonTurnPrinter()):
        saying.print_answerer(Answerer(label="down/big"))
        for event in (*EVENTS[2:3], TurnEnded(reason="stop", answered_by=answered_by)):
            saying.handle_event(event)
        assert saying.finish(ACCEPTED) == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [*told, "conversation conv_a"]
    assert json.loads(out.splitlines()[1])["answered_by"] == (answered_by or "down/big")


def test_a_turn_without_a_known_answerer_names_no_substitute(capsys: pytest.CaptureFixture[str]) -> None:
    """A fork and an approved turn ask the turn's own model, which no fallback replaced."""
    saying = TurnPrinter(stream=True)
    saying.handle_event(TurnEnded(reason="stop", answered_by="up/small"))
    assert saying.finish(ACCEPTED) == 0
    assert capsys.readouterr().err.splitlines() == ["conversation conv_a"]
