"""ARCH-1, ARCH-7 and ARCH-9: memory outlives the program, leaves in one archive, and always has a history."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.testing.script import words

from .client import Client
from .conftest import ConformancePlatform, OpenPlatform, client_of
from .processes import Up, git, run_program

pytestmark = pytest.mark.anyio

Start = Callable[..., Up]


async def live_a_little(client: Client) -> str:
    """A conversation that writes memory by the offline adapter; returns its id."""
    reply = await client.say("/tool memory_write path=garden.md content='Tomatoes want sun.'")
    assert "garden.md" in reply.text, reply
    await client.say(
        "/tool memory_write path=garden.md content='Tomatoes want sun and water.'", reply.conversation
    )
    return reply.conversation


def read_conversation(folder: Path, id: str) -> list[dict[str, Any]]:
    """A conversation's messages by nothing but JSON."""
    (file,) = folder.glob(f"blocks/*/conversations/*/{id}.jsonl")
    header, *messages = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert header["id"] == id and header["title"]
    return messages


async def test_ARCH_1_memory_is_readable_with_everything_stopped(up: Start, environ: dict[str, str]) -> None:
    """No process runs: documents and conversations are text, history is git's own, the index is a SQLite file that the
    sqlite3 module opens, and nothing else is there."""
    running = up(TRUNKLINE_RUNTIME__PROVIDER_ADAPTER="offline")
    async with client_of(running.url, running.token) as client:
        conversation = await live_a_little(client)
    running.stop()
    memory = running.home / "memory"
    plain = [
        file for file in memory.rglob("*") if file.is_file() and ".git" not in file.relative_to(memory).parts
    ]
    for file in plain:
        assert "\0" not in file.read_text(encoding="utf-8"), file
        assert file.suffix in (".md", ".toml", ".jsonl", ".json", ".txt") or file.name == ".gitignore", file
    assert (memory / "blocks/main/garden.md").read_text() == "Tomatoes want sun and water."
    assert "Tomatoes want sun and water." in json.dumps(read_conversation(memory, conversation))
    assert git(memory, "fsck", "--strict") == ""
    assert git(memory, "status", "--porcelain") == ""
    assert len(git(memory, "log", "--format=%h %an %s", "--", "blocks/main/garden.md").splitlines()) == 2
    assert git(memory, "show", "HEAD:blocks/main/garden.md") == "Tomatoes want sun and water."
    databases = [
        file for file in (running.home / "cache").rglob("*") if file.read_bytes()[:15] == b"SQLite format 3"
    ]
    assert databases
    for file in databases:
        with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as database:
            assert database.execute("select count(*) from sqlite_master").fetchone()[0] > 0


class Gate:
    """A plugin whose tool waits to be let through."""

    def __init__(self) -> None:
        self.reached, self.opened = anyio.Event(), anyio.Event()

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def gate() -> str:
            """Wait at the gate."""
            self.reached.set()
            await self.opened.wait()
            return "let through"

        return [gate]


