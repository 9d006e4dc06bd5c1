"""A platform for clients of other people, which run in processes and environments of their own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from trunkline.testing.platform import Platform, platform
from trunkline.testing.script import Reply, Say, ScriptedRequest, Stop, answer_by_message
from trunkline.testing.scripted_provider import ScriptedProvider

EDIT = """I change it.

greeting.py
```
<<<<<<< SEARCH
print("hello")
=======
print("good morning")
>>>>>>> REPLACE
```
"""
"""An edit of a file, as aider's instructions describe it."""


@dataclass(frozen=True)
class Served:
    """A running platform, and the vendor behind it."""

    platform: Platform
    provider: ScriptedProvider

    @property
    def environ(self) -> dict[str, str]:
        """The variables that tell the programs of ``programs`` and ``node`` where the platform is."""
        return {"CLIENT_URL": f"{self.platform.url}/v1", "CLIENT_KEY": self.platform.token}


def answer(request: ScriptedRequest) -> Reply:
    """Edit a file for aider, and do what the last message says for any other client."""
    if any("*SEARCH/REPLACE block*" in line.text for line in request.lines):
        return [Say(EDIT), Stop()]
    return answer_by_message(request)


@pytest.fixture(scope="module")
async def served(anyio_backend: str) -> AsyncIterator[Served]:
    """A platform that the tests of a module share."""
    with ScriptedProvider(answer) as provider:
        async with platform(config=provider.settings) as running:
            yield Served(running, provider)
