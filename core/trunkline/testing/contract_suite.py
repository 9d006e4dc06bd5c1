"""The base class of the contract suites."""

import pytest


class ContractSuite:
    """A contract as tests: whoever inherits a suite gives what is to be tested, and pytest runs the rest."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Everything of Trunkline runs on asyncio, the only loop that NATS's client knows."""
        return "asyncio"
