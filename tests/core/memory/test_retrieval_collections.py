"""The generated collections that search is measured on: every question has its evidence, and every run the same."""

from collections import Counter
from collections.abc import Callable

import pytest

from benchmarks.memory.baselines import Bm25
from benchmarks.memory.collections import chats, dialogues, languages, mails, notes, tables
from benchmarks.memory.collections.collection import Collection

MAKERS: tuple[Callable[[], Collection], ...] = (
    *(one.collection for one in (dialogues, chats, notes, mails, tables)),
    lambda: languages.collection(languages.GERMAN),
    lambda: languages.collection(languages.FRENCH),
    lambda: languages.collection(languages.SPANISH),
)


@pytest.mark.parametrize("make", MAKERS)
def test_each_question_has_evidence_that_is_there(make: Callable[[], Collection]) -> None:
    """Ids occur once, no question is asked twice, and the texts do not change from run to run."""
    made = make()
    ids = [one.id for conversation in made.conversations for one in conversation.messages]
    ids += [one.id for one in made.documents]
    assert max(Counter(ids).values()) == 1 and max(Counter(one.text for one in made.questions).values()) == 1
    evidence = {id for one in made.questions for texts in one.evidence for id in texts}
    assert len(made.questions) >= 70 and evidence <= set(ids)
    assert all(texts for one in made.questions for texts in one.evidence) and make() == made


def test_bm25_prefers_rare_words_and_short_texts() -> None:
    """A rare word counts more than a common one, and a word in a short text more than in a long one."""
    texts = [["common", "rare"], ["common", "other"], ["common"] + ["filler"] * 20, ["common"]]
    scores = Bm25(texts).scores(["common", "rare"])
    assert scores.argmax() == 0 and scores[3] > scores[2] > 0
