"""The registry of sentences: English and German are complete, plugins add to them, and the owner chooses."""

import ast
import logging
import re
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.api.channel import Sentence, SentenceCatalogue, Sentences
from trunkline.api.testing import ScriptedGateway
from trunkline.contracts.sentences.english import ENGLISH
from trunkline.contracts.sentences.german import GERMAN
from trunkline.contracts.sentences.sentences import placeholders
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.channels.chat_commands import command_menu, decide_by_words

_KEY = re.compile(r"[a-z_]+(\.[a-z_]+)+")

ROOT = Path(trunkline.__file__).parents[2]


def test_MB_F28_both_languages_are_complete() -> None:
    """A translation is neither missing nor left over, and loses no value."""
    assert GERMAN.keys() == ENGLISH.keys()
    assert {key for key in ENGLISH if placeholders(GERMAN[key]) != placeholders(ENGLISH[key])} == set()
    assert {key for key in ENGLISH if not GERMAN[key].strip()} == set()


def test_every_key_is_a_sentence_and_is_used() -> None:
    """A key that is written out exists, and no sentence is left that nobody says."""
    folders = [
        ROOT / "core" / "trunkline",
        *(ROOT / "channels").glob("*/src"),
        *(ROOT / "plugins").glob("*/src"),
    ]
    texts, calls = set[str](), set[str]()
    for file in (one for folder in folders for one in folder.rglob("*.py")):
        if file.parent.name == "sentences":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            if isinstance(node, ast.Call) and _is_saying(node) and isinstance(node.args[0], ast.Constant):
                calls.add(str(node.args[0].value))
    assert {key for key in calls if _KEY.fullmatch(key) and key not in ENGLISH} == set()
    begun = {text for text in texts if text.endswith(".")}
    ended = {text for text in texts if text.startswith(".")}
    unused = {
        key
        for key in ENGLISH.keys() - texts
        if not any(key.startswith(begin) for begin in begun) and not any(key.endswith(end) for end in ended)
    }
    assert {
        key for key in unused if not key.startswith(("error.", "ask.", "question.", "approval."))
    } == set()


