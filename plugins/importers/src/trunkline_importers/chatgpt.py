"""ChatGPT's data export: ``conversations.json`` (or several, numbered), each conversation a tree of messages.

A message that was edited, or an answer that was asked for again, makes a branch. The branch that was open last comes;
the others are told.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, ImportedFile, Importer, ImportGap, Source
from trunkline_importers.conversion import as_list, as_mapping, build_message, parse_time, to_text

HIDDEN = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
ACCOUNT = (
    "user.json",
    "user_settings.json",
    "message_feedback.json",
    "shared_conversations.json",
    "chat.html",
)


class ChatGpt(Importer):
    """Conversations as they stood, and the custom instructions."""

    name = "chatgpt"
    title = "ChatGPT"

    def recognises(self, source: Source) -> bool:
        """Its conversations are trees."""
        return any(
            '"mapping"' in source.data(path)[:200_000].decode("utf-8", "replace") for path in _files(source)
        )

    def read(self, source: Source) -> Iterator[ImportedConversation | ImportedFile | ImportGap]:
        """Every conversation."""
        instructions: dict[str, str] = {}
        for path in _files(source):
            for number, talk in enumerate(as_list(source.json(path))):
                yield from _conversation(as_mapping(talk), f"{path}#{number}", instructions)
        for key, text in instructions.items():
            data = (text.strip() + "\n").encode()
            yield ImportedFile(path=f"documents/chatgpt/{key}.md", data=data, source="custom instructions")
        for path in source.paths:
            if path.rpartition("/")[2] in ACCOUNT:
                source.used.add(path)
                yield ImportGap(what=path, why="it describes your account there and is not needed here")


def _files(source: Source) -> list[str]:
    names = [path for path in source.paths if path.rpartition("/")[2].startswith("conversations")]
    return [path for path in names if path.endswith(".json")]


def _conversation(
    talk: Mapping[str, Any], where: str, instructions: dict[str, str]
) -> Iterator[ImportedConversation | ImportGap]:
    nodes = as_mapping(talk.get("mapping"))
    id = to_text(talk.get("conversation_id") or talk.get("id"))
    if not nodes or not id:
        yield ImportGap(what=where, why="it is not a conversation")
        return
    began = parse_time(talk.get("create_time"))
    messages: list[trunkline.Message] = []
    pictures = 0
    branch = _branch(nodes, to_text(talk.get("current_node")))
    for key in branch:
        said = as_mapping(as_mapping(nodes[key]).get("message"))
        content = as_mapping(said.get("content"))
        _note_instructions(content, instructions)
        text, lost = _text(content)
        pictures += lost
        role = as_mapping(said.get("author")).get("role")
        if text.strip() and role and not _is_hidden(said, content):
            at = parse_time(said.get("create_time"), messages[-1].created_at if messages else began)
            name = to_text(as_mapping(said.get("author")).get("name")) or None
            tool: dict[str, Any] = {"name": name, "tool_call_id": key} if role == "tool" else {}
            messages.append(build_message(key, role, text, at, **tool))
    yield ImportedConversation(
        id=id, title=to_text(talk.get("title")) or None, created_at=began, messages=messages, source=where
    )
    left = sum(1 for key in nodes if as_mapping(nodes[key]).get("message") and key not in set(branch))
    if left:
        yield ImportGap(what=where, why=f"{left} messages of other branches were left out")
    if pictures:
        yield ImportGap(what=where, why=f"{pictures} pictures or sounds in it were not imported")


def _branch(nodes: Mapping[str, Any], leaf: str) -> list[str]:
    """The way from the beginning to the last message."""
    if leaf not in nodes:
        leaf = max(
            nodes,
            key=lambda key: parse_time(as_mapping(as_mapping(nodes[key]).get("message")).get("create_time")),
        )
    found: list[str] = []
    seen: set[str] = set()
    key: object = leaf
    while isinstance(key, str) and key in nodes and key not in seen:
        seen.add(key)
        found.append(key)
        key = as_mapping(nodes[key]).get("parent")
    return found[::-1]


def _text(content: Mapping[str, Any]) -> tuple[str, int]:
    """The text of a message, and how much in it is no text."""
    kind = content.get("content_type")
    if kind in HIDDEN:
        return "", 0
    if kind == "code":
        return (
            f"```{to_text(content.get('language')).replace('unknown', '')}\n{to_text(content.get('text'))}\n```",
            0,
        )
    parts, lost = [], 0
    for part in as_list(content.get("parts")):
        if isinstance(part, str):
            parts.append(part)
        elif as_mapping(part).get("text"):  # what was said aloud
            parts.append(to_text(part["text"]))
        else:
            parts.append(f"[{to_text(as_mapping(part).get('content_type')) or 'something'} left out]")
            lost += 1
    if not parts:
        parts.append(to_text(content.get("text") or content.get("result")))
    return "\n".join(part for part in parts if part), lost


def _is_hidden(message: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    metadata = as_mapping(message.get("metadata"))
    return bool(metadata.get("is_visually_hidden_from_conversation")) or content.get("content_type") in HIDDEN


def _note_instructions(content: Mapping[str, Any], instructions: dict[str, str]) -> None:
    if content.get("content_type") != "user_editable_context":
        return
    for key, name in (("user_profile", "about-me"), ("user_instructions", "how-to-answer")):
        if text := to_text(content.get(key)):
            instructions[name] = text
