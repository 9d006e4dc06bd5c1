"""Plugins in separate processes: they work like others, and harm only themselves."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from trunkline.config.editor import write_settings
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.tools.messages import CancelCall, ListTools, StoredResult, ToolOutcome
from trunkline.contracts.tools.subjects import CANCEL_CALL, LIST_TOOLS
from trunkline.testing.platform import Platform, clean_environ, platform
from trunkline.testing.tool_calls import call_tool
from trunkline_bus import new_id

from .corpus import GOOD, install

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

HOST = '''
import ctypes, os, sys, time, threading
import anyio
import trunkline
from trunkline import ToolContext

import time as clock
from datetime import datetime
clock.time = lambda: 0.0  # what monkeypatching looks like; only this process feels it
import msgspec
msgspec.json.decode = None if os.environ.get("PATCH") else msgspec.json.decode

@trunkline.tool(effect="read")
def pid() -> str:
    """Tell which process this is."""
    return str(os.getpid())

@trunkline.tool(effect="read")
def environ() -> str:
    """Tell the environment."""
    return "\\n".join(f"{k}={v}" for k, v in os.environ.items())

@trunkline.tool(effect="read")
async def jot(context: ToolContext, text: str) -> str:
    """Write and read memory."""
    await context.memory.write("note.md", text)
    found = await context.memory.read("note.md")
    names = [entry.path for entry in await context.memory.list("")]
    then = datetime(2020, 1, 1)
    hits = (await context.memory.search(text, kinds=["file"], min_confidence=0.1)).hits
    dated = (await context.memory.search(text, since=then)).hits
    assert [hit.path for hit in hits] == ["note.md"] and hits[0].why and not dated, (hits, dated)
    context.derived()
    return f"{found.content} in {names}"

@trunkline.tool(effect="read")
async def keep(context: ToolContext, text: str) -> str:
    """Remember, recall, change, link and forget."""
    memory = context.memory
    (chunk,) = (await memory.remember(text, tags=["apart"])).chunk_ids
    (other,) = (await memory.remember("other", tags=["apart"], fields={})).chunk_ids
    await memory.link(chunk, other, "supports")
    await memory.revise(chunk, confidence=0.9)
    held, listed = await memory.chunk(chunk), await memory.chunks(tags=["apart"])
    kinds = sorted({link.type for link in await memory.linked(chunk)})
    answer = (await memory.recall(text)).answer
    await memory.forget(chunk)
    return f"{answer} {held.metadata.confidence} {len(listed)} {kinds} {await memory.chunk(chunk)}"

@trunkline.tool(effect="read")
async def consult(context: ToolContext, purpose: str) -> str:
    """Ask a model."""
    try:
        return (await context.model.complete("Who are you?", purpose=purpose)).text
    except trunkline.CompletionError as error:
        return f"code {error.code}"

@trunkline.tool(effect="read")
async def talk(context: ToolContext) -> str:
    """Report, and go on for long."""
    context.report("half way")
    await anyio.sleep(60)
    return "never"

@trunkline.tool(effect="read")
def big(size: int) -> str:
    """Return much."""
    return "ä" * size

@trunkline.tool(effect="read")
def fail() -> str:
    """Fail."""
    raise trunkline.ToolError("Please be kind.")

@trunkline.tool(effect="write")
def die(file: str) -> str:
    """Have an effect and die."""
    with open(file, "a") as out:
        out.write("effect\\n")
    ctypes.string_at(0)
    return "never"

@trunkline.tool(effect="write")
def spoil(file: str) -> str:
    """Have an effect, and spoil what tells of it."""
    from trunkline.workers.plugin_process import tool_service
    with open(file, "a") as out:
        out.write("spoilt\\n")
    tool_service.PluginToolEnded = None
    return "never told"

@trunkline.tool(effect="read")
def leak() -> str:
    """Take two gigabytes."""
    kept = bytearray(2 * 1024 ** 3)
    return str(len(kept))

@trunkline.tool(effect="read", timeout=1.0)
async def stall() -> str:
    """Hold the event loop up."""
    while True:
        pass

@trunkline.hookimpl
def trunkline_tools():
    return [pid, environ, jot, keep, consult, talk, big, fail, die, spoil, leak, stall]
'''

APART = {"plugins.acme-host.isolation": "process", "plugins.acme-host.isolation_memory": 700}


@asynccontextmanager
async def running(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = HOST, **config: Any
) -> AsyncIterator[Platform]:
    """A platform with a good plugin inside and another one apart."""
    site = folder / "site"
    install(site, "a-good", GOOD)
    install(site, "acme-host", source)
    monkeypatch.syspath_prepend(str(site))
    environ = {**clean_environ(), "OPENAI_API_KEY": "sk-very-secret", "GRANTED": "given"}
    settings = {
        **APART,
        "plugins.stall_timeout": 4.0,
        "plugins.max_crashes": 0,
        "runtime.provider_adapter": "offline",
    }
    (folder / "home").mkdir()
    write_settings(folder / "home" / "trunkline.toml", {**settings, **config})
    async with platform(folder / "home", config=config, environ=environ) as found:
        yield found


async def call(found: Platform, name: str, key: str = "", **arguments: Any) -> ToolOutcome:
    return await call_tool(found.bus, name, arguments, call=key or new_id("call"))


async def offered(found: Platform, *names: str) -> None:
    """Wait until the catalogue holds these tools."""
    with anyio.fail_after(60):
        while True:
            catalogue = await found.bus.call(LIST_TOOLS, ListTools(block="main"))
            if {*names} <= {spec.name for spec in catalogue.tools or ()}:
                return
            await anyio.sleep(0.05)


async def test_an_isolated_plugin_works_like_one_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tools are in the catalogue, run in another process, reach memory of their block and a model, fail with their
    own words, return more than a message holds, show progress, are cancelled, and see no secrets."""
    async with running(tmp_path, monkeypatch) as found:
        await offered(found, "pid", "good")
        there = int((await call(found, "pid")).output)
        assert there != os.getpid() and psutil.Process(there).nice() >= 5
        said = (await call(found, "environ")).output
        assert "sk-very-secret" not in said and "OPENAI_API_KEY" not in said and "GRANTED" not in said
        assert (found.instance.bus.password or "?") not in said
        jotted = await call(found, "jot", text="tulips")
        assert jotted.output.startswith("tulips in ") and jotted.derived is True
        kept = (await call(found, "keep", text="tulips like lime")).output
        assert kept == "tulips like lime 0.9 2 ['context_of', 'follows', 'supports'] None"
        assert "without a model" in (await call(found, "consult", purpose="repl")).output
        assert (await call(found, "consult", purpose="No Word")).output == "code invalid_request"
        assert (await call(found, "fail")).output == "Please be kind."
        big = (await call(found, "big", size=500_000)).stored
        assert isinstance(big, StoredResult) and big.kept == 500_000
        wrong = await call(found, "big", size="many")
        assert wrong.status == "error" and "must be a whole number" in wrong.output
        await cancelled(found)


