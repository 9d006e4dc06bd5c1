"""Claude's data export: ``conversations.json`` with ``chat_messages``, ``projects.json`` or a folder of them,
``memories.json``, ``users.json``."""

from collections.abc import Iterator, Mapping
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, ImportedFile, Importer, ImportGap, Source
from trunkline_importers.conversion import (
    as_list,
    as_mapping,
    block_name,
    build_message,
    build_tool_call,
    digest,
    parse_time,
    to_text,
)

Items = Iterator[ImportedConversation | ImportedFile | ImportGap]


class Claude(Importer):
    """Conversations with their tool calls, projects' instructions and documents, and what it remembers."""

    name = "claude"
    title = "Claude"

    def recognises(self, source: Source) -> bool:
        """Its conversations have ``chat_messages``."""
        return any(
            '"chat_messages"' in source.data(path)[:200_000].decode("utf-8", "replace")
            for path in _named(source, "conversations.json")
        )

    def read(self, source: Source) -> Items:
        """All of it."""
        for path in _named(source, "conversations.json"):
            for number, talk in enumerate(as_list(source.json(path))):
                yield from _conversation(as_mapping(talk), f"{path}#{number}")
        for path in [*_named(source, "projects.json"), *source.below("projects", ".json")]:
            found = source.json(path)
            for project in found if isinstance(found, list) else [found]:
                yield from _project(as_mapping(project), path)
        for path in _named(source, "memories.json"):
            yield from _memories(source.json(path), path)
        for path in _named(source, "users.json"):
            source.used.add(path)
            yield ImportGap(what=path, why="it describes your account there and is not needed here")


def _named(source: Source, name: str) -> list[str]:
    return [path for path in source.paths if path.rpartition("/")[2] == name]


def _conversation(talk: Mapping[str, Any], where: str) -> Items:
    id = to_text(talk.get("uuid"))
    if not id:
        yield ImportGap(what=where, why="it is not a conversation")
        return
    began = parse_time(talk.get("created_at"))
    messages: list[trunkline.Message] = []
    lost = 0
    for number, said in enumerate(map(as_mapping, as_list(talk.get("chat_messages")))):
        at = parse_time(said.get("created_at"), messages[-1].created_at if messages else began)
        messages += _messages(said, to_text(said.get("uuid")) or f"{id}-{number}", at)
        lost += len(as_list(said.get("files")))
    yield ImportedConversation(
        id=id, title=to_text(talk.get("name")) or None, created_at=began, messages=messages, source=where
    )
    if lost:
        yield ImportGap(what=where, why=f"{lost} uploaded files are not in the export")


def _messages(message: Mapping[str, Any], id: str, at: Any) -> list[trunkline.Message]:
    """Return the messages, and the tool results that they contain."""
    texts, calls, results = [], [], []
    for number, part in enumerate(map(as_mapping, as_list(message.get("content")))):
        match part.get("type"):
            case "text":
                texts.append(to_text(part.get("text")))
            case "tool_use":
                calls.append(
                    build_tool_call(part.get("id") or f"{id}-{number}", part.get("name"), part.get("input"))
                )
            case "tool_result":
                call = to_text(part.get("tool_use_id")) or (calls[-1].id if calls else f"{id}-{number}")
                results.append(
                    build_message(
                        f"{id}-{number}", "tool", _result(part.get("content")), at,
                        tool_call_id=call, name=to_text(part.get("name")) or None, error=bool(part.get("is_error")),
                    )
                )  # fmt: skip
    text = "\n".join(part for part in texts if part) or to_text(message.get("text"))
    for attached in map(as_mapping, as_list(message.get("attachments"))):
        name = to_text(attached.get("file_name")) or "attachment"
        text += f"\n\n[{name}]\n{to_text(attached.get('extracted_content'))}"
    return [build_message(id, message.get("sender"), text, at, calls=calls), *results]


def _result(content: object) -> str:
    parts = [to_text(as_mapping(part).get("text")) for part in as_list(content)]
    return "\n".join(part for part in parts if part) or (to_text(content) if isinstance(content, str) else "")


def _project(project: Mapping[str, Any], where: str) -> Items:
    name = block_name(project.get("name")) or digest(to_text(project.get("uuid")), length=8)
    folder = f"documents/claude/{name}"
    about = [to_text(project.get("description")), to_text(project.get("prompt_template"))]
    text = "\n\n".join(part for part in about if part)
    if text:
        yield ImportedFile(path=f"{folder}/instructions.md", data=f"{text}\n".encode(), source=where)
    taken: set[str] = set()
    for doc in map(as_mapping, as_list(project.get("docs"))):
        file = to_text(doc.get("filename")).replace("/", "-").replace("\\", "-").strip(". ") or "document.md"
        if file in taken:
            file = f"{digest(to_text(doc.get('uuid')), length=6)}-{file}"
        taken.add(file)
        data = to_text(doc.get("content")).encode()
        yield ImportedFile(path=f"{folder}/{file}", data=data, source=f"{where}: {file}")


def _memories(value: object, where: str) -> Items:
    for owned in map(as_mapping, as_list(value) or [value]):
        if text := to_text(owned.get("conversations_memory")):
            yield ImportedFile(path="documents/claude/memory.md", data=f"{text}\n".encode(), source=where)
        for project, text in as_mapping(owned.get("project_memories")).items():
            path = f"documents/claude/memory-{digest(to_text(project), length=8)}.md"
            yield ImportedFile(path=path, data=f"{to_text(text)}\n".encode(), source=f"{where}: {project}")
