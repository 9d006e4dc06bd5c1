"""Saved conversations."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline_terminal.saved_conversation import (
    SavedConversationError,
    encode,
    load,
    load_path,
    save,
    save_path,
)

AT = datetime(2026, 3, 4, 5, 6, 7)
MESSAGES = (
    Message(id="m1", role="user", content="Read a.md"),
    Message(
        id="m2",
        role="assistant",
        content="I look.",
        tool_calls=(
            ToolCall(id="c1", name="read_file", arguments={"path": "a.md"}),
            ToolCall(id="c2", name="read_file", arguments={"path": "b.md"}),
        ),
    ),
    Message(id="m3", role="tool", content="text of a", tool_call_id="c1"),
    Message(id="m4", role="tool", content="no such file", tool_call_id="c2", error=True),
    Message(id="m5", role="assistant", content="It says: text of a"),
)


def test_the_format_is_mnemoais() -> None:
    """Roles, text, toolUse and toolResult parts; results that follow one another share a user message."""
    document = encode(MESSAGES)
    assert [entry["role"] for entry in document["messages"]] == ["user", "assistant", "user", "assistant"]
    assert document["messages"][0]["content"] == [{"text": "Read a.md"}]
    assert document["messages"][1]["content"][1] == {
        "toolUse": {"toolUseId": "c1", "name": "read_file", "input": {"path": "a.md"}}
    }
    assert document["messages"][2]["content"][1] == {
        "toolResult": {"toolUseId": "c2", "content": [{"text": "no such file"}], "status": "error"}
    }
    assert document["tools"] == [{"name": "read_file", "description": ""}]


def test_a_saved_conversation_loads(tmp_path: Path) -> None:
    """Everything but ids and times is restored, under new ids."""
    save(MESSAGES, tmp_path / "c.json")
    loaded = load(tmp_path / "c.json")
    for before, after in zip(MESSAGES, loaded, strict=True):
        assert (after.role, after.content, after.tool_calls) == (
            before.role,
            before.content,
            before.tool_calls,
        )
        assert (after.tool_call_id, after.error) == (before.tool_call_id, before.error)
        assert after.id != before.id
    assert (tmp_path / "c.json").stat().st_mode & 0o777 == 0o600


def test_the_path_of_a_saved_conversation(tmp_path: Path) -> None:
    """A folder gets the default name, a bare name gets ``.json``."""
    assert save_path("", AT) == Path("conversation_20260304_050607.json")
    assert save_path(str(tmp_path), AT) == tmp_path / "conversation_20260304_050607.json"
    assert save_path("new/", AT) == Path("new/conversation_20260304_050607.json")
    assert save_path("talk.v2", AT) == Path("talk.v2.json")
    assert save_path("talk.json", AT) == Path("talk.json")


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """Saving over something is refused, and it stays as it was."""
    (tmp_path / "c.json").write_text("mine")
    with pytest.raises(SavedConversationError, match="exists"):
        save(MESSAGES, tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"messages": 3}',
        '{"messages": [{"role": "root", "content": []}]}',
        '{"messages": [{"role": "user", "content": [{"text": 5}]}]}',
        '{"messages": [{"role": "assistant", "content": [{"toolUse": {"name": 1}}]}]}',
        '{"messages": [{"role": "user", "content": [7]}]}',
        "\ufeff\x00",
        "[" * 100_000,
    ],
)
def test_an_invalid_transcript_file_is_reported_in_one_sentence(tmp_path: Path, text: str) -> None:
    """Anything else than a saved conversation is refused with the file's name."""
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(SavedConversationError, match=r"bad\.json"):
        load(path)


def test_text_content_of_other_programs_loads(tmp_path: Path) -> None:
    """Content that is a plain string is text."""
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
    assert [message.content for message in load(path)] == ["hello"]


def test_load_without_a_name_uses_the_newest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest default name in the folder is loaded; without one there is a sentence."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SavedConversationError, match="no conversation_"):
        load_path("")
    for stamp in ("20260101_000000", "20260304_050607", "20250101_000000"):
        (tmp_path / f"conversation_{stamp}.json").write_text("{}")
    assert load_path("").name == "conversation_20260304_050607.json"
    (tmp_path / "talk.json").write_text("{}")
    assert load_path("talk").name == "talk.json"
