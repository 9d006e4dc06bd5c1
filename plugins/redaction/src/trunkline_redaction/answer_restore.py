"""An answer of a model in which the placeholders of its request come back as what they stand for. No I/O."""

from collections.abc import Iterator

from msgspec.structs import replace

from trunkline import ToolCall
from trunkline.api.model import Call, ModelEvent, Reasoning, Text, ToolRan
from trunkline_redaction.placeholders import Placeholders, RestoringStream


class RestoredAnswer:
    """Puts back the placeholders of one answer, whose text is JSON if ``in_json``. Blocks of reasoning stay as they
    are: the vendor has them back.
    """

    def __init__(self, placeholders: Placeholders, *, in_json: bool = False) -> None:
        self._placeholders = placeholders
        self._text = RestoringStream(placeholders.in_json() if in_json else placeholders)
        self._reasoning = RestoringStream(placeholders)

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Yield what is certain of the answer by now, restored."""
        if not self._placeholders:
            yield event
            return
        match event:
            case Text(piece):
                yield from self._rest_of_reasoning()
                yield from _some(Text, self._text.feed(piece))
            case Reasoning(piece):
                yield from self._rest_of_text()
                yield from _some(Reasoning, self._reasoning.feed(piece))
            case _:
                yield from self._rest_of_reasoning()
                yield from self._rest_of_text()
                yield self._restored(event)

    def _rest_of_text(self) -> Iterator[ModelEvent]:
        yield from _some(Text, self._text.finish())

    def _rest_of_reasoning(self) -> Iterator[ModelEvent]:
        yield from _some(Reasoning, self._reasoning.finish())

    def _restored(self, event: ModelEvent) -> ModelEvent:
        match event:
            case Call(call):
                return Call(self._call(call))
            case ToolRan(call, output, error):
                return ToolRan(self._call(call), self._placeholders.restore(output), error)
            case _:
                return event

    def _call(self, call: ToolCall) -> ToolCall:
        restore = self._placeholders.restore
        arguments = self._placeholders.restore_all(call.arguments)
        return replace(call, id=restore(call.id), name=restore(call.name), arguments=arguments)


def _some(kind: type[Text] | type[Reasoning], text: str) -> Iterator[ModelEvent]:
    if text:
        yield kind(text)
