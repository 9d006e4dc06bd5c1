"""Passages that may be hits, with what speaks for each."""

import json
from collections.abc import Iterable
from typing import get_args

import apsw
import msgspec

from trunkline.api.memory import HitExplanation
from trunkline.api.store import Role


class PassageCandidate:
    """A passage of the index. What speaks for it is added up, then multiplied."""

    __slots__ = (
        "asks",
        "at",
        "blob",
        "confidence",
        "conversation",
        "factors",
        "id",
        "kind",
        "line",
        "name",
        "page",
        "parts",
        "path",
        "speaker",
    )

    def __init__(
        self,
        id: int,
        path: str,
        blob: str,
        line: int,
        page: int,
        kind: str,
        name: str,
        at: int,
        speaker: str,
        confidence: float | None,
        conversation: str,
        asks: int,
    ) -> None:
        self.id = id
        self.path = path
        self.blob = blob
        self.line = line
        self.page = page
        self.kind = kind
        self.name = name
        self.at = at
        self.speaker = speaker
        self.confidence = confidence
        self.conversation = conversation
        self.asks = bool(asks)
        self.parts: list[HitExplanation] = []
        self.factors: list[HitExplanation] = []

    def add(self, signal: str, weight: float, detail: str = "") -> None:
        """Something that speaks for it."""
        self.parts.append(HitExplanation(signal=signal, weight=weight, detail=detail))

    def has_signal(self, *signals: str) -> bool:
        """Report whether one of some signals speaks for it."""
        return any(part.signal in signals for part in self.parts)

    def weight(self, signal: str) -> float:
        """Return the weight that a signal adds."""
        return sum(part.weight for part in self.parts if part.signal == signal)

    def explain(self, signal: str, called: str, detail: str) -> None:
        """Say more of something that speaks for it."""
        self.parts = [
            HitExplanation(signal=called, weight=part.weight, detail=detail)
            if part.signal == signal
            else part
            for part in self.parts
        ]

    def multiply(self, signal: str, factor: float, detail: str = "") -> None:
        """Something that makes all of it count more or less."""
        if round(factor, 4) != 1:
            self.factors.append(HitExplanation(signal=signal, weight=factor, detail=detail))

    @property
    def speaker_name(self) -> str:
        """The speaker, where people have names; else ""."""
        return "" if self.speaker in get_args(Role) else self.speaker

    @property
    def score(self) -> float:
        """The sum of its parts, times its factors."""
        total = sum(part.weight for part in self.parts)
        for factor in self.factors:
            total *= factor.weight
        return total

    @property
    def why(self) -> tuple[HitExplanation, ...]:
        """All of it, in figures that can be read."""
        return tuple(
            msgspec.structs.replace(why, weight=float(f"{why.weight:.4g}"))
            for why in (*self.parts, *self.factors)
        )

    @property
    def sort_key(self) -> tuple[float, int, str, int]:
        """Best first; of equals the newest."""
        return -self.score, -self.at, self.path, self.line


def load_candidates(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, PassageCandidate]:
    """Candidates by their ids."""
    rows = connection.execute(
        "SELECT passages.id, files.path, files.blob, line, page, kind, name, at, speaker, confidence, conversation,"
        " asks "
        "FROM json_each(?) CROSS JOIN passages ON passages.id = value JOIN files ON files.id = passages.file"
        " WHERE kind NOT IN ('archived', 'broken')",
        (json.dumps(list(ids)),),
    )
    return {row[0]: PassageCandidate(*row) for row in rows}
