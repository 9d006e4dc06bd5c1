"""Homes, buses and backups of older and of newer versions."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline.config.home_format import FORMAT_VERSION, NewerFormatError, read_format, write_format
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.topology import topology
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.errors import TrunklineError
from trunkline.home.backup import BackupManifest, read_backup_manifest, restore_backup
from trunkline.home.bus_migration import (
    BUS_FORMAT,
    BusMigrationStep,
    migrate_bus,
    read_bus_format,
    with_format,
)
from trunkline.home.migration import migrate
from trunkline.home.migration_steps import MIGRATION_STEPS, MigrationStep
from trunkline.home.paths import Home
from trunkline.home.restore_transaction import RestorePlan
from trunkline.testing.platform import clean_environ, platform
from trunkline.workers.monitor.journal import RAW_JOURNAL
from trunkline.workers.monitor.replay import replay
from trunkline_bus import Bus, apply
from trunkline_bus.streams.admin import resend


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def used(path: Path) -> Home:
    """A home of before there was a form."""
    home = Home.at(path)
    home.prepare()
    (home.memory / "notes.md").write_text("one\ntwo\nthree\n")
    return home


def cli(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", *arguments],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


# The home ----------------------------------------------------------------------------------------------------


def test_a_new_home_has_this_version_and_an_older_one_is_migrated(tmp_path: Path) -> None:
    """One step after the other, once; a home without a version counts as version 0."""
    fresh = Home.at(tmp_path / "fresh")
    fresh.prepare()
    assert read_format(fresh.path) is None
    assert migrate(fresh) == []
    older = used(tmp_path / "older")
    assert read_format(older.path).format == 0  # type: ignore[union-attr]
    assert migrate(older) == list(MIGRATION_STEPS)
    assert migrate(older) == []
    for home in (fresh, older):
        mark = read_format(home.path)
        assert mark is not None and mark.format == FORMAT_VERSION == MIGRATION_STEPS[-1].to and mark.version


def test_every_step_may_be_run_twice(tmp_path: Path) -> None:
    """A crash just before the mark runs a step again, and the home is the same."""
    home = used(tmp_path)
    for step in MIGRATION_STEPS:
        step.run(home)
        once = tree(home.path)
        step.run(home)
        assert tree(home.path) == once
    assert [step.to for step in MIGRATION_STEPS] == list(range(1, FORMAT_VERSION + 1))


@pytest.mark.parametrize("command", [("say", "hello"), ("up", "--port", "0"), ("run", "memory")])
def test_a_newer_home_is_refused_and_unchanged(command: tuple[str, ...], tmp_path: Path) -> None:
    """The error has the fault, the place and the fix; not a byte is changed, and doctor reports the same."""
    home = used(tmp_path / "home")
    (home.path / "form.json").write_text(
        json.dumps({"form": FORMAT_VERSION + 1, "version": "9.9", "later": True})
    )
    before = tree(home.path)
    env = ("--bus", "nats://127.0.0.1:1") if command[0] == "run" else ()
    done = cli(home.path, *command, *env)
    assert done.returncode == 1, done.stdout
    for words in (
        str(home.path),
        "'9.9'",
        f"home version {FORMAT_VERSION + 1}",
        "Update Trunkline",
        "Nothing was changed",
    ):
        assert words in done.stderr, done.stderr
    after = tree(home.path)
    assert {name: text for name, text in after.items() if not name.startswith("logs/")} == before


def test_doctor_shows_the_home_version(tmp_path: Path) -> None:
    """Fine, or an error with the way out; a mark that cannot be read is one, too."""
    home = used(tmp_path)
    for content, status in (
        ('{"form":1,"version":"0"}', "ok"), (f'{{"form":{FORMAT_VERSION + 1},"version":"9.9"}}', "error"),
        ("{", "error"),
    ):  # fmt: skip
        (home.path / "form.json").write_text(content)
        found = json.loads(cli(home.path, "doctor", "--json").stdout)
        assert next(one["status"] for one in found["checks"] if one["id"] == "home.version") == status


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from datetime import UTC, datetime
from pathlib import Path
from test_migration import shouting
from trunkline.home.paths import Home
from trunkline.home.restore_transaction import RestorePlan
from trunkline.home.migration import migrate
migrate(Home.at(Path({home!r})), shouting(int({after})))
"""


