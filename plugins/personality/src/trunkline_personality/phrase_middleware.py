"""A message that is nothing but "Set humor to 80%" becomes a call of ``personality_set``, whatever model answers.

The call goes the way of every call: checked, asked about where that is the rule, recorded, shown. The model is asked
when its result is there, and says so in its own words.
"""

from collections.abc import AsyncIterator

from trunkline import ToolCall
from trunkline.api.model import AskModel, Call, Finish, ModelEvent, ModelRequest

TOOL = "personality_set"

LONGEST_PHRASE = 400
"""Characters beyond which a message is no command."""


class PhraseMiddleware:
    """Model middleware. A message about anything else costs a look at its length, and most often nothing more."""

    def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """The call, or what the model answers."""
        said = request.messages[-1] if request.messages else None
        if (
            said is None
            or said.role != "user"
            or len(said.content) > LONGEST_PHRASE
            or not request.tools  # it asks for no calls; which tools are shown says nothing of what may be called
        ):
            return proceed(request)
        from trunkline_personality.phrases import is_command

        if not is_command(said.content):
            return proceed(request)
        return _call_tool(said.content.strip(), f"said_{len(request.messages)}")


async def _call_tool(command: str, id: str) -> AsyncIterator[ModelEvent]:
    yield Call(ToolCall(id=id, name=TOOL, arguments={"command": command}))
    yield Finish(reason="tool_calls", model="")
