"""What all tests share: asynchronous tests run on asyncio, the only loop that NATS's client knows."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
