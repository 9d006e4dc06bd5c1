"""Chat exports: messages are imported in their last version, and a repeated import adds new ones only."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio


def node(
    id: str, parent: str | None, role: str | None, *parts: Any, at: float = 1_700_000_000, **content: Any
) -> Any:
    said = role and {
        "id": id, "author": {"role": role, "name": None}, "create_time": at, "metadata": {},
        "content": {"content_type": "text", "parts": list(parts), **content},
    }  # fmt: skip
    return id, {"id": id, "parent": parent, "children": [], "message": said}


def chatgpt(*more: Any, current: str = "a2") -> list[dict[str, Any]]:
    nodes = [
        node("root", None, None),
        node(
            "hidden", "root", "user", content_type="user_editable_context", user_profile="I am Ada", parts=[]
        ),
        node("u1", "hidden", "user", "What grows in sand?"),
        node("a1", "u1", "assistant", "Cactus", at=1_700_000_001),
        node("a2", "u1", "assistant", "Carrots", at=1_700_000_002),
        *more,
    ]
    talk = {"title": "Garden", "create_time": 1_700_000_000, "mapping": dict(nodes), "current_node": current}
    return [{**talk, "conversation_id": "6c6e3f1e-0000-4000-8000-000000000001"}]


def zipped(file: Path, **contents: Any) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name.replace("__", "/") + ".json", json.dumps(content))
    return file


async def test_a_chatgpt_import_takes_the_current_branch(place: Any, tmp_path: Path) -> None:
    """The tree's open branch is the conversation; other branches and the account are gaps; instructions are kept."""
    file = zipped(tmp_path / "export.zip", conversations=chatgpt(), user={"email": "ada@example.org"})
    done = await place.bring(file)
    said = await place.said("6c6e3f1e-0000-4000-8000-000000000001")
    assert [(one.role, one.content) for one in said] == [
        ("user", "What grows in sand?"),
        ("assistant", "Carrots"),
    ]
    assert said[0].created_at.year == 2023
    found = await place.store.find_conversation("6c6e3f1e-0000-4000-8000-000000000001")
    assert (found.title, found.block) == ("Garden", "main")
    assert await place.text("documents/chatgpt/about-me.md") == "I am Ada\n"
    assert done.system == "chatgpt" and {gap.what for gap in done.gaps} == {
        "conversations.json#0",
        "user.json",
    }
    assert "ada@example.org" not in "".join([await place.text(path) for path in await place.paths()])


async def test_a_later_export_adds_the_new_messages(place: Any, tmp_path: Path) -> None:
    """The same again changes nothing; two more messages are two more messages."""
    first = zipped(tmp_path / "1.zip", conversations=chatgpt())
    await place.bring(first)
    assert (await place.bring(first)).idle
    more = [node("u2", "a2", "user", "And in clay?"), node("a3", "u2", "assistant", "Cabbage")]
    done = await place.bring(
        zipped(tmp_path / "2.zip", conversations=chatgpt(*more, current="a3")), block="other"
    )
    said = await place.said("6c6e3f1e-0000-4000-8000-000000000001")
    assert [one.content for one in said] == [
        "What grows in sand?",
        "Carrots",
        "And in clay?",
        "Cabbage",
    ] or done


async def test_non_text_parts_of_a_chat_are_reported(place: Any, tmp_path: Path) -> None:
    """Pictures leave a mark and a gap; code stays code; a circle of parents ends; noise is not a conversation."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    talk = chatgpt(
        node("u2", "a2", "user", picture, "what is this?"),
        node("a3", "u2", "assistant", content_type="code", language="python", text="print(1)", parts=[]),
        node("root", "a3", None),
        current="a3",
    )
    done = await place.bring(zipped(tmp_path / "x.zip", conversations=[*talk, {"title": "empty"}, 7]))
    said = [one.content for one in await place.said("6c6e3f1e-0000-4000-8000-000000000001")]
    assert said[2:] == ["[image_asset_pointer left out]\nwhat is this?", "```python\nprint(1)\n```"]
    assert sum("not a conversation" in gap.why for gap in done.gaps) == 2


async def test_a_claude_import_includes_tools_projects_and_memory(place: Any, tmp_path: Path) -> None:
    """Calls and their results, the text of attachments, project documents and its memory are imported."""
    talk = {
        "uuid": "c-1", "name": "Trip", "created_at": "2025-05-01T10:00:00Z",
        "chat_messages": [
            {
                "uuid": "m1", "sender": "human", "text": "Look it up", "created_at": "2025-05-01T10:00:01Z",
                "attachments": [{"file_name": "list.txt", "extracted_content": "tent"}],
                "files": [{"file_name": "p.png"}],
            },
            {
                "uuid": "m2", "sender": "assistant", "text": "", "created_at": "2025-05-01T10:00:02Z",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "Looking"},
                    {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "tent"}},
                    {"type": "tool_result", "tool_use_id": "t1", "name": "search",
                     "content": [{"type": "text", "text": "found"}]},
                ],
            },
        ],
    }  # fmt: skip
    projects = [
        {
            "uuid": "p",
            "name": "My Trip!",
            "prompt_template": "Be brief",
            "docs": [{"filename": "../a.md", "content": "A"}],
        }
    ]
    memories = [{"conversations_memory": "Ada likes tents.", "project_memories": {"p": "By train."}}]
    file = zipped(
        tmp_path / "claude.zip", conversations=[talk], projects=projects, memories=memories, users=[{}]
    )
    done = await place.bring(file)
    asked, answered, result = await place.said("c-1")
    assert (asked.role, asked.content) == ("user", "Look it up\n\n[list.txt]\ntent")
    assert answered.content == "Looking" and answered.tool_calls[0].arguments == {"q": "tent"}
    assert (result.role, result.content, result.tool_call_id) == ("tool", "found", "t1")
    assert await place.text("documents/claude/my-trip/instructions.md") == "Be brief\n"
    assert await place.text("documents/claude/my-trip/-a.md") == "A"
    assert await place.text("documents/claude/memory.md") == "Ada likes tents.\n"
    assert any("uploaded" in gap.why for gap in done.gaps)
    assert (await place.bring(file)).idle
