"""PA's conformance criteria as tests that are named by their ids, through public surfaces: HTTP, files, git, processes.

What a later issue brings, and so is not tried here:

==========  ============================================================  =======================================
id          what is missing                                               until then
==========  ============================================================  =======================================
FS-2        skills and the generic skill tool                             tools, clients and providers are tried
FS-8        tools behind MCP and in a sandbox                             tools in files are tried
PA-T12      ``tool_error`` on a durable turn                              such a turn waits for a tools worker
==========  ============================================================  =======================================

FS-3 is DEPLOY-1, 2 and 3; FS-4 is SWAP-1; FS-5 is ARCH-3; FS-7 is ARCH-2: those tests carry both ids in their names.
PA-T11 says that a message is refused while the loop is down. Here it is accepted onto disk and answered when a loop
is back (design section 4), so what is refused is a message that cannot be put there.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from trunkline.testing.platform import UNASKED, Platform, clean_environ, platform
from trunkline.testing.scripted_provider import ScriptedProvider

from .client import Client
from .processes import Up

OpenPlatform = Callable[..., AbstractAsyncContextManager["ConformancePlatform"]]


@dataclass
class ConformancePlatform:
    """A platform whose model is the scripted provider, and a client of it."""

    platform: Platform
    provider: ScriptedProvider
    client: Client

    @property
    def home(self) -> Path:
        return self.platform.home.path

    @property
    def workspace(self) -> Path:
        """The folder of the default block's file tools."""
        return self.platform.home.workspace("main")

    def offered(self) -> set[str]:
        """The names of the tools that the model was offered last."""
        return {tool["function"]["name"] for tool in self.provider.answer_requests[-1].body.get("tools", ())}


@asynccontextmanager
async def client_of(url: str, token: str) -> AsyncIterator[Client]:
    """A client with the owner's token."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=100) as http:
        yield Client(http)


def talks_to(provider: ScriptedProvider) -> dict[str, Any]:
    """The settings with which the provider answers."""
    return provider.settings


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as serving:
        yield serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def open_platform(provider: ScriptedProvider, home: Path) -> OpenPlatform:
    """Opens a platform on the test's home; ``config`` are settings over those that talk to the provider."""

    @asynccontextmanager
    async def opened(
        config: Mapping[str, Any] | None = None, plugins: Sequence[object] = (), **given: Any
    ) -> AsyncIterator[ConformancePlatform]:
        settings = {**talks_to(provider), **(config or {})}
        async with (
            platform(home, config=settings, plugins=plugins, **given) as running,
            client_of(running.url, running.token) as client,
        ):
            yield ConformancePlatform(running, provider, client)

    return opened


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder for ``runtime.tool_sources``."""
    folder = tmp_path / "sources"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    """An environment for processes, with a home folder of its own."""
    return {
        **clean_environ(),
        **UNASKED,
        "HOME": str(tmp_path),
        "TRUNKLINE_HOME": str(home),
        "TRUNKLINE_GATEWAY__PORT": "0",
        "TRUNKLINE_MONITOR__ENGINE_PORT": "0",
        "COLUMNS": "200",
    }


@pytest.fixture
def up(environ: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Starts ``trunkline up``; what still runs at the end is killed."""
    running: list[Up] = []

    def start(*arguments: str, **variables: str) -> Up:
        running.append(Up({**environ, **variables}, tmp_path, arguments))
        return running[-1]

    yield start
    for one in running:
        one.kill()
