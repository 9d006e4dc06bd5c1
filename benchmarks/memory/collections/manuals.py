"""Technical documents: the operations of a vendor's services as ``botocore`` ships them.

The first sentence of an operation's documentation is the question, and the rest of it the text to find. A file that
several operations share word for word answers the questions of all.
"""

import gzip
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from random import Random

import botocore

from benchmarks.memory.collections.collection import Collection, Document, Question

SERVICES = (
    "ec2",
    "s3",
    "iam",
    "lambda",
    "rds",
    "sqs",
    "dynamodb",
    "cloudfront",
    "ecs",
    "route53",
    "kms",
    "glue",
)
TEXTS, QUESTIONS = 1_500, 300
_TAG = re.compile(r"<[^>]+>")
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")


def collection() -> Collection:
    """Return the documents."""
    random = Random(71)
    found: dict[str, set[str]] = {}
    for question, text in _operations():
        found.setdefault(text, set()).add(question)
    texts = sorted(found)
    random.shuffle(texts)
    documents, questions = [], []
    holders: dict[str, set[str]] = {}
    for number, text in enumerate(texts[:TEXTS]):
        id = f"operation-{number}.md"
        documents.append(Document(id, text))
        for question in found[text]:
            holders.setdefault(question, set()).add(id)
    questions = [Question(question, (frozenset(ids),)) for question, ids in sorted(holders.items())]
    random.shuffle(questions)
    return Collection("manuals", questions[:QUESTIONS], documents=documents)


def _operations() -> Iterator[tuple[str, str]]:
    for service in SERVICES:
        for file in sorted((Path(botocore.__file__).parent / "data" / service).glob("*/service-2.json.gz")):
            described = json.loads(gzip.decompress(file.read_bytes()))
            for operation in described["operations"].values():
                text = " ".join(unescape(_TAG.sub(" ", operation.get("documentation", ""))).split())
                first, *rest = _SENTENCE.split(text)
                if 30 < len(first) < 200 and len(" ".join(rest)) > 150:
                    yield first, " ".join(rest)[:3_000]