async def cancelled(found: Platform) -> None:
    key = new_id("call")
    async with anyio.create_task_group() as tasks:
        outcomes: list[ToolOutcome] = []

        async def ask() -> None:
            outcomes.append(await call(found, "talk", key))

        tasks.start_soon(ask)
        with anyio.fail_after(60):
            while not outcomes:
                await anyio.sleep(0.2)
                await found.bus.publish(CANCEL_CALL, CancelCall(reason="the test said so"), call=key)
    assert "was stopped before it ended: the test said so" in outcomes[0].output


async def test_an_isolated_plugin_harms_only_its_own_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segmentation fault in the middle of a write is an unknown outcome in the ledger, and so is a fault after it;
    two gigabytes are a failed call, a loop that blocks the process is a timeout. Each time the process restarts and
    other plugins are not affected."""
    async with running(tmp_path, monkeypatch) as found:
        await offered(found, "die")
        spoilt = await call(found, "spoil", file=str(tmp_path / "spoilt"))
        assert (spoilt.status, (tmp_path / "spoilt").read_text()) == ("unknown", "spoilt\n")
        effect, key = tmp_path / "effects", new_id("call")
        unknown = await call(found, "die", key, file=str(effect))
        assert unknown.status == "unknown" and "outcome of die is unknown" in unknown.output
        assert (await call(found, "good")).output == "a good answer"
        again = await call(found, "die", key, file=str(effect))
        assert again.status == "unknown" and again.repeated and effect.read_text() == "effect\n"
        await back(found)
        leak = await call(found, "leak")
        assert leak.status == "error" and (
            "failed unexpectedly" in leak.output or "ended while" in leak.output
        )
        stall = await call(found, "stall")
        assert stall.status == "error"
        assert (await call(found, "good")).output == "a good answer"
        await back(found)
        answer = await found.say("/tool pid")
        assert answer.ended.code is None and re.search(r"\d+", answer.text)


async def back(found: Platform) -> None:
    """Wait until the plugin's process serves again."""
    with anyio.fail_after(60):
        while (await call(found, "pid")).status != "ok":  # noqa: ASYNC110
            await anyio.sleep(0.1)


