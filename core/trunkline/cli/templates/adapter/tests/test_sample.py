"""The sample adapter passes the parts of the contract suite that it can meet."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from trunkline import Message
from trunkline.api.model import ModelRequest
from trunkline.api.testing import PROGRAMS, SENTENCE, AdapterSuite, Situation, SituationName

from trunkline_sample import SampleAdapter


@pytest.fixture
def anyio_backend() -> str:
    """Trunkline runs on asyncio."""
    return "asyncio"


class TestSample(AdapterSuite):
    """The contract suite. If your vendor uses OpenAI's protocol, inherit
    ``ScriptedProviderSuite`` instead."""

    counts = False
    lacks: ClassVar = dict.fromkeys(PROGRAMS.keys() - {"text"}, "nobody is asked yet")

    @asynccontextmanager
    async def situation(self, name: SituationName) -> AsyncIterator[Situation]:
        """Yield an adapter and a request for a situation."""
        asked = Message(id="msg_1", role="user", content=SENTENCE)
        yield Situation(SampleAdapter(), ModelRequest(messages=(asked,)))
