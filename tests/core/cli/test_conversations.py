"""``trunkline conversations`` and ``trunkline version``."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_conversations_are_listed_with_a_title_and_searched(trunkline: Run) -> None:
    """The newest first, in a table and as JSON; a conversation of one message is not hidden from its owner."""
    assert trunkline("conversations", "list").stdout == "There are no conversations.\n"
    said = json.loads(trunkline("say", "--json", "Please tell me where the beans are. Thanks.").stdout)
    trunkline("say", "And the peas?", "--conversation", said["conversation"])
    table = trunkline("conversations", "list").stdout
    assert table.split()[:7] == ["NO", "LAST", "BLOCK", "MESSAGES", "ID", "TITLE", "1"]
    assert not trunkline("conversations", "list", "--search", "BEANS").stdout.startswith("NO")
    assert said["conversation"] in table and "Tell me where the beans are" in table
    found = json.loads(trunkline("conversations", "list", "--search", "BEANS", "--json").stdout)
    assert [one["title"] for one in found["conversations"]] == ["Tell me where the beans are"]
    assert "no conversations" in trunkline("conversations", "list", "--search", "carrots").stdout


def test_a_conversation_is_opened_as_chat_opens_it(trunkline: Run) -> None:
    """An unknown conversation is named in the error; the last one is continued."""
    first = json.loads(trunkline("say", "--json", "hello").stdout)["conversation"]
    done = trunkline("conversations", "open", "last", stdin="and more\n")
    assert done.returncode == 0, done.stderr
    shown = json.loads(trunkline("conversations", "list", "--json").stdout)["conversations"]
    assert [one["id"] for one in shown] == [first] and shown[0]["message_count"] > 2


def test_the_version_is_reported(trunkline: Run) -> None:
    """The version is printed by a command and by an option, and as JSON for a script."""
    assert trunkline("version").stdout.splitlines()[0] == trunkline("--version").stdout.strip()
    assert set(json.loads(trunkline("version", "--json").stdout)) == {"trunkline", "python", "nats_server"}


def test_a_conversation_is_named_by_its_owner(trunkline: Run) -> None:
    """The title stays, is found, and can be taken back."""
    trunkline("say", "Where are the beans?")
    assert trunkline("conversations", "rename", "last").returncode == 2
    assert trunkline("conversations", "rename", "last", "x", "--made").returncode == 2
    renamed = trunkline("conversations", "rename", "last", "Next year")
    assert renamed.returncode == 0 and renamed.stdout.endswith(": Next year\n"), renamed.stderr
    assert "Next year" in trunkline("conversations", "list", "--search", "next").stdout
    made = json.loads(trunkline("conversations", "rename", "last", "--made", "--json").stdout)
    assert made["title"] == "Where are the beans?"
    gone = trunkline("conversations", "rename", "conv_1", "t")
    assert gone.returncode == 1 and "no conversation whose id begins with 'conv_1'" in gone.stderr
    plain = trunkline("conversations", "rename", "1", "Beans", "for", "next", "year")
    assert plain.stdout.endswith(": Beans for next year\n"), plain.stderr


def test_a_conversation_is_selected_by_its_number_or_id_prefix(trunkline: Run) -> None:
    """Without a selector, or with an unknown or ambiguous one, the error lists the possible ones and the matches."""
    first, second = (
        json.loads(trunkline("say", "--json", said).stdout)["conversation"] for said in ("one", "two")
    )
    said = trunkline("say", "--json", "more", "--conversation", first[:12])
    assert json.loads(said.stdout)["conversation"] == first, said.stderr
    assert trunkline("conversations", "open", "1", stdin="and more\n").returncode == 0
    named = trunkline("conversations", "rename", second.removeprefix("conv_")[:8], "Two")
    assert named.stdout == f"{second}: Two\n", named.stderr
    several = trunkline("conversations", "open", "conv_")
    assert several.returncode == 1 and "fits 2 conversations" in several.stderr
    assert first in several.stderr and f"{second} (Two)" in several.stderr
    beyond = trunkline("conversations", "open", "7")
    assert beyond.returncode == 1 and "There is no conversation 7: the list has 2." in beyond.stderr
    nothing = trunkline("conversations", "open")
    assert nothing.returncode == 2 and 'number or id from "trunkline conversations"' in nothing.stderr
    assert "Known blocks: main." in trunkline("permissions", "block").stderr


def test_a_conversation_is_pinned_archived_and_put_back(trunkline: Run) -> None:
    """The marks stand behind the title. An archived one has no number, is found by a search, and is named by its id."""
    first, second = (
        json.loads(trunkline("say", "--json", said).stdout)["conversation"] for said in ("one", "two")
    )
    assert trunkline("conversations", "pin", "2").stdout == f"{first}: One (pinned)\n"
    pinned = json.loads(trunkline("conversations", "list", "--pinned", "--json").stdout)["conversations"]
    assert [one["id"] for one in pinned] == [first] and pinned[0]["pinned"] is True
    archived = json.loads(trunkline("conversations", "archive", "last", "--json").stdout)
    assert (archived["id"], archived["archived"]) == (second, True)
    table = trunkline("conversations", "list").stdout
    assert second not in table and "One (pinned)" in table
    assert "Two (archived)" in trunkline("conversations", "list", "--archived").stdout
    assert second in trunkline("conversations", "list", "--search", "two").stdout
    assert trunkline("conversations", "unpin", "last").stdout == f"{first}: One\n"
    assert trunkline("conversations", "restore", second).stdout == f"{second}: Two\n"
    gone = trunkline("conversations", "archive", "conv_1")
    assert gone.returncode == 1 and "no conversation whose id begins with 'conv_1'" in gone.stderr
    assert trunkline("conversations", "branches", "last").stdout == "The conversation has no branches.\n"


def test_a_conversation_is_exported(trunkline: Run, tmp_path: Path) -> None:
    """To a new file that only its owner can read, or to standard output; the name of the file selects the format."""
    said = json.loads(trunkline("say", "--json", "Where are the beans?").stdout)["conversation"]
    shown = trunkline("conversations", "export", "last")
    assert shown.returncode == 0 and shown.stdout.startswith("# Where are the beans?\n"), shown.stderr
    markdown, document = tmp_path / "beans.md", tmp_path / "beans.json"
    assert trunkline("conversations", "export", said, str(markdown)).stdout == f"Wrote {markdown}.\n"
    assert markdown.read_text() == shown.stdout and markdown.stat().st_mode & 0o777 == 0o600
    again = trunkline("conversations", "export", said, str(markdown))
    assert again.returncode == 1 and "exists already" in again.stderr
    trunkline("conversations", "export", said, str(document))
    assert document.read_text() == trunkline("conversations", "export", said, "--json").stdout
    assert json.loads(document.read_text())["conversation"]["id"] == said
    nowhere = trunkline("conversations", "export", said, str(tmp_path / "no" / "beans.md"))
    assert nowhere.returncode == 1 and "cannot be written" in nowhere.stderr