async def test_its_process_ends_with_the_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes started in its group end as well."""
    async with running(tmp_path, monkeypatch) as found:
        await offered(found, "pid")
        process = psutil.Process(int((await call(found, "pid")).output))
    with anyio.fail_after(60):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110
            await anyio.sleep(0.02)


SPOOF = '''
import os
import trunkline

@trunkline.tool(effect="read", timeout=30)
async def spoof() -> str:
    """Try everything with the credentials of this process."""
    import nats
    denied = []
    async def failed(error):
        denied.append(str(error))
    link = await nats.connect(
        os.environ["TRUNKLINE_BUS__URL"], user=os.environ["TRUNKLINE_BUS__USER"],
        password=os.environ["TRUNKLINE_BUS__PASSWORD"], error_cb=failed,
        inbox_prefix=b"_INBOX_" + os.environ["TRUNKLINE_BUS__USER"].encode(),
    )
    for subject in SUBJECTS:
        await link.publish(subject, b"{}")
    heard = ["trunkline.>", "_INBOX.>", ">", "$JS.>", "trunkline.x.other.tools.run", "trunkline.cmd.tools.call"]
    for subject in heard:
        await link.subscribe(subject)
    await link.flush()
    import anyio
    with anyio.move_on_after(45):
        while len(denied) < len(SUBJECTS) + len(heard):
            await anyio.sleep(0.05)
    await link.close()
    return f"{len(denied)} of {len(SUBJECTS) + len(heard)} denied"

SUBJECTS = [
    "trunkline.turn.inbox.conv1", "trunkline.journal.turn.c.t", "trunkline.journal.effect.c", "trunkline.feed.turn.c.t",
    "trunkline.cmd.gateway.cli.send", "trunkline.cmd.memory.read", "trunkline.cmd.memory.write",
    "trunkline.cmd.tools.call", "trunkline.cmd.model.complete", "trunkline.cmd.conversation.append",
    "trunkline.evt.memory.files.changed",
    "trunkline.x.other.tools.run", "trunkline.x.acme-host.tools.run", "trunkline.dead.letters",
    "$KV.workers.tools", "$KV.pulse.x", "$O.claims.C.x", "$JS.API.STREAM.LIST", "$JS.API.STREAM.DELETE.INBOX",
    "$JS.API.DIRECT.GET.JOURNAL", "$JS.API.STREAM.MSG.GET.INBOX", "$JS.ACK.INBOX.part-0.1.1.1.1.1", "_INBOX.abc.def",
    "_INBOX_tools.abc", "$SRV.PING", "anything",
]

@trunkline.hookimpl
def trunkline_tools():
    return [spoof]
'''


async def test_a_plugins_credentials_limit_it_to_its_own_subjects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own user and password it can publish and subscribe only to its own subjects."""
    async with running(tmp_path, monkeypatch, SPOOF) as found:
        await offered(found, "spoof")
        assert (await call(found, "spoof")).output == "32 of 32 denied"


