"""A compromised process writes anything to its pipe: the host reads valid frames, or ends the process."""

import struct

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_escapes import WAY_OUT, open_session

from trunkline import Sandbox
from trunkline_rlm.repl import frames, process
from trunkline_rlm.repl.frames import CallFrame, DoneFrame, HostileFrameError
from trunkline_rlm.repl.process import ReplLimits
from trunkline_rlm.repl.session import ProcessBrokenError, ReplSession

pytestmark = pytest.mark.anyio

HOSTILE: dict[str, bytes | str] = {
    "too long": struct.pack(">I", 1 << 31),
    "empty": struct.pack(">I", 0),
    "no json": struct.pack(">I", 4) + b"\xff\xfe\x00{",
    "another shape": struct.pack(">I", 13) + b'["done",1,2,3',
    "unknown kind": struct.pack(">I", 8) + b'["evil"]',
    "out of turn": struct.pack(">I", 14) + b'["ready",true]',
    "unknown function": struct.pack(">I", 18) + b'["call","x",[],{}]',
    "deep": """b'["call","read",[' + b'[' * 50_000 + b']' * 50_000 + b'],{}]'""",
    "much in little": """b'["done",[' + b'[],' * 1_500_000 + b'[]],"",null,false,[]]'""",
    "many names": """b'["done",1,"",null,false,[' + b'"ab",' * 100_000 + b'"c"]]'""",
    "more output": """b'["out","' + b'x' * 3_000_000 + b'"]'""",
}
"""Bytes for the pipe; or how code makes the body of a large frame."""


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_frame_ends_the_session(sandbox: Sandbox, name: str) -> None:
    """An attacker in the process can write anything to the pipe: the host reads valid frames, or ends the process."""
    async with ReplSession(
        sandbox, limits=ReplLimits(timeout=10.0, output=2_000_000), checked=False
    ) as session:
        data = HOSTILE[name]
        made = repr(data) if isinstance(data, bytes) else f"len(body := {data}).to_bytes(4, 'big') + body"
        code = f"{WAY_OUT}view = {made}\nwhile view:\n    view = view[os.write(1, view):]\nwhile True: pass"
        with anyio.fail_after(30), pytest.raises(ProcessBrokenError):
            await session.run(code)
        assert not session.has_process


FLOODS = {
    "nothing printed, without end": """[b'["out",""]'] * 1_000""",
    "calls without end": """[b'["call","read",[],{}]'] * 100""",
    "answers to none": """[b'["answer",1]'] * 100""",
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_frames_uses_little_memory(sandbox: Sandbox, name: str) -> None:
    """Frames that are right one by one, and too many: the session ends long before its time, and the host has kept next
    to nothing of them."""
    async with open_session(sandbox, ReplLimits(timeout=60.0, calls=100)) as session:
        code = (
            f"{WAY_OUT}frames = b''.join(len(each).to_bytes(4, 'big') + each for each in {FLOODS[name]})\n"
            "while True:\n    os.write(1, frames)"
        )
        with anyio.fail_after(40), pytest.raises(ProcessBrokenError):
            await session.run(code)
        assert len(session.output) == 0 and not session.has_process


async def test_rlm_t11_a_forged_call_frame_counts_as_a_call(sandbox: Sandbox) -> None:
    """RLM-T11: a FINAL frame written to the pipe by hand has the same effect as a call: it counts once."""
    body = b'["call","FINAL",["forged"],{}]'
    forge = f"os.write(1, len(b := {body!r}).to_bytes(4, 'big') + b)\nos.read(0, 4) and None"
    async with open_session(sandbox) as session:
        await session.run(f"{WAY_OUT}FINAL('mine')\n{forge}")
        assert session.is_complete and session.result == "mine"


async def test_a_process_that_does_not_listen_any_more_is_ended(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compromised process reports that it is done, and never reads again: the next run does not wait for it."""
    monkeypatch.setattr(process, "SEND_SECONDS", 0.3)
    body = b'["done",1,"",null,false,[]]'
    code = f"{WAY_OUT}os.write(1, len(b := {body!r}).to_bytes(4, 'big') + b)\nwhile True: pass"
    async with open_session(sandbox) as session:
        assert (await session.run(code)).value == 1
        with anyio.fail_after(30), pytest.raises(ProcessBrokenError):
            await session.run("x" * 1_000_000)
        assert not session.has_process


def test_only_well_formed_frames_are_read() -> None:
    """Values may be anything of JSON; everything else has a type and a bound."""
    assert isinstance(frames.decode_frame(b'["done",{"a":[1]},"",null,false,[]]'), DoneFrame)
    assert isinstance(frames.decode_frame(b'["call","f",[1],{"a":2}]'), CallFrame)
    for body in (
        b'["done",1]',
        b'["call",1,[],{}]',
        b'["out",1]',
        b"{}",
        b'["ready",1]',
        b"[]",
        b'["out","a","b"]',
    ):
        with pytest.raises(HostileFrameError):
            frames.decode_frame(body)
    for size in (0, frames.LARGEST + 1, 0xFFFFFFFF):
        with pytest.raises(HostileFrameError):
            frames.frame_length(size.to_bytes(4, "big"))


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda some: b'["call","f",' + some + b"]"))
def test_no_bytes_bring_anything_but_a_frame_or_a_refusal(body: bytes) -> None:
    """Any bytes from the pipe are a frame with values in it, or are reported as hostile."""
    try:
        frame = frames.decode_frame(body)
        if isinstance(frame, CallFrame):
            frame.decode_arguments()
        elif isinstance(frame, DoneFrame):
            _ = (frame.value, frame.variables)
    except HostileFrameError:
        pass
