"""Mails between colleagues about projects, in threads of days, whose replies quote what they answer."""

from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.memory.collections.collection import Collection, Conversation, Question, turn

THREADS = 40
BEGAN = datetime(2026, 1, 12, 8, tzinfo=UTC)
PEOPLE = ("Harriet", "Dev", "Solveig", "Baptiste", "Ngozi", "Pavel", "Chiara", "Emre")
PROJECTS = (
    "lighthouse", "orchard", "tramway", "glacier", "lantern", "harbour", "meadow", "quarry", "saffron", "willow",
)  # fmt: skip
SUBJECTS = (
    "the brochure",
    "the kitchen",
    "the data import",
    "the exhibition",
    "the new website",
    "the audit",
)
SUPPLIERS = (
    "Corvina Print",
    "Halberd Steel",
    "Nimbus Hosting",
    "Petrel Logistics",
    "Ostrom Glass",
    "Tamarind Foods",
)
FACTS = (
    ("The supplier for {subject} of {project} is now {supplier}, the other one could not deliver.",
     "Who delivers {subject} for the project {project}?"),
    ("For {project} we have {amount} euros left for {subject}, not a cent more.",
     "What is the remaining budget of {project} for {subject}?"),
    ("{person} will be responsible for {subject} in {project} while I am on leave.",
     "Who takes care of {subject} at {project}?"),
    ("The deadline of {subject} for {project} was put off to the {day}th, the client agreed on the phone.",
     "Until when does {subject} of {project} have to be ready?"),
)  # fmt: skip
TALK = (
    "Thanks for the quick answer, that helps me a lot. I will come back to you when I have talked with the client.",
    "Could you please look at the figures again? Something about the budget and the deadline does not add up.",
    "I agree with most of it. We should talk about who is responsible before the next meeting with the supplier.",
    "Sorry for the delay, the project kept me busy. I have no objections, please go on as we discussed.",
    "Please find the minutes of the meeting below. Tell me by tomorrow whether something is missing.",
    "Just a short note: the client called and asked when everything has to be ready. What shall I say?",
)
SIGNATURE = "--\n{name}\nOffice 4.12, extension {number}"


def collection() -> Collection:
    """Return the threads. A reply quotes the mail before it, so a quotation of a fact answers its question, too."""
    random = Random(31)
    pairs = [(project, subject) for project in PROJECTS for subject in SUBJECTS]
    random.shuffle(pairs)
    conversations, questions = [], []
    for number in range(THREADS):
        project, subject = pairs[number]
        at = BEGAN + timedelta(days=2 * number)
        people = random.sample(PEOPLE, 3)
        values = {
            "project": project,
            "subject": subject,
            "supplier": random.choice(SUPPLIERS),
            "amount": str(random.randrange(1_000, 9_000, 50)),
            "person": random.choice(PEOPLE),
            "day": str(random.randrange(4, 20)),
        }
        messages, before = [], ""
        holders: dict[str, set[str]] = {}
        facts = random.sample(FACTS, 2)
        for index in range(5):
            id, name = f"mail-{number}-{index}", people[index % 3]
            said = [random.choice(TALK)]
            if index in (1, 3):
                statement, question = facts[index // 2]
                said.insert(0, statement.format(**values))
                holders[question.format(**values)] = {id, f"mail-{number}-{index + 1}"}
            own = f"Re: {project}, {subject}\n\n" + " ".join(said)
            quoted = "\n".join(f"> {line}" for line in before.split("\n")) if before else ""
            signed = SIGNATURE.format(name=name, number=400 + len(name))
            messages.append(turn(id, at, name, "\n\n".join(filter(None, (own, signed, quoted)))))
            before = own
            at += timedelta(hours=random.choice((2, 20, 30)))
        conversations.append(Conversation(f"thread-{number}", tuple(messages)))
        questions += [Question(text, (frozenset(ids),)) for text, ids in holders.items()]
    return Collection("mail threads", questions, conversations)
