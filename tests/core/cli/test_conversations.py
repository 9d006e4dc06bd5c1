"""``trunkline conversations`` and ``trunkline version``."""

import json
import subprocess
from collections.abc import Callable

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
