"""Claude's data export: ``conversations.json`` with ``chat_messages``, ``projects.json`` or a folder of them,
``memories.json``, ``users.json``."""

from collections.abc import Iterator, Mapping
from typing import Any

import trunkline
from trunkline_importers.conversion import (
    block_name,
    digest,
    items,
    mapping,
    message,
    text_of,
    time_of,
    tool_call,
)

Items = Iterator[trunkline.ImportedConversation | trunkline.ImportedFile | trunkline.Gap]


class Claude(trunkline.Importer):
    """Conversations with their tool calls, projects' instructions and documents, and what it remembers."""

    name = "claude"
    title = "Claude"

    def recognises(self, source: trunkline.Source) -> bool:
        """Its conversations have ``chat_messages``."""
        return any(
            '"chat_messages"' in source.data(path)[:200_000].decode("utf-8", "replace")
            for path in _named(source, "conversations.json")
        )

    def read(self, source: trunkline.Source) -> Items:
        """All of it."""
        for path in _named(source, "conversations.json"):
            for number, talk in enumerate(items(source.json(path))):
                yield from _conversation(mapping(talk), f"{path}#{number}")
        for path in [*_named(source, "projects.json"), *source.below("projects", ".json")]:
            found = source.json(path)
            for project in found if isinstance(found, list) else [found]:
                yield from _project(mapping(project), path)
        for path in _named(source, "memories.json"):
            yield from _memories(source.json(path), path)
        for path in _named(source, "users.json"):
            source.used.add(path)
            yield trunkline.Gap(what=path, why="it is about your account there, and has no use here")


def _named(source: trunkline.Source, name: str) -> list[str]:
    return [path for path in source.paths if path.rpartition("/")[2] == name]


def _conversation(talk: Mapping[str, Any], where: str) -> Items:
    id = text_of(talk.get("uuid"))
    if not id:
        yield trunkline.Gap(what=where, why="it is no conversation")
        return
    began = time_of(talk.get("created_at"))
    messages: list[trunkline.Message] = []
    lost = 0
    for number, said in enumerate(map(mapping, items(talk.get("chat_messages")))):
        at = time_of(said.get("created_at"), messages[-1].created_at if messages else began)
        messages += _messages(said, text_of(said.get("uuid")) or f"{id}-{number}", at)
        lost += len(items(said.get("files")))
    yield trunkline.ImportedConversation(
        id=id, title=text_of(talk.get("name")) or None, created_at=began, messages=messages, source=where
    )
    if lost:
        yield trunkline.Gap(what=where, why=f"{lost} uploaded files are not in the export")


def _messages(said: Mapping[str, Any], id: str, at: Any) -> list[trunkline.Message]:
    """What was said, and the results of tools that stand within it."""
    texts, calls, results = [], [], []
    for number, part in enumerate(map(mapping, items(said.get("content")))):
        match part.get("type"):
            case "text":
                texts.append(text_of(part.get("text")))
            case "tool_use":
                calls.append(
                    tool_call(part.get("id") or f"{id}-{number}", part.get("name"), part.get("input"))
                )
            case "tool_result":
                call = text_of(part.get("tool_use_id")) or (calls[-1].id if calls else f"{id}-{number}")
                results.append(
                    message(
                        f"{id}-{number}", "tool", _result(part.get("content")), at,
                        tool_call_id=call, name=text_of(part.get("name")) or None, error=bool(part.get("is_error")),
                    )
                )  # fmt: skip
    text = "\n".join(part for part in texts if part) or text_of(said.get("text"))
    for attached in map(mapping, items(said.get("attachments"))):
        name = text_of(attached.get("file_name")) or "attachment"
        text += f"\n\n[{name}]\n{text_of(attached.get('extracted_content'))}"
    return [message(id, said.get("sender"), text, at, calls=calls), *results]


def _result(content: object) -> str:
    parts = [text_of(mapping(part).get("text")) for part in items(content)]
    return "\n".join(part for part in parts if part) or (text_of(content) if isinstance(content, str) else "")


def _project(project: Mapping[str, Any], where: str) -> Items:
    name = block_name(project.get("name")) or digest(text_of(project.get("uuid")), length=8)
    folder = f"documents/claude/{name}"
    about = [text_of(project.get("description")), text_of(project.get("prompt_template"))]
    text = "\n\n".join(part for part in about if part)
    if text:
        yield trunkline.ImportedFile(
            path=f"{folder}/instructions.md", data=f"{text}\n".encode(), source=where
        )
    taken: set[str] = set()
    for doc in map(mapping, items(project.get("docs"))):
        file = text_of(doc.get("filename")).replace("/", "-").replace("\\", "-").strip(". ") or "document.md"
        if file in taken:
            file = f"{digest(text_of(doc.get('uuid')), length=6)}-{file}"
        taken.add(file)
        data = text_of(doc.get("content")).encode()
        yield trunkline.ImportedFile(path=f"{folder}/{file}", data=data, source=f"{where}: {file}")


def _memories(found: object, where: str) -> Items:
    for owned in map(mapping, items(found) or [found]):
        if text := text_of(owned.get("conversations_memory")):
            yield trunkline.ImportedFile(
                path="documents/claude/memory.md", data=f"{text}\n".encode(), source=where
            )
        for project, text in mapping(owned.get("project_memories")).items():
            path = f"documents/claude/memory-{digest(text_of(project), length=8)}.md"
            yield trunkline.ImportedFile(
                path=path, data=f"{text_of(text)}\n".encode(), source=f"{where}: {project}"
            )
