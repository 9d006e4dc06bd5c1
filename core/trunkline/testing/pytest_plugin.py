"""Fixtures for pytest, available wherever ``trunkline`` is installed: ``platform`` and ``nats_server``.

A fixture's imports are executed when a test first requests it.
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
)  # pytest then shows the compared values of failed assertions in contract suites


@pytest.fixture
async def nats_server(tmp_path_factory: pytest.TempPathFactory) -> "AsyncIterator[EmbeddedServer]":
    """Yield a real, empty nats-server for the duration of a test."""
    from trunkline_bus import EmbeddedServer, ServerSettings

    async with EmbeddedServer(ServerSettings(store_dir=tmp_path_factory.mktemp("nats"))) as server:
        yield server


@pytest.fixture
async def platform(tmp_path_factory: pytest.TempPathFactory) -> "AsyncIterator[Platform]":
    """Yield a platform in this process, with all five workers and the installed plugins. For options, use the
    function ``platform``.
    """
    from trunkline.testing.platform import platform as running

    async with running(tmp_path_factory.mktemp("home")) as found:
        yield found
