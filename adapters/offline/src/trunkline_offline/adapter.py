"""The adapter: streams, word by word, what ``answers.answer`` says. Nothing else may be in here."""

import re
from collections.abc import AsyncIterator

import anyio.lowlevel

from trunkline.api.model import Call, Finish, ModelAdapter, ModelEvent, ModelInfo, ModelRequest, Text
from trunkline_offline.answers import answer


class OfflineAdapter(ModelAdapter):
    """Answers without a model. It works through tools as a model does: it calls them and reads their results."""

    name = "offline"
    vendor = "offline"
    derived = True

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer; no error is possible, and no tokens are counted because there are none."""
        text, calls = answer(request)
        for word in re.findall(r"\s*\S+\s*", text):
            yield Text(word)
            await anyio.lowlevel.checkpoint()
        for call in calls:
            yield Call(call)
        yield Finish(reason="tool_calls" if calls else "stop", model="offline")

    async def models(self) -> tuple[ModelInfo, ...]:
        """There is one, and it is none."""
        return (ModelInfo(id="offline"),)
