"""The command ``/model [NAME|default]``: shows and chooses the model of a conversation. The same in every channel."""

import re
from collections.abc import Sequence

from trunkline._util.text import printable
from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.models.listing import AdapterListing
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences

DEFAULT_MODEL = "default"
"""The name that removes the choice."""

MAX_LISTED = 40
"""The largest number of models in a list."""

_COMMAND = re.compile(r"/model(?:\s+(\S.*))?", re.IGNORECASE | re.DOTALL)


def parse_model_command(text: str) -> str | None:
    """Return the name after ``/model``, "" without one; None if the text is no such command."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1] or "").strip() if found else None


def wanted_model(name: str) -> str | None:
    """Return the model to choose by a name; None if the name removes the choice."""
    return None if name.lower() == DEFAULT_MODEL else name


def describe_answerer(answerer: Answerer, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return the sentence that says who answers in a conversation."""
    if answerer.problem:
        return say("model.none", problem=printable(answerer.problem))
    return say("model.chosen" if answerer.chosen else "model.default", model=printable(answerer.label))


def describe_models(
    answerer: Answerer, listings: Sequence[AdapterListing], say: Sentences = ENGLISH_SENTENCES
) -> str:
    """Return who answers, and the models that can be chosen instead."""
    names = [name for listing in listings for name in listing.names]
    silent = [
        f"{one.adapter} ({one.problem})" if one.problem else one.adapter for one in listings if not one.models
    ]
    lines = [describe_answerer(answerer, say), say("model.how")]
    lines += [f"  {printable(name)}" for name in names[:MAX_LISTED]]
    if len(names) > MAX_LISTED:
        lines.append(f"  {say('model.more', count=len(names) - MAX_LISTED)}")
    if silent:
        lines.append(say("model.silent", adapters=", ".join(silent)))
    return "\n".join(lines)


async def run_model_command(gateway: Gateway, conversation: str, name: str) -> str:
    """Show or choose the model of a conversation, and return what to tell the person. Raises as the ``Gateway``'s
    ``choose_model`` does.
    """
    if name:
        return describe_answerer(
            await gateway.choose_model(conversation, wanted_model(name)), gateway.sentences
        )
    answerer = await gateway.answerer(conversation=conversation)
    return describe_models(answerer, await gateway.models(), gateway.sentences)
