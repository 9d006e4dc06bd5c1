"""What the adapters' tests share: asynchronous tests run on asyncio, as the platform does."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
