"""A platform with learning for the tests of a module, and for each test a block of its own and nothing learned."""

from collections.abc import AsyncIterator

import pytest

from tests.shared_model import SharedModel
from trunkline.testing.platform import Platform

from .learning_platform import LearningClient, forget_everything, learning, learning_client


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Platform, SharedModel]]:
    async with learning(tmp_path_factory.mktemp("learning")) as found:
        yield found


@pytest.fixture
def model(shared: tuple[Platform, SharedModel]) -> SharedModel:
    """The model of the shared platform. It has no requests, and its last message is its program."""
    shared[1].begin()
    return shared[1]


@pytest.fixture
async def running(shared: tuple[Platform, SharedModel], model: SharedModel) -> AsyncIterator[LearningClient]:
    """A client of the shared platform, which learns by words."""
    client = await learning_client(shared[0], model)
    yield client
    await forget_everything(client)
