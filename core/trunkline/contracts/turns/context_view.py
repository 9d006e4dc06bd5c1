"""The context view: what a model was sent in one model call of a turn, part by part, with the tokens of each part."""

from typing import Literal

import msgspec

from trunkline_bus import Payload

SentPartKind = Literal[
    "tool", "bootstrap", "context", "instructions", "summary", "history", "recall", "message", "turn"
]
"""The kinds of parts, in the order in which vendors read them: the definition of a tool, the bootstrap line, a part of
the constant context, a client's instructions, the summary of earlier messages, a message of the history, a part of the
changing context, a message of this turn's person or client, and an answer or result of this turn.
"""


class GetContext(Payload, frozen=True, kw_only=True, tag="turn.get-context.v1"):
    """Ask for the context of the last model call of a turn; None selects the conversation's last turn that asked a
    model. With ``texts`` the parts have their texts.
    """

    conversation: str
    turn: str | None = None
    texts: bool = False


class SentPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of what the model was sent.

    ``name`` is the tool, the source of the context, or the role of the message with the tool that it is a result of.
    ``message`` is the id of the message. ``tokens`` is the part's estimated share of the tokens that the vendor
    counted, or its estimated size where the vendor counted none. ``cached`` is how many of them were in the
    beginning of the request, which the vendor read from its cache. ``text`` is empty unless it was asked for; a tool
    has none, because the journal has only the size of its definition.
    """

    kind: SentPartKind
    name: str
    tokens: int
    cached: int = 0
    message: str = ""
    text: str = ""


class ContextView(Payload, frozen=True, kw_only=True, tag="turn.context-view.v1"):
    """The context of model call number ``step`` (from 0) of a turn, as the journal and the stored conversation have
    it. Placeholders of redacted texts are not in it. ``model`` is the one that answered; it may be a fallback.

    ``input_tokens`` and ``cached_tokens`` are the vendor's own counts, 0 if the vendor counted none. ``window`` is the
    number of tokens that the model accepts. The tokens of the parts add up to ``input_tokens`` if that is known.
    """

    conversation: str
    turn: str
    step: int
    model: str
    window: int
    input_tokens: int = 0
    cached_tokens: int = 0
    parts: tuple[SentPart, ...] = ()

    @property
    def tokens(self) -> int:
        """The vendor's count, else the sum of the estimates."""
        return self.input_tokens or sum(part.tokens for part in self.parts)
