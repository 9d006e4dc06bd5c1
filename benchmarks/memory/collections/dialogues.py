"""Dialogues: short turns of two people over months, who mention facts in the middle of small talk."""

from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.memory.collections.collection import Collection, Conversation, Question, turn
from benchmarks.memory.collections.topics import TOPICS, make_fact
from trunkline.contracts.conversations.messages import Message

DIALOGUES, SESSIONS, TURNS = 3, 20, 18
BEGAN = datetime(2025, 9, 1, 19, tzinfo=UTC)
COUPLES = (("Nadia", "Bertil"), ("Carmen", "Idris"), ("Wilma", "Anton"))
SMALL_TALK = (
    "Oh, that sounds great, I am happy for you!", "Really? Tell me more about it.", "Haha, I know that feeling.",
    "How have you been since we last talked?", "The weather here is awful, it has been raining for days.",
    "I wish I had your energy.", "That must have been hard. How are you now?", "Did you sleep well at least?",
    "Work was long today, I am glad that it is over.", "You should do that more often!", "And what did the others say?",
    "I was thinking of you the other day.", "Let us do something together when you are back.", "Take care of yourself.",
)  # fmt: skip
QUESTIONS_BACK = (
    "And you, what is new?",
    "What about you?",
    "Anything exciting on your side?",
    "How is it going?",
)


def collection() -> Collection:
    """Return the dialogues. A question names the person, in place of "I"."""
    random = Random(83)
    conversations, questions = [], []
    answered: set[str] = set()
    for number, couple in enumerate(COUPLES):
        name = f"dialogue-{number}"
        messages: list[Message] = []
        for session in range(SESSIONS):
            at = BEGAN + timedelta(days=9 * session + number)
            for index in range(TURNS):
                id, speaker = f"{name}-{session}-{index}", couple[index % 2]
                text = random.choice(SMALL_TALK)
                if index % 5 == 3:
                    fact = make_fact(random, random.choice(TOPICS))
                    asked = [_about(speaker, one) for one in fact.questions]
                    if not answered.intersection(asked):
                        answered.update(asked)
                        text = f"{fact.statement} {random.choice(QUESTIONS_BACK) if random.random() < 0.4 else ''}"
                        questions += [Question(one, (frozenset({id}),)) for one in asked]
                elif random.random() < 0.3:
                    topic = random.choice(TOPICS)
                    text = f"{text} {random.choice(topic.requests)}"
                messages.append(turn(id, at + timedelta(seconds=40 * index), speaker, text.strip()))
        conversations.append(Conversation(name, tuple(messages)))
    return Collection("dialogues", questions, conversations)


_PERSONS = (
    (" am I ", " is {name} "), (" do I ", " does {name} "), (" did I ", " did {name} "), (" that I ", " that {name} "),
    (" will I ", " will {name} "), (" I ", " {name} "), (" my ", " {name}'s "), (" our ", " {name}'s "),
    (" we ", " {name} "), ("Remind me of", "What is"),
)  # fmt: skip


def _about(name: str, question: str) -> str:
    """Return a question of the first person as one about somebody. Rough, as people type."""
    for mine, theirs in _PERSONS:
        question = question.replace(mine, theirs.format(name=name))
    return question
