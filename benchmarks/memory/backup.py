"""``backup``: ``trunkline backup`` of a memory with some history, while nobody talks and while clients do."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

import anyio
import anyio.to_thread

from benchmarks import deployments
from benchmarks.memory.bench import NOTE, Bench, BenchRow
from trunkline.config.editor import write_settings
from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.testing.platform import clean_environ

TURNS = 2_000
"""Turns in history: a commit each."""

SETTINGS = {
    "runtime.provider_adapter": "offline",
    "gateway.port": 0,
    "channels.enabled": [],
    "telemetry.log_level": "warning",
}

CLIENTS = 8
SLOWER = 8.0
"""How much longer a backup may take beside clients that ask all the time, each its next question after its answer."""


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Alone, then under load, of one running platform."""
    home = bench.folder / "home"
    await _history(bench, bench.sized(TURNS, least=20))
    write_settings(home / "trunkline.toml", SETTINGS)
    process = deployments.start_trunkline(home)
    try:
        address = await anyio.to_thread.run_sync(deployments.wait_until_ready, process)
        alone = await anyio.to_thread.run_sync(_backup, home)
        yield BenchRow(f"backup of {bench.sized(TURNS, least=20)} turns, alone", f"{alone:.1f} s")
        async with deployments.gateway_client(address, (home / "token").read_text().strip()) as way:
            loaded, turns = await _beside(way, home)
    finally:
        process.terminate()
        process.wait()
    ratio = loaded / alone
    said = f"{loaded:.1f} s, {ratio:.1f} times, beside {turns / loaded:.0f} turns/s"
    yield BenchRow(f"the same, {CLIENTS} clients ask", said, f"<= {SLOWER:.0f} times", ratio <= SLOWER)


async def _history(bench: Bench, turns: int) -> None:
    async with bench.store("home", sync=False) as store:
        for number in range(turns):
            messages = tuple(
                Message(id=f"m{number}-{role}", role=role, content=f"{number} {NOTE}")  # type: ignore[arg-type]
                for role in ("user", "assistant")
            )
            conversation = f"c{number // 6:05}"
            await store.append_conversation(
                AppendConversation(
                    block="main", conversation=conversation, messages=messages, actor="gateway"
                )
            )


def _backup(home: Path) -> float:
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    command = [sys.executable, "-m", "trunkline.cli.main", "backup", str(home / "b.tar"), "--force"]
    began = perf_counter()
    subprocess.run(command, env=environ, check=True, capture_output=True)
    return perf_counter() - began


async def _beside(way: deployments.Deployment, home: Path) -> tuple[float, int]:
    """How long a backup takes while clients ask, and how many answers they have meanwhile."""
    turns = 0

    async def ask() -> None:
        nonlocal turns
        conversation = deployments.Conversation()
        while True:
            await way.ask("What is in the garden?", conversation)
            turns += 1

    async with anyio.create_task_group() as clients:
        for _ in range(CLIENTS):
            clients.start_soon(ask)
        while turns < CLIENTS:  # noqa: ASYNC110 - until all are warm
            await anyio.sleep(0.05)
        before = turns
        seconds = await anyio.to_thread.run_sync(_backup, home)
        clients.cancel_scope.cancel()
    return seconds, turns - before
