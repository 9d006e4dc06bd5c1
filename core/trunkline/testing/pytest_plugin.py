"""Fixtures for pytest, there wherever ``trunkline`` is installed: ``platform`` and ``nats_server``.

Nothing is imported until a test asks for one.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trunkline.testing.platform import Platform
    from trunkline_bus import EmbeddedServer

pytest.register_assert_rewrite(
    *(f"trunkline.testing.{kind}_suite" for kind in ("adapter", "channel", "sandbox", "store", "tool")),
    "trunkline.testing.sandbox_fixture",
    "trunkline.testing.sandbox_isolation_suite",
)  # whoever inherits a contract suite sees what its assertions compared


@pytest.fixture
async def nats_server(tmp_path_factory: pytest.TempPathFactory) -> "AsyncIterator[EmbeddedServer]":
    """A real nats-server, empty, for the length of a test."""
    from trunkline_bus import EmbeddedServer, ServerSettings

    async with EmbeddedServer(ServerSettings(store_dir=tmp_path_factory.mktemp("nats"))) as server:
        yield server


@pytest.fixture
async def platform(tmp_path_factory: pytest.TempPathFactory) -> "AsyncIterator[Platform]":
    """All five workers with the installed plugins, in this process. For options, use the function of that name."""
    from trunkline.testing.platform import platform as running

    async with running(tmp_path_factory.mktemp("home")) as found:
        yield found
