"""Messages through a program's pipes, cut anywhere, and the modules loaded before any use."""

import subprocess
import sys

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline_mcp.stdio_transport import LineTooLongError, read_lines


class Chunks:
    """A stream of given chunks."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = iter(chunks)

    def __aiter__(self) -> "Chunks":
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


def read(chunks: list[bytes], longest: int = 1000, *, cut: bool = False) -> list[bytes]:
    async def main() -> list[bytes]:
        return [line async for line in read_lines(Chunks(chunks), longest, cut=cut)]

    return anyio.run(main)


@examples(60, deadline=None)
@given(st.lists(st.binary(max_size=40)))
def test_cc_t14_messages_survive_any_chunking(chunks):
    """The lines are those of the whole, and the last one counts without its end too."""
    whole = b"".join(chunks).split(b"\n")
    assert read(chunks) == (whole[:-1] if whole[-1] == b"" else whole)


@examples(60, deadline=None)
@given(st.lists(st.binary(max_size=40)))
def test_a_line_that_is_too_long_is_refused_or_cut(chunks):
    """One line cannot fill our memory."""
    whole = b"".join(chunks).split(b"\n")
    if max(map(len, whole)) > 16:
        with pytest.raises(LineTooLongError):
            read(chunks, 16)
    cut = read(chunks, 16, cut=True)
    assert cut == [line[:16] for line in (whole[:-1] if whole[-1] == b"" else whole)]


def test_the_sdk_is_not_loaded_before_a_server_is_used(tmp_path):
    """A platform without servers pays nothing for it."""
    script = f"""
import anyio, pathlib, sys
from trunkline.api.tool import SourceContext
from trunkline.contracts.sandbox.sandbox import NoSandbox
from trunkline_mcp import plugin, health
from trunkline_mcp.host import McpHost
home = pathlib.Path({str(tmp_path)!r})

async def main():
    with anyio.move_on_after(0.2):
        await McpHost(home, home).run(SourceContext(publish=lambda tools: None, sandbox=NoSandbox()))

anyio.run(main)
assert not {{"mcp", "mcp_types", "pydantic", "httpx2"}} & set(sys.modules), "loaded"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