def _is_saying(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in ("say", "sentences", "_say") and bool(call.args)


def test_a_plugin_adds_a_language_and_its_own_sentences(caplog: pytest.LogCaptureFixture) -> None:
    """What it lacks, and what has other placeholders, is in English; it cannot replace what the platform asks."""
    caplog.set_level(logging.WARNING)
    given = [
        SentenceCatalogue("en", {"garden.watered": "{plant} is watered.", "button.deny": "Allow"}),
        SentenceCatalogue("fr", {"button.once": "Permettre une fois", "stop.done": "Arrêt de {what}."}),
        SentenceCatalogue("fr", {"garden.watered": "{plant} est arrosé.", "button.once": "Jamais"}),
    ]
    say = Sentences(given, language="fr-CA")
    assert say("garden.watered", plant="{Basil}") == "{Basil} est arrosé."
    assert say("button.once") == "Permettre une fois" and say("button.deny") == "Deny"
    assert say("stop.done") == "Stopping." and "stop.done of fr" in caplog.text
    assert Sentences(given, language="de")("garden.watered", plant="Basil") == "Basil is watered."
    assert Sentences(given, language="xx")("button.once") == "Allow once"


def test_a_region_has_what_its_language_has() -> None:
    """One sentence of a plugin for a region does not make all others English; each key is looked up by itself."""
    given = [
        SentenceCatalogue("de-AT", {"garden.watered": "{plant} is gossn."}),
        SentenceCatalogue("de", {"garden.watered": "{plant} ist gegossen.", "garden.dry": "Trocken."}),
        SentenceCatalogue(
            "en", {"garden.watered": "{plant} is watered.", "garden.dry": "Dry.", "garden.ok": "Ok."}
        ),
    ]
    say = Sentences(given, language="de-AT")
    assert say("button.deny") == "Ablehnen" and say("garden.watered", plant="Dill") == "Dill is gossn."
    assert say("garden.dry") == "Trocken." and say("garden.ok") == "Ok."
    asked = Sentences()("ask.write", block="main", tool="write_file")
    assert say.translate(asked) == GERMAN["ask.write"].format(block="main", tool="write_file")


@pytest.mark.parametrize("tag", ["en", "en-GB", "EN-gb", "en-GB-oxendict", "de", "de-DE", "de-Latn-DE", "DE"])
def test_no_plugin_replaces_a_sentence_of_the_platform(tag: str) -> None:
    """In no region of a language of the platform."""
    given = [SentenceCatalogue(tag, dict.fromkeys(ENGLISH, "Allow once"))]
    say, platform = Sentences(given, language=tag), GERMAN if tag.lower().startswith("de") else ENGLISH
    assert {key: say(key) for key in ENGLISH} == dict(platform)


@pytest.mark.parametrize(
    "words",
    [
        "once: n; conversation: c; always: a; no: x",
        "once: no; conversation: c; always: a; no: x",
        "once: o; conversation: o; always: a; no: x",
        "once: o; conversation: ; always: a; no: x",
        "once: o; no: x",
        "",
        "o/n",
    ],
)
def test_words_that_could_mean_their_opposite_are_not_used(
    words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A language of a plugin lists the words of its prompts. A word that refuses in English never allows."""
    caplog.set_level(logging.WARNING)
    say = Sentences([SentenceCatalogue("fr", {"terminal.words": words})], language="fr")
    assert say.words("terminal.words") == Sentences().words("terminal.words")
    assert not words or "terminal.words of fr" in caplog.text


def test_a_language_of_a_plugin_has_words_of_its_own() -> None:
    """The English letters do not count then, and the whole English words do."""
    given = SentenceCatalogue(
        "fr", {"terminal.words": "once: o oui; conversation: d; always: t toujours; no: n non a"}
    )
    words = Sentences([given], language="fr").words("terminal.words")
    assert words.shown == {"once": "o", "conversation": "d", "always": "t", "no": "n"}
    assert [words.read(one) for one in (" OUI ", "a", "y", "c", "yes", "always", "")] == [
        "once", "no", None, None, "once", "always", None,
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_mail_names_words_that_are_understood(language: str) -> None:
    """The words in the explanation of a mail are those of the entry that is read, in the same order."""
    say = Sentences(language=language)
    named = re.findall("`(.+?)`", say("email.how"))
    read = say.words("approval.words")
    assert [read.read(word) for word in named] == ["approve", "deny", "approve", "deny"]
    assert named[2:] == [read.shown["approve"], read.shown["deny"]]


def test_german_sentences_about_decisions_say_one_thing() -> None:
    """What allows says so and refuses nothing, and the reverse; every question asks to allow."""
    allowing = {"button.once", "button.conversation", "button.always", "outcome.allowed", "decision.allowed"}
    refusing = {
        "button.deny", "outcome.denied", "outcome.late", "decision.denied", "approval.needed", "approval.waiting",
        "terminal.late", "menu.deny",
    }  # fmt: skip
    allows, refuses = re.compile("erlaub", re.IGNORECASE), re.compile("ablehn|abgelehnt", re.IGNORECASE)
    for key in (*allowing, "menu.approve"):
        assert allows.search(GERMAN[key]) and not re.search(
            "ablehn|abgelehnt|nicht|kein", GERMAN[key].lower()
        ), key
    for key in refusing:
        assert refuses.search(GERMAN[key]) and not allows.search(GERMAN[key]), key
    for key in (key for key in GERMAN if key.startswith("ask.") and key != "ask.question"):
        assert GERMAN[key].endswith(": {tool}. Erlauben?") and not refuses.search(GERMAN[key]), key
    for key in ("outcome.withdrawn.cancelled", "outcome.withdrawn.stopped", "outcome.withdrawn.ended"):
        assert "die Antwort des Agenten" in GERMAN[key], key  # not that of the owner


def test_a_task_is_ended_and_not_an_agent() -> None:
    """What the owner allows is the same in both languages."""
    assert GERMAN["ask.delegate"].count("Aufgabe") == 2 and "ihn beenden" not in GERMAN["ask.delegate"]


def test_a_text_of_another_worker_is_translated() -> None:
    """The sentence of an error and the question about a call; what a person or an agent wrote stays as it is."""
    say = Sentences(language="de")
    asked = Sentences()("ask.write", block="main", tool="write_file")
    assert say.translate(asked) == GERMAN["ask.write"].format(block="main", tool="write_file")
    assert say.translate(FIXED_SENTENCES[ErrorCode.PANIC]) == GERMAN["error.panic"]
    assert say.translate("Deny this, please.") == "Deny this, please."
    assert Sentences().translate(asked) == asked


def test_sentences_of_an_absent_plugin_are_left_out() -> None:
    """A notice is told with what is known here."""
    said = Sentences(language="de").put(
        [Sentence("shell.ended", {"block": "main"}), Sentence("stop.nothing")]
    )
    assert said == "Hier läuft nichts."


@pytest.mark.anyio
async def test_a_chat_speaks_the_language_of_the_owner() -> None:
    """Buttons, commands and outcomes; a change counts at once."""
    async with ScriptedGateway() as gateway:
        assert command_menu(gateway.sentences)["stop"] == "Stop the running answer"
        gateway.sentences.language = "de"
        assert command_menu(gateway.sentences)["stop"] == "Die laufende Antwort anhalten"
        said = await decide_by_words(gateway, "approve abcde-fghij")
        assert said is not None and said.startswith("Keine offene Entscheidung")
        await anyio.lowlevel.checkpoint()
