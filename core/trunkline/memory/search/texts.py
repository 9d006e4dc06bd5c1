"""The texts of candidates, read from where they stand. Of one search: what was read is kept until it is answered."""

from trunkline.memory.conversations import names_of, parse
from trunkline.memory.index.chunk import chunk_passages, is_chunk
from trunkline.memory.index.passage import LARGEST, as_text
from trunkline.memory.repository import Repository
from trunkline.memory.search.candidates import Candidate

LONGEST_PASSAGE = 80
"""Lines of a passage that are looked at."""


class Texts:
    """Reads each file once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._files: dict[str, list[bytes]] = {}

    def lines(self, one: Candidate) -> list[str]:
        """The lines of a passage; of a message what is said."""
        rows = self._rows(one.blob)
        if names_of(one.path) is not None:
            message = parse("", b"\n" + rows[one.line - 1]).messages
            return message[0].content.split("\n") if message else [""]
        if is_chunk(one.path):
            return chunk_passages(one.path, b"\n".join(rows))[0].text.split("\n")
        text = b"\n".join(rows[one.line - 1 : one.line - 1 + LONGEST_PASSAGE])
        return (as_text(text[:LARGEST]) or "").split("\n")

    def _rows(self, blob: str) -> list[bytes]:
        if blob not in self._files:
            self._files[blob] = self._repository.data(self._repository.object_id(blob)).split(b"\n")
        return self._files[blob]
