"""What all tests share, of the core and of plugins: asynchronous ones run on asyncio, the only loop that NATS's client
knows; none is timed."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # a busy machine is no failure; speed is measured in benchmarks/


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
