"""The words of a question as the index knows them: their stems, how common they are, and what was probably meant."""

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from trunkline.api.nlp import STOP_WORDS, is_spaceless, language_of, query_tokens, strip_accents
from trunkline_git_store.stemmer import TextStemmer

MAX_WORDS = 32
"""Words of a question that count."""

COUNTED = 100_000
"""Up to where it is counted how many passages have a word: beyond it is common, and to count them takes long."""

MAX_REPLACEMENTS = 8
"""Words that stand for one which is not there."""


class Term(msgspec.Struct, frozen=True):
    """A word that was asked for. ``passages`` is about how many have one of its ``stems``. ``instead`` says what is
    looked for in its place when the memory does not have it: ``begins`` with it, or ``spelled`` nearly like it."""

    word: str
    stems: tuple[str, ...]
    passages: int
    instead: str = ""

    def __str__(self) -> str:
        return f"{self.word} → {' | '.join(self.stems)}" if self.instead else self.word

    def expression(self) -> str:
        """The term as full-text search writes it."""
        return " OR ".join(f'"{stem}"' for stem in self.stems)


def any_of(terms: Iterable[Term]) -> str:
    """The expression for passages that have one of some terms."""
    return " OR ".join(term.expression() for term in terms)


def all_of(terms: Iterable[Term]) -> str:
    """The expression for passages that have all of some terms."""
    return " AND ".join(f"({term.expression()})" for term in terms)


def has_term(connection: apsw.Connection, term: Term, passage: int) -> bool:
    """Report whether a passage has a term, itself or around it."""
    found = "SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?"
    return connection.execute(found, (term.expression(), passage)).get is not None


def query_words(text: str) -> list[str]:
    """The words of a question that say something, each once; all of them when none does."""
    words = list(dict.fromkeys(query_tokens(text)))
    common = STOP_WORDS[language_of(words)]
    return ([word for word in words if word not in common] or words)[:MAX_WORDS]


def parse_terms(connection: apsw.Connection, stems: TextStemmer, text: str) -> list[Term]:
    """The terms of a question. Words that nothing resembles are left out, and of words with the same stems, such as
    "run" and "running", the first one counts."""
    languages = [name for (name,) in connection.execute("SELECT name FROM languages ORDER BY name")]
    found = (_term(connection, word, stems.stem_word(word, languages)) for word in query_words(text))
    terms: dict[tuple[str, ...], Term] = {}
    for term in found:
        if term.passages:
            terms.setdefault(term.stems, term)
    return list(terms.values())


def _term(connection: apsw.Connection, word: str, stems: tuple[str, ...]) -> Term:
    if len(word) == 1 and is_spaceless(word):
        stems = (*stems, *_words_with_prefix(connection, word, stems))
    count = _passages(connection, stems)
    if count:
        return Term(word, stems, count)
    for instead, close in (("begins", _words_with_prefix), ("spelled", _similar_words)):
        near = close(connection, strip_accents(word), stems)
        if near:
            return Term(word, tuple(near), _passages(connection, near), instead)
    return Term(word, (), 0)


def _passages(connection: apsw.Connection, stems: Sequence[str]) -> int:
    some = f"SELECT 1 FROM words WHERE words MATCH ? LIMIT {COUNTED}"
    counts = (connection.execute(f"SELECT count(*) FROM ({some})", (f'"{stem}"',)).get for stem in stems)
    return sum(counts)


def _words_with_prefix(connection: apsw.Connection, word: str, stems: Sequence[str]) -> list[str]:
    """The commonest words that begin with a word of which nothing else is there."""
    if len(word) < 3 and word.isascii():
        return []
    return [term for term, _ in _range(connection, word)][:MAX_REPLACEMENTS]


def _similar_words(connection: apsw.Connection, word: str, stems: Sequence[str]) -> list[str]:
    """The words that are the fewest letters away; they begin alike, since the first letters are rarely wrong."""
    forms = dict.fromkeys((word, *stems))
    best, found = max_typos(word) + 1, list[str]()
    for term, _ in _range(connection, word[:2]) if best > 1 else ():
        if all(is_too_far(form, term, best) for form in forms):
            continue
        away = min(edit_distance(form, term, best) for form in forms)
        if away < best:
            best, found = away, [term]
        elif away == best <= max_typos(word):
            found.append(term)
    return found[:MAX_REPLACEMENTS]


def _range(connection: apsw.Connection, start: str) -> list[tuple[str, int]]:
    """The words that begin with something, the commonest first."""
    rows = connection.execute(
        "SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ?", (start, start + "\U0010ffff")
    )
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def max_typos(word: str) -> int:
    """Return the number of letters that may differ in a word; none in short words and in numbers, where every
    character counts."""
    if len(word) < 4 or any(letter.isdigit() for letter in word):
        return 0
    return 1 if len(word) < 7 else 2


def is_too_far(one: str, other: str, limit: int) -> bool:
    """Report whether two words are further apart, seen at a glance: by their lengths and by which letters they have."""
    return abs(len(one) - len(other)) > limit or len(set(one) ^ set(other)) > 2 * limit


def edit_distance(one: str, other: str, limit: int) -> int:
    """Letters to put in, take out, change or swap with their neighbour to get from one word to the other; more than
    ``limit`` when that is not enough (Damerau-Levenshtein, optimal string alignment)."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    older: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, facing in enumerate(other, start=1):
            best = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + (letter != facing))
            swapped = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == facing
            now.append(min(best, older[column - 2] + 1) if swapped else best)
        if min(now) > limit:
            return limit + 1
        older, last = last, now
    return last[-1]
