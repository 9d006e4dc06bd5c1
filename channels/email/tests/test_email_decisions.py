"""Decisions by mail: only the owner decides, and only with the words of the mail that asked."""

import pytest

from trunkline.api.testing import wait_until

from .mail_servers import decision_words
from .mail_store import OWNER, STRANGER
from .running_channel import talking

pytestmark = pytest.mark.anyio

BOB = "bob@owner.test"


@pytest.mark.parametrize(("word", "said", "allow"), [("approve", "yes", True), ("deny", "no", False)])
async def test_a_reply_with_yes_or_no_decides(word: str, said: str, allow: bool) -> None:
    """The reply above the quoted mail decides once, is confirmed, and no other mail tells the same."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        asked = gateway.request_approval("Send the mail?")
        await wait_until(store.mails)
        (question,) = store.mails()
        assert "Send the mail?" in question["Subject"] and "a@example.org" in store.seen()[0]
        line = decision_words(store.seen(), asked.id, word).replace(word, said)
        quoted = "\n".join(f"> {text}" for text in store.seen()[0].split("\n"))
        store.say(
            f"{line}\n\nSent from my phone\n\nOn Mon, 2 Nov 2026, Agent wrote:\n\n{quoted}\n", to=question
        )
        await wait_until(lambda: gateway.decided)
        await wait_until(lambda: len(store.mails()) == 2)
        store.say("hello")
        await wait_until(lambda: "You said: hello" in store.seen())
    assert gateway.decided == [(asked.turn, asked.call, allow)] and gateway.scopes == ["once"]
    assert [text.split(":")[0] for text in store.seen()[1:]] == ["Allowed" if allow else "Denied", "You said"]


@pytest.mark.parametrize(
    ("word", "said", "allow"),
    [("erlauben", "ja", True), ("ablehnen", "nein", False), ("ablehnen", "no", False)],
)
async def test_a_reply_decides_in_german(word: str, said: str, allow: bool) -> None:
    """The mail names German words; those, "ja" and "nein", and the English words decide."""
    async with talking() as (servers, gateway, _):
        gateway.sentences.language = "de"
        asked = gateway.request_approval("Send the mail?")
        await wait_until(servers.store.mails)
        line = decision_words(servers.store.seen(), asked.id, word)
        servers.store.say(line.replace(word, said))
        await wait_until(lambda: gateway.decided)
    assert gateway.decided == [(asked.turn, asked.call, allow)]


async def test_only_the_words_of_the_mail_that_asked_decide() -> None:
    """The id alone is a message to the agent; another token, another owner's token, and more text decide nothing."""
    async with talking(owners=(OWNER, BOB)) as (servers, gateway, _):
        store = servers.store
        asked = gateway.request_approval("Send the mail?")
        await wait_until(lambda: store.mails() and store.mails(BOB))
        right = decision_words(store.seen(), asked.id, "approve")
        store.say(f"approve {asked.id}")
        store.say(f"approve {asked.id}-{'0' * 20}")
        store.say(decision_words(store.seen(BOB), asked.id, "approve"))
        store.say(f"{right}\nbut not on Sunday")
        await wait_until(lambda: len(store.mails()) == 5)
        said = store.seen()[1:]
        assert gateway.decided == []
        store.say(f"{right} conversation")
        await wait_until(lambda: gateway.decided)
    assert gateway.scopes == ["conversation"]
    assert sum("Nothing was decided" in text for text in said) == 3
    assert [message.content for message in gateway.sent] == [f"approve {asked.id}"]


async def test_nobody_else_decides() -> None:
    """The right words of a stranger, and of a forged owner, decide nothing and are not answered."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        asked = gateway.request_approval("Send the mail?")
        await wait_until(store.mails)
        words = decision_words(store.seen(), asked.id, "approve")
        store.say(words, sender=STRANGER)
        store.say(words, confirmed="fail")
        store.say(words, confirmed=None)
        store.say("hello")
        await wait_until(lambda: "You said: hello" in store.seen())
    assert gateway.decided == [] and STRANGER not in store.received and len(store.mails()) == 2


async def test_a_question_is_answered_and_an_outcome_from_elsewhere_is_told() -> None:
    """An answer with its number reaches the gateway; what another channel decides is told in the same thread."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        asked = gateway.ask_question("Which one?", options=("the red", "the blue"))
        other = gateway.request_approval("Send the mail?")
        await wait_until(lambda: len(store.mails()) == 2)
        store.say(decision_words(store.seen(), asked.id, "answer") + " 2", to=store.mails()[0])
        await wait_until(lambda: gateway.answers)
        gateway.settle(other, allow=False, by="channel:terminal")
        await wait_until(lambda: any("Denied by" in text for text in store.seen()))
        outcome = next(
            mail for mail, text in zip(store.mails(), store.seen(), strict=True) if "Denied by" in text
        )
        question = next(mail for mail in store.mails() if "Send the mail?" in mail["Subject"])
    assert gateway.answers == ["the blue"] and outcome["In-Reply-To"] == question["Message-ID"]
