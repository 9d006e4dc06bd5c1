"""``trunkline conversations`` and ``trunkline version``."""

import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Beside = Callable[..., Awaitable["subprocess.CompletedProcess[str]"]]


@pytest.fixture
async def beside(home: Path, trunkline: Run) -> AsyncIterator[Beside]:
    """Runs ``trunkline ARGUMENTS`` beside a platform, so that no command has to start one."""

    async def run(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return await anyio.to_thread.run_sync(partial(trunkline, *arguments, stdin=stdin))

    async with platform(home):
        yield run


async def test_conversations_are_listed_with_a_title_and_searched(beside: Beside) -> None:
    """The newest first, in a table and as JSON; a conversation of one message is not hidden from its owner."""
    assert (await beside("conversations", "list")).stdout == "There are no conversations.\n"
    said = json.loads((await beside("say", "--json", "Please tell me where the beans are. Thanks.")).stdout)
    await beside("say", "And the peas?", "--conversation", said["conversation"])
    table = (await beside("conversations", "list")).stdout
    assert table.split()[:7] == ["NO", "LAST", "BLOCK", "MESSAGES", "ID", "TITLE", "1"]
    assert not (await beside("conversations", "list", "--search", "BEANS")).stdout.startswith("NO")
    assert said["conversation"] in table and "Tell me where the beans are" in table
    found = json.loads((await beside("conversations", "list", "--search", "BEANS", "--json")).stdout)
    assert [one["title"] for one in found["conversations"]] == ["Tell me where the beans are"]
    assert "no conversations" in (await beside("conversations", "list", "--search", "carrots")).stdout


async def test_a_conversation_is_opened_as_chat_opens_it(beside: Beside) -> None:
    """An unknown conversation is named in the error; the last one is continued."""
    first = json.loads((await beside("say", "--json", "hello")).stdout)["conversation"]
    done = await beside("conversations", "open", "last", stdin="and more\n")
    assert done.returncode == 0, done.stderr
    shown = json.loads((await beside("conversations", "list", "--json")).stdout)["conversations"]
    assert [one["id"] for one in shown] == [first] and shown[0]["message_count"] > 2


def test_the_version_is_reported(trunkline: Run) -> None:
    """The version is printed by a command and by an option, and as JSON for a script."""
    assert trunkline("version").stdout.splitlines()[0] == trunkline("--version").stdout.strip()
    assert set(json.loads(trunkline("version", "--json").stdout)) == {"trunkline", "python", "nats_server"}


async def test_a_conversation_is_named_by_its_owner(beside: Beside) -> None:
    """The title stays, is found, and can be taken back."""
    await beside("say", "Where are the beans?")
    assert (await beside("conversations", "rename", "last")).returncode == 2
    assert (await beside("conversations", "rename", "last", "x", "--made")).returncode == 2
    renamed = await beside("conversations", "rename", "last", "Next year")
    assert renamed.returncode == 0 and renamed.stdout.endswith(": Next year\n"), renamed.stderr
    assert "Next year" in (await beside("conversations", "list", "--search", "next")).stdout
    made = json.loads((await beside("conversations", "rename", "last", "--made", "--json")).stdout)
    assert made["title"] == "Where are the beans?"
    gone = await beside("conversations", "rename", "conv_1", "t")
    assert gone.returncode == 1 and "no conversation whose id begins with 'conv_1'" in gone.stderr
    plain = await beside("conversations", "rename", "1", "Beans", "for", "next", "year")
    assert plain.stdout.endswith(": Beans for next year\n"), plain.stderr


async def test_a_conversation_is_selected_by_its_number_or_id_prefix(beside: Beside) -> None:
    """Without a selector, or with an unknown or ambiguous one, the error lists the possible ones and the matches."""
    first, second = [
        json.loads((await beside("say", "--json", said)).stdout)["conversation"] for said in ("one", "two")
    ]
    said = await beside("say", "--json", "more", "--conversation", first[:12])
    assert json.loads(said.stdout)["conversation"] == first, said.stderr
    assert (await beside("conversations", "open", "1", stdin="and more\n")).returncode == 0
    named = await beside("conversations", "rename", second.removeprefix("conv_")[:8], "Two")
    assert named.stdout == f"{second}: Two\n", named.stderr
    several = await beside("conversations", "open", "conv_")
    assert several.returncode == 1 and "fits 2 conversations" in several.stderr
    assert first in several.stderr and f"{second} (Two)" in several.stderr
    beyond = await beside("conversations", "open", "7")
    assert beyond.returncode == 1 and "There is no conversation 7: the list has 2." in beyond.stderr
    nothing = await beside("conversations", "open")
    assert nothing.returncode == 2 and 'number or id from "trunkline conversations"' in nothing.stderr
    assert "Known blocks: main." in (await beside("permissions", "block")).stderr


async def test_a_conversation_is_pinned_archived_and_put_back(beside: Beside) -> None:
    """The marks stand behind the title. An archived one has no number, is found by a search, and is named by its id."""
    first, second = [
        json.loads((await beside("say", "--json", said)).stdout)["conversation"] for said in ("one", "two")
    ]
    assert (await beside("conversations", "pin", "2")).stdout == f"{first}: One (pinned)\n"
    pinned = json.loads((await beside("conversations", "list", "--pinned", "--json")).stdout)["conversations"]
    assert [one["id"] for one in pinned] == [first] and pinned[0]["pinned"] is True
    archived = json.loads((await beside("conversations", "archive", "last", "--json")).stdout)
    assert (archived["id"], archived["archived"]) == (second, True)
    table = (await beside("conversations", "list")).stdout
    assert second not in table and "One (pinned)" in table
    assert "Two (archived)" in (await beside("conversations", "list", "--archived")).stdout
    assert second in (await beside("conversations", "list", "--search", "two")).stdout
    assert (await beside("conversations", "unpin", "last")).stdout == f"{first}: One\n"
    assert (await beside("conversations", "restore", second)).stdout == f"{second}: Two\n"
    gone = await beside("conversations", "archive", "conv_1")
    assert gone.returncode == 1 and "no conversation whose id begins with 'conv_1'" in gone.stderr
    assert (await beside("conversations", "branches", "last")).stdout == "The conversation has no branches.\n"


async def test_a_conversation_is_exported(beside: Beside, tmp_path: Path) -> None:
    """To a new file that only its owner can read, or to standard output; the name of the file selects the format."""
    said = json.loads((await beside("say", "--json", "Where are the beans?")).stdout)["conversation"]
    shown = await beside("conversations", "export", "last")
    assert shown.returncode == 0 and shown.stdout.startswith("# Where are the beans?\n"), shown.stderr
    markdown, document = tmp_path / "beans.md", tmp_path / "beans.json"
    assert (await beside("conversations", "export", said, str(markdown))).stdout == f"Wrote {markdown}.\n"
    assert markdown.read_text() == shown.stdout and markdown.stat().st_mode & 0o777 == 0o600
    again = await beside("conversations", "export", said, str(markdown))
    assert again.returncode == 1 and "exists already" in again.stderr
    await beside("conversations", "export", said, str(document))
    assert document.read_text() == (await beside("conversations", "export", said, "--json")).stdout
    assert json.loads(document.read_text())["conversation"]["id"] == said
    nowhere = await beside("conversations", "export", said, str(tmp_path / "no" / "beans.md"))
    assert nowhere.returncode == 1 and "cannot be written" in nowhere.stderr