def unpacked(archive: Path, folder: Path) -> Path:
    """The archive, opened with the tar program."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True, timeout=30)
    return folder / "memory"


async def test_ARCH_7_PA_T18_one_archive_exports_everything(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    """``memory_export``, asked for while another conversation streams, harms no stream; tar and git read all of it:
    documents, preferences, conversations, and the whole history. No token is in it. Unpacked elsewhere as a memory
    root, its conversations go on."""
    gate = Gate()
    async with open_platform(plugins=[gate]) as running:
        client = running.client
        wrote = await client.say(
            'call:memory_write {"path": "garden.md", "content": "sun"} ;; call:memory_write '
            '{"path": "garden.md", "content": "water"} ;; '
            'call:memory_write {"path": "/preferences.toml", "content": "model = \\"openai/kept\\"\\n"} ;; say:done'
        )
        assert wrote.code is None
        streamed = []
        async with anyio.create_task_group() as tasks:

            async def stream() -> None:
                streamed.append(await client.say("slow:20:10 ;; call:gate {} ;; slow:20:10"))

            tasks.start_soon(stream)
            with anyio.fail_after(60):
                await gate.reached.wait()
            exported = await client.say("call:memory_export {} ;; quote")
            assert streamed == [], "the export was made while the other conversation streamed"
            gate.opened.set()
        assert streamed[0].text == words(20) * 2 and streamed[0].code is None
        found = json.loads(exported.results()[0])
        archive = running.workspace / found["path"]
        token, memory = running.platform.token, running.platform.home.memory
        assert archive.stat().st_size == found["size"]
        read = unpacked(archive, tmp_path / "elsewhere")
        assert (read / "blocks/main/garden.md").read_text() == "water"
        assert (read / "preferences.toml").read_text() == 'model = "openai/kept"\n'
        assert read_conversation(read, wrote.conversation)[0]["role"] == "user"
        assert git(read, "status", "--porcelain") == "" and git(read, "fsck", "--strict") == ""
        exported_log, log = git(read, "log", "--format=%H").split(), git(memory, "log", "--format=%H").split()
        assert exported_log == log[-len(exported_log) :]
        assert git(read, "show", "HEAD~0:AGENT.md") == (memory / "AGENT.md").read_text()
        assert token not in everything_in(read) and token.encode() not in archive.read_bytes()
        missing = {file.name for file in memory.rglob("*.md")} - {file.name for file in read.rglob("*.md")}
        assert not missing
    async with open_platform({"runtime.memory_root": str(read)}) as other:
        assert (await other.client.page()).total >= 1
        reply = await other.client.say("roles", wrote.conversation)
        assert reply.text.startswith("system user assistant tool")
        assert other.provider.answer_requests[-1].body["model"] == "kept"


def everything_in(repository: Path) -> str:
    """Every object of a repository, as text."""
    return git(repository, "cat-file", "--batch-all-objects", "--batch", "--buffer").replace("\0", " ")


async def test_ARCH_7_the_command_line_exports_with_nothing_running(
    up: Start, environ: dict[str, str], tmp_path: Path
) -> None:
    """PA-F6: export works in every state of the system."""
    running = up(TRUNKLINE_RUNTIME__PROVIDER_ADAPTER="offline")
    async with client_of(running.url, running.token) as client:
        conversation = await live_a_little(client)
    running.stop()
    done = run_program(environ, "memory", "export", str(tmp_path / "all.tar"))
    assert done.returncode == 0, done.stderr
    read = unpacked(tmp_path / "all.tar", tmp_path / "read")
    assert len(read_conversation(read, conversation)) >= 4
    assert (read / "blocks/main/garden.md").read_text() == "Tomatoes want sun and water."


def as_a_file(memory: Path) -> None:
    memory.mkdir(parents=True)
    (memory / ".git").write_text("gitdir: /nowhere\n")


def with_a_lost_head(memory: Path) -> None:
    memory.mkdir(parents=True)
    git(memory, "init", "-q", "-b", "main")
    (memory / ".git/refs/heads/main").write_text("1" * 40 + "\n")


def without_its_objects(memory: Path) -> None:
    memory.mkdir(parents=True)
    git(memory, "init", "-q", "-b", "main")
    (memory / "a.md").write_text("a")
    git(memory, "add", ".")
    git(memory, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
    for folder in (memory / ".git/objects").iterdir():
        shutil.rmtree(folder)


@pytest.mark.parametrize("broken", [as_a_file, with_a_lost_head, without_its_objects])
def test_ARCH_9_no_start_without_history(
    environ: dict[str, str], home: Path, broken: Callable[[Path], None]
) -> None:
    """PA-T6: the start is refused in a sentence that names the phase; existing files are unchanged."""
    broken(home / "memory")
    before = sorted(str(file.relative_to(home)) for file in (home / "memory").rglob("*") if file.is_file())
    done = run_program(environ, "up")
    assert done.returncode == 1 and "ready" not in done.stdout
    assert "memory and its history" in done.stderr and "version history" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "Hint:" in done.stderr
    after = sorted(str(file.relative_to(home)) for file in (home / "memory").rglob("*") if file.is_file())
    assert [file for file in after if "/trunkline/" not in file] == before


async def test_ARCH_9_PA_T6_history_gives_previous_states(open_platform: OpenPlatform) -> None:
    """After three writes there are three records, newest first, each with the content before it; ``limit`` is
    applied; the content at the first commit is the first text; a deleted file can still be read."""
    async with open_platform() as running:
        writes = " ;; ".join(
            f'call:memory_write {{"path": "note.md", "content": "{text}"}}'
            for text in ("one", "two", "three")
        )
        reply = await running.client.say(f'{writes} ;; call:memory_history {{"path": "note.md"}} ;; say:done')
        records = json.loads(unwrap_tool_result(reply.results()[-1]))
        assert [record["previous"] for record in records] == ["two", "one", None]
        assert all(
            set(record) == {"hash", "message", "author", "timestamp", "previous"} for record in records
        )
        assert [record["hash"] for record in records] == hashes(running, "blocks/main/note.md")
        first = records[-1]["hash"]
        more = await running.client.say(
            'call:memory_history {"path": "note.md", "limit": 1} ;; '
            f'call:memory_history {{"path": "note.md", "commit": "{first}"}} ;; '
            'call:memory_delete {"path": "note.md"} ;; '
            f'call:memory_history {{"path": "note.md", "commit": "{first}"}} ;; say:done'
        )
        one, at_first, _, still = [json.loads(unwrap_tool_result(result)) for result in more.results()]
        assert len(one) == 1 and at_first["content"] == still["content"] == "one"


def hashes(running: ConformancePlatform, path: str) -> list[str]:
    return git(running.platform.home.memory, "log", "--format=%H", "--", path).split()


async def test_PA_T22_the_transport_stores_nothing_lasting(up: Start, environ: dict[str, str]) -> None:
    """With the bus's whole store deleted between two runs, conversations, memory, blocks and preferences are there,
    and a conversation continues."""
    offline = {"TRUNKLINE_RUNTIME__PROVIDER_ADAPTER": "offline"}
    running = up(**offline)
    async with client_of(running.url, running.token) as client:
        conversation = await live_a_little(client)
        made = await client.http.post(
            "/api/blocks", json={"name": "shed", "config": {"description": "Tools"}}
        )
        assert made.status_code == 201
        before = await client.whole(conversation)
        page = await client.page()
        await client.say(
            '/tool memory_write path=/preferences.toml content="model = \\"offline\\""', conversation
        )
    token = running.token
    running.stop()
    shutil.rmtree(running.home / "bus")
    shutil.rmtree(running.home / "cache")
    again = up(**offline)
    assert again.token == token
    async with client_of(again.url, token) as client:
        after = await client.whole(conversation)
        assert after.messages[: len(before.messages)] == before.messages
        assert (await client.page()).total == page.total
        shed = (await client.http.get("/api/blocks/shed")).json()
        assert shed["config"]["description"] == "Tools"
        read = await client.say("/tool memory_read path=garden.md", conversation)
        assert "Tomatoes want sun and water." in read.text
        assert "offline" in (await client.say("/tool memory_read path=/preferences.toml", conversation)).text
        assert len((await client.conversation(conversation)).messages) > len(before.messages) / 2
    again.stop()


async def test_PA_T20_the_token_is_stored_in_one_place(
    up: Start, environ: dict[str, str], tmp_path: Path
) -> None:
    """After a day's work, wrong credentials and a crash among it, the token is in its file, with mode 0600, and in
    no output, log, memory, history, trace, bus store or export."""
    running = up(TRUNKLINE_RUNTIME__PROVIDER_ADAPTER="offline", TRUNKLINE_TELEMETRY__LOG_LEVEL="debug")
    token = running.token
    async with client_of(running.url, token) as client:
        await live_a_little(client)
        for wrong in (f"Bearer {token}x", f"Bearer x{token}", f"Basic {token}"):
            response = await client.http.get("/conversations", headers={"authorization": wrong})
            assert response.status_code == 401
        assert (await client.http.get(f"/nowhere?token={token[:-1]}")).status_code == 404
    printed = [
        run_program(environ, *command)
        for command in (("config",), ("doctor",), ("trace", "last"), ("plugins", "list"))
    ]
    exported = run_program(environ, "memory", "export", str(tmp_path / "all.tar"))
    assert exported.returncode == 0, exported.stderr
    running.kill()
    second = up(TRUNKLINE_RUNTIME__PROVIDER_ADAPTER="offline")
    second.stop()
    assert (running.home / "token").stat().st_mode & 0o777 == 0o600
    for done in (*printed, exported):
        assert token not in done.stdout + done.stderr
    holders = {file for file in files_below(tmp_path) if token.encode() in file.read_bytes()}
    assert holders == {running.home / "token"}
    assert token not in everything_in(running.home / "memory")
    assert token not in everything_in(unpacked(tmp_path / "all.tar", tmp_path / "read"))


def files_below(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
