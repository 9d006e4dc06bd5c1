"""The common concepts of two texts, and their polarity, by the rules of their own language."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from trunkline._util.nlp.polarity import is_negated, sentiment, topic_text
from trunkline._util.nlp.similarity import concepts, expand_query, similarity
from trunkline._util.nlp.synonyms import SYNONYMS, synonyms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fix the failing tests", "repair the broken test"),
        ("Ich wohne seit Jahren in einer kleinen Wohnung", "Wir wohnen in kleinen Wohnungen"),
        ("Bitte die Fehler in den Dateien beheben", "Der Fehler in der Datei ist zu reparieren"),
        ("Les chats dorment dans la maison", "Le chat dort dans les maisons"),
    ],
)
def test_inflections_and_synonyms_are_similar(one: str, other: str) -> None:
    """Other endings and other words for the same do not make texts different, in no language."""
    assert similarity(one, other) == similarity(other, one) >= 0.6
    assert similarity(one, one) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fix the failing tests", "water the beans"),
        ("Der Hund ist im Garten", "Die Katze ist in der Küche"),
        ("the and of", "was it in"),
    ],
)
def test_stop_words_make_no_texts_similar(one: str, other: str) -> None:
    """Words that every text has do not describe its topic."""
    assert similarity(one, other) == 0.0


def test_a_question_is_widened_by_its_own_language() -> None:
    """A few synonyms stand behind it (MN-F22); a word of another language brings none."""
    assert expand_query("fix the error") == "fix the error repair solve mend"
    assert expand_query("Wo ist der Fehler") == "Wo ist der Fehler problem störung ausnahme"
    assert synonyms("fehler", "english") == ()


def test_no_word_is_listed_twice_in_a_group() -> None:
    """Each group says each word once, folded, so that it is found."""
    for groups in SYNONYMS.values():
        for group in groups:
            assert len(set(group)) == len(group) > 1
            assert [word.casefold() for word in group] == list(group)


@pytest.mark.parametrize(
    ("text", "turned", "liked", "about"),
    [
        ("I don't like coffee", True, "against", "i coffee"),
        ("I do not hate coffee", True, "for", "i do coffee"),
        ("We no longer use tabs", True, None, "we use tabs"),
        ("It is not without risk", False, None, "it is risk"),
        ("Ich mag keinen Kaffee", True, "against", "ich kaffee"),
        ("Ich trinke sehr gern Tee", False, "for", "ich trinke tee"),
        ("Je n'aime pas le café", True, "against", "je le café"),
        ("No me gusta el café con la leche", True, "against", "me el café con la leche"),
    ],
)
def test_negation_sentiment_and_topic_of_a_text(
    text: str, turned: bool, liked: str | None, about: str
) -> None:
    """Yes or no, like or dislike, and what of."""
    assert (is_negated(text), sentiment(text)) == (turned, liked)
    assert topic_text(text) == about


def test_threads_do_not_disturb_each_other() -> None:
    """Stemmers are not shared: the same texts have the same concepts, in any number of threads."""
    texts = [f"Die Wohnungen {number} der Nachbarn und running tests" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(concepts, texts))
    assert together == [concepts(f"{text} ") for text in texts]
