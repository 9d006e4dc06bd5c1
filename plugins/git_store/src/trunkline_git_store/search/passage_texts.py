"""The texts of candidates, read from where they stand. Of one search: what was read is kept until it is answered."""

from collections.abc import Iterator, Sequence

from trunkline.api.store import parse_conversation_path
from trunkline_git_store.conversations import parse
from trunkline_git_store.index.chunk import chunk_passages, is_chunk
from trunkline_git_store.index.document_splitter import LINES, MAX_CHARACTERS
from trunkline_git_store.index.json_text import message_lines, readable_lines
from trunkline_git_store.repository import Repository
from trunkline_git_store.search.candidates import PassageCandidate


class PassageTextReader:
    """Reads each file once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._files: dict[str, list[bytes]] = {}

    def lines(self, one: PassageCandidate) -> list[str]:
        """The lines of a passage; of a message what is said."""
        rows = self._rows(one.blob)
        if parse_conversation_path(one.path) is not None:
            message = parse("", b"\n" + rows[one.line - 1]).messages
            return message_lines(message[0].content) if message else [""]
        if is_chunk(one.path):
            return chunk_passages(one.path, b"\n".join(rows))[0].text.split("\n")
        first = list(_first(rows[one.line - 1 :]))
        return readable_lines(one.path, first) if one.kind == "file" else first

    def _rows(self, blob: str) -> list[bytes]:
        if blob not in self._files:
            self._files[blob] = self._repository.data(self._repository.object_id(blob)).split(b"\n")
        return self._files[blob]


def _first(rows: Sequence[bytes]) -> Iterator[str]:
    """As many lines as a passage may have."""
    characters = 0
    for row in rows[:LINES]:
        text = row.decode("utf-8", "replace")
        if characters and characters + len(text) > MAX_CHARACTERS:
            return
        yield text
        characters += len(text) + 1
