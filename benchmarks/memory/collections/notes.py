"""Notes of a person: files with headings and lists, each about one subject, with the facts of ``topics``."""

from random import Random

from benchmarks.memory.collections.collection import Collection, Document, Question
from benchmarks.memory.collections.topics import TOPICS, unique_facts

FILES = 70


def collection() -> Collection:
    """Return the notes. A file has some lines of general advice and one fact."""
    random = Random(41)
    documents, questions = [], []
    facts = unique_facts(random, FILES)
    for number in range(FILES):
        id = f"note-{number}.md"
        lines = [f"- {line}" for topic in random.sample(TOPICS, 3) for line in random.sample(topic.advice, 2)]
        if facts:
            fact = facts.pop()
            lines.insert(random.randrange(len(lines)), f"- {fact.statement}")
            questions += [Question(one, (frozenset({id}),)) for one in fact.questions]
        documents.append(Document(id, f"# Week {number + 1}\n\n" + "\n".join(lines)))
    return Collection("notes", questions, documents=documents)
