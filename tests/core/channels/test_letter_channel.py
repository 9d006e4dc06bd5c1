"""The features of ``LetterChannel`` for channels of letters, beyond the contract suite that the examples run."""

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import anyio
import pytest

from trunkline import RemoteFault
from trunkline.api.channel import Letter, LetterChannel
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.listing import AdapterListing, ListedModel
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.feed_messages import TextDelta, ToolEnded, TurnEnded
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.testing.channel_suite import wait_until
from trunkline.testing.scripted_gateway import ScriptedGateway, Step

pytestmark = pytest.mark.anyio


class Pile(LetterChannel):
    """Letters from a list, given again and again until they are answered."""

    name = "pile"

    def __init__(self, notes: Path | None = None) -> None:
        super().__init__(notes)
        self.waiting: list[Letter] = []
        self.answers: dict[str, str] = {}

    async def letters(self) -> AsyncGenerator[Letter, None]:
        while True:
            for letter in list(self.waiting):
                yield letter
            await anyio.sleep(0.01)

    async def show(self, letter: Letter, text: str, *, done: bool) -> None:
        self.answers[letter.id] = text
        if done:
            self.waiting.remove(letter)


async def answered(pile: Pile, gateway: ScriptedGateway, *letters: Letter) -> None:
    """Run the channel until these are answered."""
    pile.waiting += letters
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pile.run, gateway)
        await wait_until(lambda: not pile.waiting)
        tasks.cancel_scope.cancel()


async def test_each_sender_has_a_conversation_and_each_letter_counts_once() -> None:
    """Two people do not meet, and a letter that is given again while it is answered is passed over."""
    async with ScriptedGateway() as gateway:
        pile = Pile()
        await answered(pile, gateway, Letter("1", "tea", "ada"), Letter("2", "coffee", "bob"))
        await answered(pile, gateway, Letter("3", "more tea", "ada"))
    assert pile.answers == {"1": "You said: tea", "2": "You said: coffee", "3": "You said: more tea"}
    first, second, third = gateway.sent
    assert (first.conversation, second.conversation) == (None, None)
    assert third.conversation is not None and len(gateway.sent) == 3


async def test_a_restart_continues_the_conversation(tmp_path: Path) -> None:
    """The notes record each sender's conversation; unreadable notes start empty, and nothing fails."""
    notes = tmp_path / "notes" / "who.json"
    async with ScriptedGateway() as gateway:
        for number in ("1", "2"):
            await answered(Pile(notes), gateway, Letter(number, "tea"))
        notes.write_text("{half")
        await answered(Pile(notes), gateway, Letter("3", "tea"))
    assert [message.conversation is None for message in gateway.sent] == [True, False, True]


async def test_a_refused_letter_is_answered_with_the_sentence() -> None:
    """The person receives the gateway's reason, and the next letter is accepted."""
    async with ScriptedGateway() as gateway:
        pile = Pile()
        gateway.refuses = RemoteFault(ErrorCode.TOO_LARGE, FIXED_SENTENCES[ErrorCode.TOO_LARGE])
        await answered(pile, gateway, Letter("1", "a whole book"))
        gateway.refuses = None
        await answered(pile, gateway, Letter("2", "a line"))
    assert pile.answers == {"1": "The message is too large.", "2": "You said: a line"}


async def test_a_deleted_conversation_is_started_again(tmp_path: Path) -> None:
    """The conversation was deleted in between: the letter is answered in another one."""
    notes = tmp_path / "who.json"
    notes.write_text('{"": "conv_gone"}')
    async with ScriptedGateway() as gateway:
        pile = Pile(notes)
        await answered(pile, gateway, Letter("1", "tea"))
    assert pile.answers == {"1": "You said: tea"}
    assert gateway.sent[-1].conversation is None and "conv_gone" not in notes.read_text()


async def test_results_too_long_to_show_are_named_below_the_answer() -> None:
    """The note appears once, with the command that prints the result, and above the question for a pending decision."""

    def long(message: SendMessage) -> Iterable[Step]:
        stored = StoredResult(id="k3v7qx2mtp4a", characters=200_000, kept=200_000)
        for _ in range(2):  # a repeated step
            yield ToolEnded(step=0, call_id="c1", name="read_file", output="a … z", stored=stored)
        yield ToolEnded(step=0, call_id="c2", name="list_directory", output="short")
        yield TextDelta(step=1, offset=0, text="It is long.")
        yield TurnEnded(reason="stop")

    async with ScriptedGateway(long) as gateway:
        pile = Pile()
        await answered(pile, gateway, Letter("1", "read it"))
    answer, _, below = pile.answers["1"].partition("\n\n")
    assert answer == "It is long."
    assert (
        below == "read_file: All that is kept of its 200000 characters: trunkline results show k3v7qx2mtp4a"
    )


