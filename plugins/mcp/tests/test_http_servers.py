"""Servers over HTTP: they may disconnect and reconnect, and a person signs in to them once."""

import json
import socket
import stat

import anyio
import pytest
from mcp.shared.auth import OAuthToken

from trunkline import ToolError
from trunkline.contracts.sandbox.sandbox import NoSandbox
from trunkline_mcp.connector import Connector
from trunkline_mcp.oauth import OAuthTokenStore
from trunkline_mcp.server_config import parse_server
from trunkline_mcp.server_connection import ServerConnection

from .conformance.block_server_app import at_address
from .conformance.fixture import Fixture
from .mcp_servers import called, ready

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
async def test_a_lost_server_is_reconnected(tmp_path, protocol):
    """A call during the outage fails with a reason; as soon as the server is back, calls work on the same
    connection."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = parse_server("far", {"url": f"http://127.0.0.1:{port}/mcp", "protocol": protocol})
    async with anyio.create_task_group() as tasks:
        line = ServerConnection(server, Connector(tmp_path, tmp_path, NoSandbox()), lambda: None)
        tasks.start_soon(line.run)
        async with at_address(Fixture().server(), port):
            tool = (await ready(line))["test_simple_text"]
            assert "simple text" in await called(tool, tmp_path)
        with pytest.raises(ToolError, match="far"):
            await called(tool, tmp_path)
        assert line.status.state == "failed"
        async with at_address(Fixture().server(), port):
            tool = (await ready(line))["test_simple_text"]
            assert "simple text" in await called(tool, tmp_path)
        tasks.cancel_scope.cancel()


async def test_token_files_are_private_and_broken_ones_are_ignored(tmp_path):
    """The file is readable by its owner only, written completely or not at all, and removed by forget."""
    tokens = OAuthTokenStore(
        tmp_path / "mcp" / "tokens", parse_server("docs", {"url": "https://docs.example/mcp"})
    )
    assert await tokens.get_tokens() is None
    await tokens.set_tokens(OAuthToken(access_token="at-1", refresh_token="rt-1"))
    (file,) = (tmp_path / "mcp" / "tokens").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text())["access_token"] == "at-1"
    assert (await tokens.get_tokens()).refresh_token == "rt-1"
    file.write_text("{")
    assert await tokens.get_tokens() is None
    tokens.forget()
    assert list(file.parent.iterdir()) == []
