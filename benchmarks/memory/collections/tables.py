"""Tables: the stock of a warehouse in CSV files of some rows, with questions about single things."""

from random import Random

from benchmarks.memory.collections.collection import Collection, Document, Question

ROWS = 12
KINDS = (
    "cable",
    "bracket",
    "valve",
    "filter",
    "hinge",
    "sensor",
    "gasket",
    "bolt",
    "lamp",
    "switch",
    "pump",
    "belt",
)
MATERIALS = (
    "steel",
    "brass",
    "rubber",
    "copper",
    "ceramic",
    "plastic",
    "aluminium",
    "glass",
    "carbon",
    "titanium",
)
SIZES = ("small", "medium", "large", "double", "short", "long")
SUPPLIERS = ("Anselm", "Brandt", "Castor", "Dunmore", "Eskil", "Fabre", "Grohl", "Hessel")
QUESTIONS = (
    "Which supplier delivers the {size} {material} {kind}?",
    "On which shelf is the {size} {material} {kind}?",
    "How many of the {kind} in {material}, {size}, do we have?",
)


def collection() -> Collection:
    """Return the files and the questions."""
    random = Random(53)
    things = [(kind, material, size) for kind in KINDS for material in MATERIALS for size in SIZES]
    random.shuffle(things)
    documents, questions = [], []
    for number in range(len(things) // ROWS):
        id = f"stock-{number}.csv"
        rows = ["item,quantity,shelf,supplier"]
        for kind, material, size in things[number * ROWS : (number + 1) * ROWS]:
            place = f"{random.choice('ABCDEF')}{random.randrange(1, 40)}"
            rows.append(
                f"{kind} {material} {size},{random.randrange(900)},{place},{random.choice(SUPPLIERS)}"
            )
        documents.append(Document(id, "\n".join(rows) + "\n"))
        kind, material, size = things[number * ROWS + random.randrange(ROWS)]
        text = random.choice(QUESTIONS).format(kind=kind, material=material, size=size)
        questions.append(Question(text, (frozenset({id}),)))
        kind, material, size = things[number * ROWS + random.randrange(ROWS)]
        text = f"{material} {kind} {size} in stock"
        questions.append(Question(text, (frozenset({id}),)))
    return Collection("tables", questions, documents=documents)
