"""Sessions: what code may do, how its errors read, and what ends it. Real processes."""

import resource
import time
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest
from rlm_processes import begun_by, is_running, none_left

from trunkline import Sandbox
from trunkline_rlm.repl.process import ReplLimits
from trunkline_rlm.repl.session import (
    CodeTimeoutError,
    HostFunctionError,
    ProcessBrokenError,
    ReplSession,
    SandboxViolation,
    SessionCompleteError,
)

pytestmark = pytest.mark.anyio

MB = 1024 * 1024


VALUES: dict[str, Any] = {
    "2+2*10": 22,
    'len("hello")': 5,
    '"a,b,c".split(",")': ["a", "b", "c"],
    'dict(a=1)["a"] + max([1, 2]) + len(str(list("ab")))': 13,
    "größe = 3\ngröße": 3,
    "from collections import Counter\nCounter('aab')['a']": 2,
    "import re, math\nre.findall('a', 'banana') and math.gcd(12, 18)": 6,
    "(1, 2)": [1, 2],
    "{3}": "{3}",
    "float('inf')": "inf",
    "2 ** 100": 2**100,
    "x = 1": None,
    "": None,
    "class A:\n    def __init__(self):\n        self.b = 7\nA().b": 7,
    "f'{1 + 1:03d}'": "002",
    "datetime.date(2026, 5, 4).isoformat()": "2026-05-04",
}


async def test_rlm_t9_ordinary_code_works(sandbox: Sandbox) -> None:
    """RLM-T9: the value of the last expression is returned, for any ordinary Python."""
    async with ReplSession(sandbox) as session:
        for code, value in VALUES.items():
            assert ((await session.run(code)).value, code) == (value, code)


async def test_rlm_t9_variables_and_output_persist(sandbox: Sandbox) -> None:
    """RLM-T9, F16: variables are kept over runs, output accumulates and can be cleared, a reset starts again."""
    async with ReplSession(sandbox) as session:
        await session.run("x = [1]\nprint('one')")
        ran = await session.run("x.append(2)\nsys.stderr.write('two')\nx")
        assert (ran.value, ran.output, session.output) == ([1, 2], "two", "one\ntwo")
        assert session.names == ("x: list",)
        await session.run("globals_ = 0\n" + "y" * 100_000 + " = 1")
        assert len(session.names) == 3 and max(map(len, session.names)) < 220
        session.clear_output()
        assert session.output == ""
        await session.reset()
        assert "not defined" in ((await session.run("x")).error or "")


ERRORS = {
    "x ===": "Syntax error",
    "1/0": "Zero division error",
    "nothing": "Name error",
    "[].nothing": "Attribute error",
    "def f(n): return f(n + 1)\nf(0)": "Recursion error",
    "'x' * (100 * 1024 * 1024)": "Memory error",
    "b'x' * (200 * 1024 * 1024)": "Memory error",
    "[0] * 10**9": "Memory error",
    "'x' * (11 * 1024 * 1024)": "Memory error",
    "[b'x' * 9_000_000 for _ in range(200)]": "Memory error",
    "raise KeyError('a')": "Runtime error: KeyError: 'a' (line 1)",
    "raise SystemExit": "Runtime error: SystemExit",
    "while True: print('x' * 1_000_000)": "Memory error: too much output",
    "class Odd(Exception):\n    def __str__(self): return 1/0\nraise Odd": "Runtime error: Odd",
}


async def test_rlm_t10_an_error_is_a_text_and_the_session_lives(sandbox: Sandbox) -> None:
    """RLM-F16, T10: every exception is shown with its kind, too much memory included, and the session continues."""
    async with ReplSession(sandbox) as session:
        await session.run("kept = 1")
        for code, error in ERRORS.items():
            ran = await session.run(code)
            assert (code, (ran.error or "")[: len(error)], ran.value) == (code, error, None)
        assert (await session.run("kept + 1")).value == 2