class Owned(Pile):
    """A pile whose owner can be notified; Ada is the owner."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[str] = []

    async def tell_owner(self, text: str) -> None:
        self.reported.append(text)

    def is_owner(self, letter: Letter) -> bool:
        return letter.sender == "ada"


async def test_MB_T11_only_the_owner_decides_by_mail() -> None:
    """The owner is notified of pending approvals elsewhere. Only the owner's letter can approve, even when others
    know the id, and it is no message to the agent; an approval that is no longer pending is reported."""
    async with ScriptedGateway() as gateway:
        pile = Owned()
        asked = gateway.request_approval("Send the mail?")
        await answered(pile, gateway, Letter("1", f"approve {asked.id}", "eve"))
        assert gateway.decided == [] and "Only the owner" in pile.answers["1"]
        await answered(pile, gateway, Letter("2", f" Approve {asked.id} ALWAYS\n", "ada"))
        assert (gateway.decided, gateway.scopes) == ([(asked.turn, asked.call, True)], ["always"])
        await answered(
            pile, gateway, Letter("3", f"deny {asked.id}", "ada"), Letter("4", "Deny everything", "ada")
        )
        assert "No pending approval" in pile.answers["3"] and pile.answers["4"] == "You said: Deny everything"
        assert [message.content for message in gateway.sent] == ["Deny everything"]
        assert any("Send the mail?" in text and asked.id in text for text in pile.reported)


async def test_a_channel_without_an_owner_accepts_no_decisions() -> None:
    """The default is no."""
    async with ScriptedGateway() as gateway:
        pile = Pile()
        asked = gateway.request_approval("Send the mail?")
        await answered(pile, gateway, Letter("1", f"approve {asked.id}"))
        assert gateway.decided == [] and "Only the owner" in pile.answers["1"]


async def test_MB_T11_only_the_owner_answers_by_mail() -> None:
    """Only the owner's letter can answer a question; a number selects a proposal, and an answer may have several
    lines."""
    async with ScriptedGateway() as gateway:
        pile = Owned()
        first = gateway.ask_question("Which one?", options=("the red", "the blue"))
        second = gateway.ask_question("Why?")
        await answered(pile, gateway, Letter("1", f"answer {first.id} 2", "eve"))
        assert gateway.answers == [] and "Only the owner" in pile.answers["1"]
        await answered(pile, gateway, Letter("2", f"answer {first.id} 2", "ada"))
        await answered(pile, gateway, Letter("3", f"Answer {second.id} It is\nlate.", "ada"))
        assert gateway.answers == ["the blue", "It is\nlate."] and not gateway.sent
        assert pile.answers["2"] == "Answered: Which one?"
        assert any("2. the blue" in text and f"answer {first.id}" in text for text in pile.reported)


class OwnersPile(Pile):
    """A pile on which only the owner lays letters."""

    def is_owner(self, letter: Letter) -> bool:
        return letter.sender != "stranger"


async def test_the_owner_chooses_a_model_by_letter() -> None:
    """``/model`` lists, ``/model NAME`` chooses, ``/model default`` removes the choice. A wrong name is refused, a
    stranger is, too, and none of these letters reaches the agent."""
    async with ScriptedGateway() as gateway:
        gateway.listings = (
            AdapterListing(adapter="a", at=utc_now(), models=(_listed("a/big"), _listed("a/small"))),
            AdapterListing(adapter="b", at=utc_now(), problem="unavailable"),
        )
        pile = OwnersPile()
        await answered(pile, gateway, Letter("0", "/model"), Letter("1", "tea"))
        texts = ("/model", "/model a/small", "/model a/smal", "/model default", "/models are fun")
        for number, text in enumerate(texts, 2):
            await answered(pile, gateway, Letter(str(number), text))
        await answered(pile, gateway, Letter("9", "/model a/big", "stranger"))
    assert "send a message first" in pile.answers["0"]
    assert "scripted/model answers here" in pile.answers["2"]
    assert "  a/big\n  a/small\n" in pile.answers["2"] and "No list from b (unavailable)" in pile.answers["2"]
    assert pile.answers["3"] == "a/small answers here (chosen for this conversation)."
    assert "no model a/smal" in pile.answers["4"]
    assert "by the settings" in pile.answers["5"]
    assert pile.answers["6"] == "You said: /models are fun" and "Only the owner" in pile.answers["9"]
    assert [message.content for message in gateway.sent] == ["tea", "/models are fun"]


def _listed(name: str) -> ListedModel:
    return ListedModel(name=name, context_window=0, max_output=0, abilities=None)


async def test_a_cut_answer_says_so() -> None:
    """MN-F11: "cut by token limit" stands below the answer."""

    def cut(message: SendMessage) -> Iterable[Step]:
        yield TextDelta(step=0, offset=0, text="It is lo")
        yield TurnEnded(reason="max_tokens")

    async with ScriptedGateway(cut) as gateway:
        pile = Pile()
        await answered(pile, gateway, Letter("1", "tell me"))
    assert pile.answers["1"] == "It is lo\n\nThe answer was cut at the token limit."
