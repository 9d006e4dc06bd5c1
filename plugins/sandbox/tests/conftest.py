"""Lets the tests import ``containers``, and makes the image that they run."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """An image with nothing but busybox."""
    from containers import image_name, root
    from docker.errors import DockerException
    from testcontainers.core.docker_client import DockerClient

    try:
        client = DockerClient().client
        client.ping()
    except DockerException as error:
        pytest.skip(f"no Docker engine: {error}")
    image = image_name()
    name, _, tag = image.partition(":")
    client.api.import_image_from_data(root(), repository=name, tag=tag)
    yield image
    client.images.remove(image, force=True)
