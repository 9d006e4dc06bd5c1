"""The language of messages that select a scripted model's answer."""

from typing import Any

import pytest

from trunkline.testing.script import (
    CallTools,
    CutConnection,
    Hang,
    HeardMessage,
    Malformed,
    RanTools,
    Raw,
    Refuse,
    Reply,
    Say,
    ScriptedCall,
    ScriptedRequest,
    Step,
    Stop,
    Think,
    Wait,
    WebPage,
    answer_as_agent_loop,
    answer_by_message,
    answer_in_order,
    words,
)


def scripted_request(*lines: HeardMessage | str, again: int = 0) -> ScriptedRequest:
    read = tuple(line if isinstance(line, HeardMessage) else HeardMessage("user", line) for line in lines)
    return ScriptedRequest(lines=read, again=again)


def called(*names: str) -> HeardMessage:
    return HeardMessage("assistant", calls=names)


def result(text: str) -> HeardMessage:
    return HeardMessage("tool", text)


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        ("say:Hello there.", [Say("Hello there."), Stop()]),
        ("slow:3", [Say("word-1 word-2 word-3", pause=0.05), Stop()]),
        ("slow:2:200", [Say("word-1 word-2", pause=0.2), Stop()]),
        ("think:Hm. ;; say:Yes.", [Think("Hm."), Say("Yes."), Stop()]),
        ("say:a\nsay:b", [Say("a"), Say("\nb"), Stop()]),
        ('call:look {"at": "sea"}', [CallTools((ScriptedCall("look", {"at": "sea"}),)), Stop("tool_calls")]),
        ("call:look", [CallTools((ScriptedCall("look", {}),)), Stop("tool_calls")]),
        (
            'parallel:look {"at": {"x": 1}} listen {}',
            [
                CallTools((ScriptedCall("look", {"at": {"x": 1}}), ScriptedCall("listen", {}))),
                Stop("tool_calls"),
            ],
        ),
        ("badcall:look at it", [CallTools((ScriptedCall("look", "at it"),)), Stop("tool_calls")]),
        ("wait:0.5 ;; say:x", [Wait(0.5), Say("x"), Stop()]),
        ("stall:2", [Say("word-1 word-2"), Wait()]),
        ("hang", [Hang()]),
        ("cut:1", [Say("word-1"), CutConnection()]),
        ("quit:1", [Say("word-1"), Raw(b"")]),
        ("malformed:1", [Say("word-1"), Malformed(), Stop()]),
        ("garbage", [WebPage()]),
        ("empty", [Raw(b"")]),
        ("limit:1", [Say("word-1"), Stop("max_tokens")]),
        ("filter", [Stop("content_filter")]),
        ("How are you?", [Say("You said: How are you?"), Stop()]),
        ("call:look {", [Say, Stop()]),
        ("slow:many", [Say, Stop()]),
        ("", [Stop()]),
    ],
)
def test_an_instruction_is_its_steps(program: str, steps: list[Any]) -> None:
    """Each line of the table in the module's docstring is an instruction; a mistake is answered, not raised."""
    reply = answer_by_message(scripted_request(program))
    assert len(reply) == len(steps)
    for step, expected in zip(reply, steps, strict=True):
        assert isinstance(step, expected) if isinstance(expected, type) else step == expected


def test_an_http_error_has_a_status_and_its_headers() -> None:
    """429 says when to come again."""
    [refused] = answer_by_message(scripted_request("status:429"))
    assert isinstance(refused, Refuse)
    assert (refused.status, refused.headers) == (429, (("Retry-After", "7"),))


def test_after_a_call_the_results_are_quoted() -> None:
    """The answer names each tool and its result, in the order of the calls."""
    reply = answer_by_message(
        scripted_request(
            "parallel:look {} listen {}", called("look", "listen"), result("sea"), result("wind")
        )
    )
    assert reply == (Say("look said: sea\nlisten said: wind"), Stop())


def test_after_a_call_the_program_continues_with_the_next_line() -> None:
    """Several calls one after another, then text: the place follows from the conversation alone."""
    program = "say:First. ;; call:look {} ;; call:listen {} ;; slow:2"
    assert answer_by_message(scripted_request(program)) == (
        Say("First."),
        CallTools((ScriptedCall("look", {}),)),
        Stop("tool_calls"),
    )
    once = scripted_request(program, called("look"), result("sea"))
    assert answer_by_message(once) == (CallTools((ScriptedCall("listen", {}),)), Stop("tool_calls"))
    twice = scripted_request(program, called("look"), result("sea"), called("listen"), result("wind"))
    assert answer_by_message(twice) == (Say(words(2), pause=0.05), Stop())


def test_the_last_message_is_the_program() -> None:
    """Earlier turns and their calls do not count."""
    past = ("call:look {}", called("look"), result("sea"), HeardMessage("assistant", "look said: sea"))
    assert answer_by_message(scripted_request(*past, "roles")) == (
        Say("user assistant tool assistant user"),
        Stop(),
    )


def test_quote_puts_results_among_other_text() -> None:
    """Here they are said where the program wants them."""
    reply = answer_by_message(
        scripted_request("call:look {} ;; quote ;; say:Done.", called("look"), result("sea"))
    )
    assert reply == (Say("look said: sea"), Say("\nDone."), Stop())


def test_once_happens_only_the_first_time() -> None:
    """A fault that is gone when the same is asked again."""
    assert answer_by_message(scripted_request("once:cut:1 ;; say:x"))[:2] == (Say("word-1"), CutConnection())
    assert answer_by_message(scripted_request("once:cut:1 ;; say:x", again=1)) == (Say("x"), Stop())


def test_programs_in_turn_answer_one_request_each() -> None:
    """The replies ignore the message; when they are used up the server fails."""
    script = answer_in_order(["say:a", "say:b"])
    assert [script(scripted_request("x"))[0], script(scripted_request("x"))[0]] == [Say("a"), Say("b")]
    assert isinstance(script(scripted_request("x"))[0], Refuse)


def test_a_loop_runs_the_calls_itself() -> None:
    """All steps of the program in one reply, each call with its result."""
    reply: Reply = answer_as_agent_loop(
        answer_by_message, scripted_request("say:a ;; call:look {} ;; call:listen {}")
    )
    kinds: list[type[Step]] = [type(step) for step in reply]
    assert kinds == [Say, RanTools, RanTools, Say, Stop]
    assert reply[-1] == Stop()
    assert reply[-2] == Say("look said: look ran with {}\nlisten said: listen ran with {}")
