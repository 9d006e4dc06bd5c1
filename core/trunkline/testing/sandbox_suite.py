"""The contract of a sandbox, as a test suite for any backend (CC-T11, MB-T7, MN-T7).

::

    from trunkline.api.testing import SandboxSuite

    class TestMine(SandboxSuite):
        def sandbox(self, home):
            return MySandbox(home)

The test programs run on any POSIX system. ``SandboxFixture`` lists further attributes that a subclass can set.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.contracts.sandbox.program_request import DEFAULT_LIMITS, SandboxLimits
from trunkline.errors import ToolError
from trunkline.testing.sandbox_fixture import HEARTBEAT_SCRIPT
from trunkline.testing.sandbox_isolation_suite import SandboxIsolationSuite

PANIC_SECONDS = 2.0
"""Seconds within which a panic must end every program (CC-T12)."""


class SandboxSuite(SandboxIsolationSuite):
    """Inherit from this class and implement ``sandbox``; pytest runs the tests."""

    # What a program does, and how it ends -------------------------------------------------------------------------

    @pytest.mark.anyio
    async def test_cc_t11_output_and_exit_code_are_reported_separately(self, workspace: Path) -> None:
        """Standard output, standard error and the exit code are reported unchanged."""
        ran = await self.shell(workspace, "echo out; echo err >&2; exit 3")
        assert (ran.stdout, ran.stderr, ran.exit_code, ran.killed) == (b"out\n", b"err\n", 3, "")

    @pytest.mark.anyio
    async def test_a_program_that_is_not_there_exits_with_127(self, workspace: Path) -> None:
        """The error names the missing program."""
        async with self.opened(workspace.parent) as sandbox:
            ran = await sandbox.run(("no-such-program",), workspace=workspace, env={})
        assert ran.exit_code == 127
        assert b"no-such-program" in ran.stderr

    @pytest.mark.anyio
    async def test_no_shell_reads_the_arguments(self, workspace: Path) -> None:
        """Characters that a shell would interpret are passed on unchanged."""
        words = ("$(id)", "a b", "", "'", "*", "-n", "\n", "; exit 9", "ü")
        async with self.opened(workspace.parent) as sandbox:
            ran = await sandbox.run(("printf", "<%s>", *words), workspace=workspace, env={})
        assert ran.stdout.decode() == "".join(f"<{word}>" for word in words)

    @pytest.mark.anyio
    async def test_ten_megabytes_of_input_are_accepted(self, workspace: Path) -> None:
        """A program receives all of its standard input. A program that reads none of it ends normally."""
        for script, said in (("wc -c", b"10000000"), ("exec 0<&-; echo no", b"no")):
            ran = await self.shell(workspace, script, stdin=b"x" * 10_000_000)
            assert ran.stdout.strip() == said

    @pytest.mark.anyio
    async def test_a_program_exchanges_input_and_output_while_it_runs(self, workspace: Path) -> None:
        """A long-running program answers line by line, and ends when its standard input is closed."""
        async with self.started(workspace, "while read line; do echo got $line; done; exit 4") as process:
            for word in (b"one", b"two"):
                await process.stdin.send(word + b"\n")
                with anyio.fail_after(60):
                    assert await process.stdout.receive() == b"got " + word + b"\n"
            await process.stdin.aclose()
            with anyio.fail_after(60):
                assert await process.wait() == 4

    def test_cc_t11_default_limits_apply(self) -> None:
        """The default limits are 30 seconds, 512 MB, one processor, 64 processes, a megabyte of output, and no
        network (CC-F14).
        """
        assert SandboxLimits() == SandboxLimits(
            timeout=30.0,
            memory=512,
            cpus=1.0,
            processes=64,
            output=1_000_000,
            network=False,
            host_network=False,
        )

    # Limits -------------------------------------------------------------------------------------------------------

    @pytest.mark.anyio
    async def test_cc_t11_a_timeout_ends_the_program_and_its_children(self, workspace: Path) -> None:
        """The result reports the timeout and contains the output up to it. No descendant survives (MN-T7)."""
        ran = await self.shell(
            workspace, f"{HEARTBEAT_SCRIPT} echo part; sleep 60", limits=SandboxLimits(timeout=3.0)
        )
        assert (ran.stdout, ran.exit_code, ran.killed) == (b"part\n", None, "timeout")
        await self.assert_stopped(workspace)

    @pytest.mark.anyio
    async def test_background_processes_of_a_program_end_with_it(self, workspace: Path) -> None:
        """A daemon that the program started ends with the program, and does not delay the result."""
        ran = await self.shell(workspace, f"{HEARTBEAT_SCRIPT} sleep 0.3; echo done")
        assert (ran.stdout, ran.exit_code) == (b"done\n", 0)
        await self.assert_stopped(workspace)

    @pytest.mark.anyio
    async def test_cc_t11_memory_is_bounded(self, workspace: Path) -> None:
        """A program with the default limit of 512 MB that allocates a gigabyte is ended or refused the memory. The
        next program runs.
        """
        ran = await self.shell(
            workspace, """awk 'BEGIN { s = "x"; for (i = 0; i < 30; i++) s = s s; print "all of it" }'"""
        )
        assert ran.exit_code != 0
        assert b"all of it" not in ran.stdout
        assert (await self.shell(workspace, "echo on")).stdout == b"on\n"

    @pytest.mark.anyio
    async def test_cc_t11_processes_are_bounded(self, workspace: Path) -> None:
        """No more processes than permitted exist at the same time, and a fork bomb does not outlive the program."""
        limits = SandboxLimits(processes=32, timeout=5.0)
        ran = await self.shell(
            workspace,
            "i=0; while sleep 20 & do i=$((i+1)); echo $i; [ $i -gt 500 ] && break; done",
            limits=limits,
        )
        assert 0 < len(ran.stdout.split()) <= 32
        bomb = await self.shell(
            workspace, "b() { b | b & }; b; sleep 20", limits=SandboxLimits(processes=32, timeout=1)
        )
        assert bomb.exit_code != 0
        assert (await self.shell(workspace, "echo on", limits=limits)).stdout == b"on\n"

    @pytest.mark.anyio
    async def test_cc_t11_output_is_bounded(self, workspace: Path) -> None:
        """Of a gigabyte of output (or ``flood`` bytes) the beginning and the end are kept, and the program ends
        normally.
        """
        ran = await self.shell(
            workspace,
            f"echo first; head -c {self.flood} /dev/zero; echo last",
            limits=SandboxLimits(timeout=100.0),
        )
        assert ran.exit_code == 0
        assert len(ran.stdout) < DEFAULT_LIMITS.output + 100
        assert ran.dropped == self.flood + len(b"first\nlast\n") - DEFAULT_LIMITS.output
        assert ran.stdout.startswith(b"first\n")
        assert ran.stdout.endswith(b"last\n")

    # Bad input ----------------------------------------------------------------------------------------------------

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        ("argv", "options"),
        [
            ((), {}),
            (("",), {}),
            (("echo", "a\0b"), {}),
            (("echo", "\ud800"), {}),
            (("echo", "x" * 200_000), {}),
            (("echo", *("x" * 1000 for _ in range(2000))), {}),
            (("env",), {"env": {"A=B": "c"}}),
            (("env",), {"env": {"": "c"}}),
            (("env",), {"env": {"A": "c\0d"}}),
            (("env",), {"env": {"A": "x" * 200_000}}),
            (("pwd",), {"folder": "../"}),
            (("pwd",), {"folder": "/etc"}),
            (("pwd",), {"read_only": {"/workspace/x": Path("/etc")}}),
            (("pwd",), {"read_only": {"relative": Path("/etc")}}),
            (("pwd",), {"read_only": {"/a/../../x": Path("/etc")}}),
        ],
        ids=lambda value: repr(value)[:30],
    )
    async def test_invalid_program_arguments_are_refused(
        self, argv: tuple[str, ...], options: dict[str, Any], workspace: Path
    ) -> None:
        """A ToolError states the reason, and nothing runs."""
        async with self.opened(workspace.parent) as sandbox:
            with pytest.raises(ToolError):
                await sandbox.run(argv, workspace=workspace, **{"env": {}, **options})

    @pytest.mark.anyio
    async def test_large_arguments_arrive(self, workspace: Path) -> None:
        """Arguments and variables as large as the system allows reach the program."""
        async with self.opened(workspace.parent) as sandbox:
            ran = await sandbox.run(
                ("sh", "-c", "echo ${#1} ${#BIG}", "sh", "x" * 100_000),
                workspace=workspace,
                env={"BIG": "y" * 100_000},
            )
        assert ran.stdout == b"100000 100000\n"

    # The end ------------------------------------------------------------------------------------------------------

    @pytest.mark.anyio
    async def test_leaving_the_context_ends_the_program(self, workspace: Path) -> None:
        """Leaving the context, cancelling it, and ``kill`` end all processes of the program."""
        async with self.started(workspace, f"{HEARTBEAT_SCRIPT} sleep 60") as process:
            await self.wait_beating(workspace)
        assert process.killed
        await self.assert_stopped(workspace)
        with anyio.move_on_after(1.0) as scope:
            await self.shell(workspace, f"{HEARTBEAT_SCRIPT} sleep 60")
        assert scope.cancelled_caught
        await self.assert_stopped(workspace)
        async with self.started(workspace, f"{HEARTBEAT_SCRIPT} sleep 60") as process:
            await process.kill("panic")
            assert (await process.wait(), process.killed) == (None, "panic")
            await self.assert_stopped(workspace)

    @pytest.mark.anyio
    async def test_cc_t12_panic_ends_all_programs_of_a_home(self, workspace: Path) -> None:
        """As in a panic, another instance ends five programs of the home within two seconds, and no program of
        another home. One of three attempts must be that fast, because the machine may be busy.
        """
        took = [await self._five_ended(workspace)]
        while took[-1] > PANIC_SECONDS and len(took) < 3:
            took.append(await self._five_ended(workspace))
        assert min(took) <= PANIC_SECONDS

    async def _five_ended(self, workspace: Path) -> float:
        """End five programs of a home. Return the number of seconds that this took."""
        async with AsyncExitStack() as stack:
            begun = [
                await stack.enter_async_context(self.started(workspace, "echo up; sleep 600"))
                for _ in range(5)
            ]
            for ours in begun:
                await ours.stdout.receive()
            async with self.opened(workspace.parent / "other") as other:
                assert await other.end_all() == 0
            with anyio.fail_after(60):
                began = anyio.current_time()
                assert await self.sandbox(workspace.parent / "home").end_all() == 5
                took = anyio.current_time() - began
                assert [await ours.wait() for ours in begun] == [None] * 5
            assert all(ours.killed for ours in begun)
            return took

    @pytest.mark.anyio
    async def test_many_run_at_once(self, workspace: Path) -> None:
        """Sixty-four programs run concurrently. Each has separate output and separate private files, which are
        removed afterwards.
        """
        said: dict[int, bytes] = {}

        async with self.opened(workspace.parent) as sandbox:

            async def one(number: int) -> None:
                script = f"echo {number} >> /tmp/mine; (sleep 60 &); cat /tmp/mine"
                ran = await sandbox.run(
                    ("sh", "-c", script), workspace=None, env={}, limits=SandboxLimits(timeout=120.0)
                )
                said[number] = ran.stdout

            async with anyio.create_task_group() as tasks:
                for number in range(64):
                    tasks.start_soon(one, number)
            assert await self.sandbox(workspace.parent / "home").end_all() == 0
        assert said == {number: b"%d\n" % number for number in range(64)}
