"""Shared by the tests: programs that run without a sandbox (in tests alone), and connections to servers."""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

import trunkline
from trunkline.api.sandbox import ProgramRequest, SandboxProcess
from trunkline.testing.contexts import tool_context
from trunkline_mcp.connector import Connector
from trunkline_mcp.server_config import parse_server
from trunkline_mcp.server_connection import ServerConnection

HOSTILE = Path(__file__).with_name("hostile_server.py")


class BareProcess(SandboxProcess):
    """A program as it is."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    async def wait(self) -> int | None:
        return int(await self._process.wait())

    async def kill(self, why: str = "killed") -> None:
        self.killed = why
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class Bare(trunkline.Sandbox):
    """No sandbox at all, for tests that are not about one. ``began`` are the started programs."""

    name = "bare"

    def __init__(self) -> None:
        self.began: list[ProgramRequest] = []

    async def unavailable(self) -> str | None:
        return None

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        self.began.append(request)
        return BareProcess(await anyio.open_process(request.argv, env=request.env, cwd=request.workspace))


class BarePlugin:
    """Brings ``Bare`` to a platform."""

    def __init__(self) -> None:
        self.sandbox = Bare()

    @trunkline.hookimpl
    def trunkline_sandboxes(self) -> list[trunkline.Sandbox]:
        return [self.sandbox]


def entry(mode: str, **more: Any) -> dict[str, Any]:
    """An entry for ``mcpServers`` with a server that misbehaves."""
    return {"command": sys.executable, "args": [str(HOSTILE), mode], **more}


@asynccontextmanager
async def line_to(
    home: Path, mode: str, *, sandbox: Bare | None = None, **more: Any
) -> AsyncIterator[ServerConnection]:
    """A line to a server that misbehaves, while the context lasts."""
    server = parse_server("brave", entry(mode, **more))
    dialler = Connector(home, home / "workspaces", sandbox or Bare())
    async with anyio.create_task_group() as tasks:
        line = ServerConnection(server, dialler, lambda: None)
        tasks.start_soon(line.run)
        yield line
        tasks.cancel_scope.cancel()


async def until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until something is the case."""
    with anyio.fail_after(seconds):
        while not (found := true()):  # noqa: ASYNC110 - what is waited for tells nobody
            await anyio.sleep(0.02)
        return found


async def ready(line: ServerConnection) -> dict[str, trunkline.Tool]:
    """The line's tools by name once it is up."""
    await until(lambda: line.status.state == "ready")
    return {tool.spec.name: tool for tool in line.tools}


async def called(
    tool: trunkline.Tool, place: Path, person: trunkline.Person | None = None, **arguments: Any
) -> str:
    """Return the reply of a tool."""
    return await tool(tool_context(place, person=person), arguments)


class Says(trunkline.Person):
    """Answers with the given texts, then not at all."""

    def __init__(self, *answers: str) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, list[str]]] = []

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        self.asked.append((question, [*options]))
        if not self.answers:
            raise trunkline.NoAnswer("Nobody answered in time.")
        return self.answers.pop(0)

    async def tell(self, channel: str, text: str) -> None:
        raise AssertionError("nobody is told anything")
