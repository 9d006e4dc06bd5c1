"""Asynchronous tests run on asyncio, the only loop that NATS's client knows."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