CHANNEL = """
from pathlib import Path
import os
import trunkline
from trunkline.api.channel import Channel
from trunkline.api.gateway import SendMessage

class Bell(Channel):
    name = "bell"

    async def run(self, gateway):
        accepted = await gateway.send(SendMessage(content="hello from the bell"))
        text = ""
        async for event in gateway.watch(accepted.conversation, accepted.turn):
            text += getattr(event, "text", "")
        Path("OUT").write_text(f"{os.getpid()} {type(event).__name__} {text}")

@trunkline.hookimpl
def trunkline_channels():
    return [Bell()]
"""


async def test_an_isolated_channel_talks_to_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hands a message in under its own name, and reads the answer from the feed to its end."""
    out = tmp_path / "heard"
    config = {"plugins.acme-host.isolation_channels": ["bell"], "channels.enabled": ["bell"]}
    async with running(tmp_path, monkeypatch, CHANNEL.replace("OUT", str(out)), **config):
        with anyio.fail_after(60):
            while not out.exists() or not out.read_text():  # noqa: ASYNC110
                await anyio.sleep(0.05)
    process, last, *_ = out.read_text().split(" ", 2)
    assert int(process) != os.getpid() and last == "TurnEnded"


def listed(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "trunkline.toml").write_text(text)
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(folder / "home"), "PYTHONPATH": str(folder / "site")}
    command = [sys.executable, "-m", "trunkline.cli.main", "plugins", "list"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_plugins_that_cannot_be_isolated_are_refused(tmp_path: Path) -> None:
    """A model adapter is part of every turn, so it runs inside a worker only, and the list says so; a misspelt kind
    of isolation is an error of the configuration."""
    install(
        tmp_path / "site",
        "acme-host",
        "import trunkline\n@trunkline.hookimpl\ndef trunkline_models():\n    return []\n",
    )
    refused = listed(tmp_path, '[plugins.acme-host]\nisolation = "process"\n')
    assert refused.returncode == 0
    assert "acme-host is refused: It is set to run in its own process, but trunkline_models works only" in (
        refused.stdout
    )
    wrong = listed(tmp_path, '[plugins.acme-host]\nisolation = "proces"\n')
    assert (
        wrong.returncode == 1 and "plugins.acme-host.isolation" in wrong.stderr and "process" in wrong.stderr
    )


async def test_policies_and_scopes_apply_to_an_isolated_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A denied call never reaches its process; the process opens what the scope permits, and no more."""
    (tmp_path / "far").write_text("far away")
    async with running(tmp_path, monkeypatch, SCOPED) as found:
        await offered(found, "look")
        assert (await call(found, "look", path=str(tmp_path / "far"))).status == "error"
        await write_as_owner(
            found, "blocks/main/block.toml", '[permissions]\nscope = "system"\napprovals = "none"\n'
        )
        assert (await call(found, "look", path=str(tmp_path / "far"))).output == "far away"
        assert "no agent may use" in (await call(found, "look", path=str(found.home.token_file))).output
        deny = '{"subject": "*", "resource": "tool:native:acme-host:*", "action": "read", "effect": "deny"}'
        await write_as_owner(found, "policies/no-acme.json", deny)
        assert "no-acme" in (await call(found, "look", path="x")).output


SCOPED = '''
import trunkline
from trunkline import BlockPath, ToolContext

@trunkline.tool(effect="read")
def look(context: ToolContext, path: BlockPath) -> str:
    """Read a file."""
    with context.files() as folder:
        return folder.read_bytes(path).decode()

@trunkline.hookimpl
def trunkline_tools():
    return [look]
'''


async def write_as_owner(found: Platform, path: str, text: str) -> None:
    """Write a file into memory as its owner."""
    await found.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={path: text}, actor="owner"))
