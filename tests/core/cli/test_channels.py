"""``trunkline channels``: the owner shows a code, sees whom it has linked, and removes a person."""

import json

import pytest

from trunkline.contracts.gateway.client import GatewayClient
from trunkline.testing.platform import Platform

from .conftest import Cli

pytestmark = pytest.mark.anyio


async def test_a_person_is_linked_and_removed_by_commands(running: Platform, cli: Cli) -> None:
    """The code of the command links its sender; the list names the person, and nobody is left after the removal."""
    assert "Nobody is linked" in await cli("channels", "people", "terminal")
    code = json.loads(await cli("channels", "pair", "terminal", "--json"))["code"]
    assert await GatewayClient(running.bus, "terminal").link_sender(code, "1001", "1001", "Ada \x1b[31m")
    shown = await cli("channels", "people", "terminal")
    assert "1001" in shown and "Ada" in shown and "\x1b" not in shown
    assert code not in await cli("channels", "people", "terminal", "--json")
    assert "no longer serves 1001" in await cli("channels", "unpair", "terminal", "1001")
    assert "No sender 1001" in await cli("channels", "unpair", "terminal", "1001", status=1)
    assert json.loads(await cli("channels", "people", "terminal", "--json")) == {"people": []}


async def test_no_code_is_shown_for_a_channel_that_is_not_enabled(running: Platform, cli: Cli) -> None:
    """Nobody would take it. The error names the channels that are enabled."""
    refused = await cli("channels", "pair", "telegrm", status=1)
    assert "not enabled" in refused and "terminal" in refused