async def test_rlm_t10_host_memory_stays_bounded(sandbox: Sandbox) -> None:
    """RLM-T10: the host accepts no more than the output limit, for any code."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with ReplSession(sandbox) as session:
        for code in (
            "'x' * (100 * 1024 * 1024)",
            "[0] * 10**9",
            "b'x' * (200 * 1024 * 1024)",
            "'x' * 9_000_000",
        ):
            await session.run(code)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80 * 1024  # in KB


async def test_rlm_t10_a_loop_without_end_is_stopped(sandbox: Sandbox) -> None:
    """RLM-T10: at the timeout, within three seconds, everything is gone, so nothing takes processor time; the next run
    has a new process."""
    async with ReplSession(sandbox, limits=ReplLimits(timeout=1.0)) as session:
        await session.run("1")
        running = begun_by()
        assert running
        for _ in range(3):  # a machine that is busy with something else gets another chance
            begun = time.monotonic()
            with pytest.raises(CodeTimeoutError):
                await session.run("while True: pass")
            took = time.monotonic() - begun
            if took < 3:
                break
        assert took < 3 and not session.has_process and not any(map(is_running, running)) and begun_by() == []
        before = time.process_time()
        await anyio.sleep(0.5)
        assert time.process_time() - before < 0.25  # nor is the worker busy with what is no more
        assert "not defined" in ((await session.run("x")).error or "")


async def test_waiting_for_the_host_does_not_count(sandbox: Sandbox) -> None:
    """The timeout is for the code's own computing time, without the time of a model."""

    async def slow() -> str:
        await anyio.sleep(2.0)
        return "done"

    async with ReplSession(sandbox, {"slow": slow}, ReplLimits(timeout=1.5)) as session:
        assert (await session.run("slow()")).value == "done"


async def test_cancelling_a_run_ends_its_process(sandbox: Sandbox) -> None:
    """No code continues to run for a caller that left."""
    session = ReplSession(sandbox)
    await session.run("1")
    running = begun_by()
    with anyio.move_on_after(0.3):
        await session.run("while True: pass")
    assert running
    await none_left(running)


async def test_functions_of_the_host(sandbox: Sandbox) -> None:
    """Arguments by position and by name, values back, faults and wrong calls as exceptions that code can catch."""

    async def join(words: list[str], by: str = " ") -> str:
        return by.join(words)

    async def refuse() -> None:
        raise HostFunctionError("ValueError", "not now")

    async with ReplSession(sandbox, {"join": join, "refuse": refuse}) as session:
        assert (await session.run("join(['a', 'b'], by='-')")).value == "a-b"
        assert (
            await session.run("try:\n  refuse()\nexcept ValueError as e:\n  said = str(e)\nsaid")
        ).value == "not now"
        assert "missing" in ((await session.run("join()")).error or "")
        assert (await session.run("join({1, 2})")).error is not None
        assert (await session.run("join(['still'])")).value == "still"


async def test_rlm_t11_final_counts_once(sandbox: Sandbox) -> None:
    """RLM-F15, T11: the first answer counts, None is an answer, and then the session is over."""
    async with ReplSession(sandbox) as session:
        with pytest.raises(RuntimeError):
            _ = session.result
        ran = await session.run("FINAL(None)\nFINAL(2)")
        assert "FINAL was called already" in (ran.error or "")
        assert session.is_complete and session.result is None
        with pytest.raises(SessionCompleteError, match="already complete"):
            await session.run("1")
    async with ReplSession(sandbox) as session:
        await session.run("FINAL({'a': [1]})")
        assert session.result == {"a": [1]}


async def test_an_answer_is_kept_when_the_code_does_not_end(sandbox: Sandbox) -> None:
    """The answer given to FINAL is not lost when the code is stopped after it."""
    async with ReplSession(sandbox, limits=ReplLimits(timeout=0.5)) as session:
        with pytest.raises(CodeTimeoutError):
            await session.run("FINAL('kept')\nwhile True: pass")
        assert session.result == "kept"


async def test_a_crashed_process_is_reported(sandbox: Sandbox) -> None:
    """A crash of the interpreter ends one run, and is reported."""
    async with ReplSession(sandbox) as session:
        await session.run("1")
        for process in begun_by():
            with suppress(psutil.NoSuchProcess):  # it went with another one
                process.kill()
        with pytest.raises(ProcessBrokenError):
            await session.run("2")
        assert (await session.run("3")).value == 3


