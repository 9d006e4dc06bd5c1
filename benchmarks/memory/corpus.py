"""Text nobody wrote: words as common as in a language (Zipf), the same at every run."""

import json
import random
from itertools import accumulate
from pathlib import Path

from trunkline.contracts.memory.chunk_files import chunk_path

SYLLABLES = "ba ti ron mel ka sor ing der lo vie mun tas per gil ne cho fra wen dol ske".split()  # noqa: SIM905
WORDS = 50_000
SECTIONS = 20
"""Passages of a document."""

DAY = "2026-05-04"


class Corpus:
    """Makes passages, documents, chunks and questions."""

    def __init__(self, seed: int = 1) -> None:
        self._dice = random.Random(seed)
        known: dict[str, None] = {}
        while len(known) < WORDS:
            known["".join(self._dice.choices(SYLLABLES, k=self._dice.randint(1, 5)))] = None
        self.words = list(known)
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(WORDS)))

    def passage(self) -> str:
        """About seventy words."""
        return " ".join(self.sample_words(self._dice.randint(60, 80)))

    def sample_words(self, count: int) -> list[str]:
        """Some words, common ones often."""
        return self._dice.choices(self.words, cum_weights=self._weights, k=count)

    def question(self) -> str:
        """Two words that say something and up to three that anybody says."""
        rare = [self.words[self._dice.randint(300, 20_000)] for _ in range(2)]
        return " ".join([*rare, *self.sample_words(self._dice.randint(0, 3))])

    def documents(self, folder: Path, passages: int) -> None:
        """Documents with so many passages together: sections under headings."""
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(-(-passages // SECTIONS)):
            parts = (f"# {self.words[index]}\n\n{self.passage()}\n" for index in range(SECTIONS))
            (folder / f"{number:06}.md").write_text("\n".join(parts))

    def chunks(self, root: Path, count: int) -> None:
        """So many chunks, a file each, as memory keeps them."""
        for _ in range(count):
            name = f"chunk-{DAY}-{self._dice.getrandbits(32):08x}"
            text = {
                "content": self.passage(),
                "id": name,
                "links": [],
                "metadata": {
                    "confidence": 0.7,
                    "created_at": f"{DAY}T00:00:00Z",
                    "modified_at": f"{DAY}T00:00:00Z",
                },
                "tags": self.sample_words(2),
                "tokens": 100,
                "type": "note",
            }
            file = root / chunk_path("", name, crowded=True)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")
