"""The base class of the contract suites."""

import pytest


class ContractSuite:
    """A contract as tests. A subclass provides the object to test, and pytest runs the tests."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run on asyncio, because NATS's client supports no other event loop."""
        return "asyncio"