async def test_too_many_calls_are_refused(sandbox: Sandbox) -> None:
    """A loop around a function of the host ends by itself."""
    count = 0

    async def tick() -> None:
        nonlocal count
        count += 1

    async with ReplSession(sandbox, {"tick": tick}, ReplLimits(calls=20)) as session:
        assert "more than 20 calls" in ((await session.run("while True: tick()")).error or "")
        assert count == 20


async def test_rlm_t13_fifty_sessions_at_once(sandbox: Sandbox) -> None:
    """RLM-T13: each session has its own output and variables only, and all sessions are gone afterwards."""
    there: set[int] = set()
    seen: list[psutil.Process] = []
    all_there = anyio.Event()

    async def one(number: int) -> None:
        async with ReplSession(sandbox) as session:
            await session.run(f"mine = {number}\nprint('session', mine)")
            there.add(number)
            if len(there) == 50:
                seen.extend(begun_by())
                all_there.set()
            await all_there.wait()
            ran = await session.run("print(mine)\n(mine, sorted(n for n in dir() if n.startswith('mine')))")
            assert ran.value == [number, ["mine"]] and ran.output == f"{number}\n"
            assert session.output == f"session {number}\n{number}\n"

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one, number)
    assert len(seen) >= 50 and not any(map(is_running, seen)) and begun_by() == []


async def test_a_session_is_small(sandbox: Sandbox) -> None:
    """All that runs for one takes less than 64 MB together; so fifty fit on a small machine."""
    async with ReplSession(sandbox) as session:
        await session.run("1")
        assert sum(process.memory_info().rss for process in begun_by()) < 64 * MB


@pytest.mark.parametrize(
    "code",
    ["import os", "from os import system", "import subprocess; subprocess.run(['ls'])", "().__class__"],
)
async def test_forbidden_code_is_refused_at_once(sandbox: Sandbox, code: str) -> None:
    """The check names line and thing, and nothing of the code is run."""
    async with ReplSession(sandbox) as session:
        with pytest.raises(SandboxViolation, match="line 2"):
            await session.run(f"ran = 1\n{code}")
        assert "not defined" in ((await session.run("ran")).error or "")


async def test_late_imports_of_standard_modules_work(sandbox: Sandbox) -> None:
    """Every permitted import works, although no library can be loaded any more."""
    codes: dict[str, Any] = {
        "datetime.datetime.strptime('2026-05-04', '%Y-%m-%d').day": 4,
        "from __future__ import annotations\nimport collections.abc as abc\nissubclass(list, abc.Sequence)": True,
        "from __future__ import annotations\n@dataclasses.dataclass\nclass P:\n    x: int\nP(3).x": 3,
        "statistics.median([1, 5, 3]) + decimal.Decimal('0.5').as_integer_ratio()[0]": 4,
        "random.seed(1)\nrandom.choice([7])": 7,
        "difflib.get_close_matches('appel', ['apple'])": ["apple"],
        "unicodedata.normalize('NFC', 'u\\u0308') + textwrap.shorten('a b c', 4, placeholder='')": "üa b",
        "json.loads('[1]') + sorted({2}) + heapq.nsmallest(1, [3])": [1, 2, 3],
        "'ä'.encode('latin-1').hex() + 'x'.encode('utf-16-le').hex()": "e47800",
    }
    async with ReplSession(sandbox) as session:
        for code, value in codes.items():
            ran = await session.run(code)
            assert (code, ran.value, ran.error) == (code, value, None)


async def test_a_large_value_is_an_error_of_the_code(sandbox: Sandbox) -> None:
    """A text may be as large as an object, other values are bounded lower; neither ends the session."""
    async with ReplSession(sandbox) as session:
        assert len((await session.run("'x' * 9_000_000")).value) == 9_000_000
        for code in ("[0] * 1_200_000 + ['x' * 3_000_000]", "FINAL(['x' * 5_000_000])"):
            assert "more than 4 MB" in ((await session.run(code)).error or "")
        assert not session.is_complete and (await session.run("1")).value == 1
