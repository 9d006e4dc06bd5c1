"""Chats of a person with an assistant: long answers, and facts that the person mentions beside a request.

Most questions are about what the person said, the others about an explanation of the assistant. The answers use
the words of the questions more than the facts do.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.memory.collections.collection import Collection, Conversation, Question, turn
from benchmarks.memory.collections.topics import TOPICS, Fact, Topic, unique_facts
from benchmarks.memory.docstrings import pairs
from trunkline.contracts.conversations.messages import Message

EXCHANGES = 360
BEGAN = datetime(2026, 2, 1, 9, tzinfo=UTC)
OPENINGS = (
    "Of course, I am glad to help with that.",
    "That is a great question, and many people ask it.",
    "Thank you for telling me. Here is what I would do.",
    "Let us go through it step by step.",
)
CLOSINGS = (
    "Let me know whether you want a shorter version.",
    "If you tell me more, I can make it fit better.",
    "Shall I turn this into a list?",
    "Tell me how it went!",
)


def collection() -> Collection:
    """Return one long chat over some weeks. Each fact is said once, and no two have the same question."""
    random = Random(17)
    explained = [
        one
        for one in {question: (question, text) for question, text in pairs()}.values()
        if "->" not in one[0]
    ]
    random.shuffle(explained)
    facts = unique_facts(random, EXCHANGES // 3)
    messages: list[Message] = []
    questions: list[Question] = []
    for number in range(EXCHANGES):
        at = BEGAN + timedelta(hours=5 * (number // 6), minutes=4 * (number % 6))
        asked, answered = f"chat-{2 * number}", f"chat-{2 * number + 1}"
        if number % 3 == 0 and facts:
            fact = facts.pop()
            text, answer = _request(random, fact), _advice(random, fact.topic)
            questions += [Question(one, (frozenset({asked}),)) for one in fact.questions]
        elif number % 3 == 1:
            question, explanation = explained[number]
            text = f"What does this mean: {question}"
            answer = " ".join((random.choice(OPENINGS), explanation, random.choice(CLOSINGS)))
            if number % 12 == 1:
                questions.append(Question(question, (frozenset({answered}),)))
        else:
            topic = random.choice(TOPICS)
            text, answer = random.choice(topic.requests), _advice(random, topic)
        messages.append(turn(asked, at, "user", text))
        messages.append(turn(answered, at + timedelta(seconds=30), "assistant", answer))
    return Collection("assistant chat", questions, (Conversation("chat", tuple(messages)),))


def _request(random: Random, fact: Fact) -> str:
    """Return a request with a fact in its middle."""
    topic = random.choice(TOPICS)
    request = random.choice(topic.requests)
    return random.choice((f"{fact.statement} {request}", f"{request} {fact.statement}"))


def _advice(random: Random, topic: Topic) -> str:
    return "\n\n".join(_paragraphs(random, topic))


def _paragraphs(random: Random, topic: Topic) -> Iterator[str]:
    yield random.choice(OPENINGS)
    yield from random.sample(topic.advice, len(topic.advice))
    for other in random.sample(TOPICS, 4):
        yield from random.sample(other.advice, 2)
    yield random.choice(CLOSINGS)