def shouting(die_after: int = -1) -> tuple[MigrationStep, ...]:
    """Steps that rewrite files one by one; the second kills its process after so many of them."""

    def split(home: Home) -> None:
        for number, line in enumerate((home.memory / "notes.md").read_text().splitlines()):
            _whole(home.memory / f"line-{number}.md", line)

    def shout(home: Home) -> None:
        for number, path in enumerate(sorted(home.memory.glob("line-*.md"))):
            if number == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            _whole(path, path.read_text().upper())

    return (
        MigrationStep(1, "nothing", lambda home: None),
        MigrationStep(2, "splits the notes", split),
        MigrationStep(3, "shouts", shout, copies=("memory", "trunkline.toml")),
    )


def _whole(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_migration_step_is_resumed_after_a_crash(after: int, tmp_path: Path) -> None:
    """The step is killed between two files: the version is the old one, the rewritten file was copied first, and the
    next start ends the step with the same result as without the crash."""
    whole = used(tmp_path / "whole")
    migrate(whole, shouting())
    home = used(tmp_path / "home")
    program = KILLED.format(tests=str(Path(__file__).parent), home=str(home.path), after=after)
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert read_format(home.path).format == 2  # type: ignore[union-attr]
    migrate(home, shouting())
    assert read_format(home.path).format == 3  # type: ignore[union-attr]
    assert tree(home.memory) == tree(whole.memory)
    assert (home.memory / "line-0.md").read_text() == "ONE"
    assert (home.path / "before-3" / "memory" / "line-0.md").read_text() == "one"
    assert not list(home.path.glob(".restore-*"))


def test_stored_records_keep_the_keys_that_older_programs_read(tmp_path: Path) -> None:
    """The home, a restore plan and a backup store the format as ``form``; an older program refuses a newer one."""
    write_format(tmp_path, 7)
    assert json.loads((tmp_path / "form.json").read_bytes())["form"] == 7
    plan = RestorePlan(out=(), into=(), format=7)
    manifest = BackupManifest(schema=1, version="0", created=datetime.now(UTC), holds=(), format=7)
    for record in (plan, manifest):
        stored = msgspec.json.encode(record, enc_hook=str)
        assert json.loads(stored)["form"] == 7
        assert msgspec.json.decode(stored, type=type(record)) == record


# Backups -----------------------------------------------------------------------------------------------------


def test_backups_of_other_forms(tmp_path: Path) -> None:
    """One of a newer home is refused; one of before there was a form is brought forward at the next start; nothing is
    restored into a home that a newer version wrote."""
    assert cli(tmp_path / "home", "say", "hello").returncode == 0
    assert cli(tmp_path / "home", "backup", str(tmp_path / "now.tar")).returncode == 0
    assert read_backup_manifest(tmp_path / "now.tar").format == FORMAT_VERSION
    older, newer = (
        relabelled(tmp_path, "older", form=None),
        relabelled(tmp_path, "newer", form=FORMAT_VERSION + 1),
    )
    target = Home.at(tmp_path / "target")
    with pytest.raises(TrunklineError, match="newer") as refused:
        restore_backup(target, newer)
    assert "Update Trunkline" in refused.value.hint and not target.path.exists()
    restore_backup(target, older)
    assert read_format(target.path).format == 0  # type: ignore[union-attr]
    assert cli(target.path, "say", "hello").returncode == 0
    assert read_format(target.path).format == FORMAT_VERSION  # type: ignore[union-attr]
    write_format(target.path, FORMAT_VERSION + 1)
    before = tree(target.path)
    with pytest.raises(NewerFormatError):
        restore_backup(target, tmp_path / "now.tar", replace=True)
    assert tree(target.path) == before


def relabelled(folder: Path, name: str, form: int | None) -> Path:
    """The backup, with another form in its label; None takes it out, as it was before there was one."""
    import io
    import tarfile

    target = folder / f"{name}.tar"
    with tarfile.open(folder / "now.tar") as source, tarfile.open(target, "w") as tar:
        for member in source:
            data = source.extractfile(member)
            text = data.read() if data else b""
            if member.name == "backup.json":
                label = json.loads(text)
                label |= {"form": form}
                text = json.dumps({key: value for key, value in label.items() if value is not None}).encode()
                member.size = len(text)
            tar.addfile(member, io.BytesIO(text) if data else None)
    return target


# The bus -----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_bus_stores_its_version_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    """The mark is in the stream's metadata; older streams get it without losing anything; newer ones stay as they are,
    settings included."""
    steps: list[int] = []

    def step(to: int) -> BusMigrationStep:
        async def run(bus: Bus) -> None:
            steps.append(to)

        return BusMigrationStep(to, "notes that it ran", run)

    async with platform(tmp_path, workers=("memory",)) as running:
        assert (await read_bus_format(running.bus))[0] == BUS_FORMAT  # type: ignore[index]
        await apply(running.bus, with_format(topology(), 0))
        assert await migrate_bus(running.bus, (step(1), step(2)))
        assert steps == [1, 2]
        await apply(running.bus, with_format(topology(), BUS_FORMAT + 1))
    with pytest.raises(TrunklineError, match=f"bus version {BUS_FORMAT + 1}") as refused:
        async with platform(tmp_path, workers=("memory",), config={"retention.journal_days": 3}):
            raise AssertionError("it started")
    assert "Update Trunkline" in refused.value.hint and "nats://" in str(refused.value)


def envelope(payload: dict[str, Any], **scope: str) -> bytes:
    """A message as the first version wrote it."""
    return msgspec.json.encode(
        {"id": "evt_1", "time": "2026-01-01T00:00:00Z", "source": "old", **scope, "data": payload}
    )


def requested(turn: str, content: str) -> dict[str, Any]:
    return {
        "type": "turn.requested.v1", "turn": turn, "block": "main", "conversation": "conv_old",
        "message": {"id": f"msg_{turn}", "role": "user", "content": content, "created_at": "2026-01-01T00:00:00Z"},
        "actor": "channel:test", "channel": "test",
    }  # fmt: skip


CALL = {"id": "call_1", "name": "write_file", "arguments": {"path": "old.md", "content": "kept"}}
OLD: list[list[dict[str, Any]]] = [
    [
        {"type": "started", "request": requested("turn_old", "write it"), "model": "offline", "context": []},
        {"type": "model_call_planned", "step": 0},
    ],
    [
        {"type": "model_call_finished", "step": 0, "tool_calls": [CALL], "finish_reason": "tool_calls"},
        {"type": "tool_planned", "call": CALL, "key": "KEY"},
    ],
    [
        {"type": "approval_asked", "call_id": "call_1", "call_hash": "hash", "question": "Really?"},
        {"type": "parked"},
    ],
]


def old_store(key: str) -> list[bytes]:
    """A parked turn's journal, byte for byte as the first version wrote it."""
    scope = {"block": "main", "conversation": "conv_old", "turn": "turn_old"}
    text = json.dumps(OLD, separators=(",", ":")).replace("KEY", key)
    return [
        envelope(
            {"type": "journal.record.v1", "turn": "turn_old", "epoch": 1, "owner": "m", "entries": entries},
            **scope,
        )
        for entries in json.loads(text)
    ]


@pytest.mark.anyio
async def test_work_in_progress_of_an_older_version_is_ended(tmp_path: Path) -> None:
    """Streams without a version, a waiting message, and a turn that waits for a person, as the first version wrote
    them: the message is answered, and the turn continues with the decision. A replay reproduces the bytes of older
    records."""
    from trunkline_bus import key_of

    async with platform(tmp_path, workers=("memory",)) as running:
        bus = running.bus
        await apply(bus, with_format(topology(), 0))
        keys = {"conversation": "conv_old", "turn": "turn_old"}
        for number, data in enumerate(old_store(key_of("turn_old", "0", "0", "call_1"))):
            await resend(bus, JOURNAL, data, msg_id=f"old-{number}", headers={}, **keys)
        raw = [stored.data async for stored in bus.history(RAW_JOURNAL, **keys)]
        assert [record.same for record in replay("turn_old", raw).records] == [True, True, True]
        waits = envelope(
            requested("turn_waits", "hello"), block="main", conversation="conv_old", turn="turn_waits"
        )
        await resend(bus, INBOX, waits, msg_id="turn_waits", headers={}, conversation="conv_old")
    async with platform(tmp_path) as running:
        assert (await read_bus_format(running.bus))[0] == BUS_FORMAT  # type: ignore[index]
        state = await running.gateway.turn("turn_old")
        assert state.status == "parked"
        await running.gateway.decide("turn_old", "call_1", "hash", allow=False)
        messages: tuple[Message, ...] = ()
        import anyio

        with anyio.fail_after(30):
            while len([m for m in messages if m.role == "assistant" and m.content]) < 2:
                messages = (await running.gateway.conversation("conv_old", include_tools=True)).messages
                await anyio.sleep(0.05)
        assert [m.content for m in messages if m.role == "user"] == ["write it", "hello"]
        raw = [stored.data async for stored in running.bus.history(RAW_JOURNAL, **keys)]
        assert replay("turn_old", raw).same
