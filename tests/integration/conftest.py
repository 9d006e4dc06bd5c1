"""A model provider in a process of its own, so that no kill of a worker touches it."""

from collections.abc import Iterator

import pytest

from trunkline.testing.scripted_provider import provider_process


@pytest.fixture(scope="session")
def provider() -> Iterator[str]:
    """The base URL of a scripted provider."""
    with provider_process() as url:
        yield url
