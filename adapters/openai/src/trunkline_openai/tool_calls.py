"""Puts tool calls together from their pieces. No I/O in here."""

import hashlib
import re
from dataclasses import dataclass, field

from trunkline import ToolCall
from trunkline.api.model import CallIds, model_error, parse_arguments


def openai_name(name: str) -> str:
    """The name of a called tool as OpenAI takes it: a model may have called what has no such name."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def openai_id(id: str, longest: int) -> str:
    """The id of a call as OpenAI takes it: another vendor's, or an imported one, may be longer."""
    return id if len(id) <= longest else hashlib.sha256(id.encode()).hexdigest()[:longest]


@dataclass(slots=True)
class _PartialCall:
    id: str | None
    name: str
    pieces: list[str] = field(default_factory=list)


MAX_ARGUMENTS = 4_000_000
"""Characters of arguments in one answer, a bound on what a server makes us keep before the platform sees any of it."""


class CallAssembler:
    """Collects the deltas of Chat Completions.

    Pieces belong together by ``index``. A piece with another id at the same index begins a new call, and so does a
    piece without an index that names a tool: there are servers that number all calls 0, or not at all.
    """

    def __init__(self) -> None:
        self._open: list[_PartialCall] = []
        self._at: dict[int, _PartialCall] = {}
        self._room = MAX_ARGUMENTS

    def add(self, index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> None:
        """Take one piece. Raises ModelError when the answer's arguments are longer than any tool could want."""
        self._room -= len(arguments or "")
        if self._room < 0:
            raise model_error(
                "bad_response", f"the calls have more than {MAX_ARGUMENTS} characters of arguments"
            )
        call = self._at.get(index) if index is not None else (self._open[-1] if self._open else None)
        other = call is not None and bool(call_id) and bool(call.id) and call_id != call.id
        if call is None or other or (index is None and name):
            call = _PartialCall(call_id, "")
            self._open.append(call)
            if index is not None:
                self._at[index] = call
        call.id = call.id or call_id
        call.name = call.name or name or ""
        if arguments:
            call.pieces.append(arguments)

    @property
    def begun(self) -> bool:
        """Report whether there is a call."""
        return bool(self._open)

    def calls(self, ids: CallIds) -> list[ToolCall]:
        """The calls, in the order in which they began."""
        return [
            ToolCall(id=ids.unique(call.id), name=call.name, arguments=parse_arguments("".join(call.pieces)))
            for call in self._open
        ]
