"""``trunkline results`` and its announcement in ``say``: a person reads a result that was too long for a
conversation."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio.to_thread
import pytest

import trunkline as face
from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio

LONG = "".join(map(chr, range(1, 256))) + "äöü\x1b[2J\r\n\U0001f600 " * 20_000


class Talkative:
    """A tool that says much."""

    @face.hookimpl
    def trunkline_tools(self) -> list[face.Tool]:
        @face.tool(effect="read")
        def much() -> str:
            """Say much."""
            return LONG

        return [much]


async def test_a_long_result_is_announced_and_can_be_read_completely(
    home: Path, trunkline: Callable[..., "CompletedProcess[str]"], environ: dict[str, str], tmp_path: Path
) -> None:
    """``say`` prints the command, or the id in its JSON; ``show`` prints every byte, by an id prefix; ``--save``
    writes a new file and replaces none; ``list`` shows the block; for a missing result the error says where to look."""

    async def run(*words: object) -> Any:
        return await anyio.to_thread.run_sync(partial(trunkline, *map(str, words)))

    async with platform(home, plugins=[Talkative()]):
        assert "There are no stored tool results." in (await run("results", "list")).stdout
        said = await run("say", "/tool much")
        (reported,) = [line for line in said.stderr.splitlines() if "trunkline results show" in line]
        assert f"its {len(LONG)} characters" in reported
        id = reported.split()[-1]
        (kept,) = json.loads((await run("results", "list", "--json")).stdout)["results"]
        assert (kept["id"], kept["block"], kept["tool"], kept["characters"]) == (
            id,
            "main",
            "much",
            len(LONG),
        )
        assert kept["conversation"] in said.stderr
        (call,) = json.loads((await run("say", "--json", "/tool much")).stdout)["tools"]
        assert call["stored"]["characters"] == len(LONG) and call["stored"]["id"] != id
        assert (await run("results", "list", "--block", "other")).returncode == 1
        await run("blocks", "create", "other")
        none = await run("results", "list", "--block", "other")
        assert "Block other has no stored tool results." in none.stdout
        file = tmp_path / "saved.txt"
        assert str(len(LONG)) in (await run("results", "show", id[:6], "--save", file)).stdout
        assert file.read_bytes() == LONG.encode()
        file.write_text("mine")
        again = await run("results", "show", id, "--save", file)
        assert (again.returncode, file.read_text()) == (1, "mine") and "exists already" in again.stderr
        nowhere = await run("results", "show", id, "--save", tmp_path / "no" / "file")
        assert nowhere.returncode == 1 and "cannot be written" in nowhere.stderr
        command = [sys.executable, "-m", "trunkline.cli.main", "results", "show", id]
        shown = await anyio.run_process(command, env=environ)
        assert shown.stdout == LONG.encode()
        for wrong in ("nothing", "", "../x", "*"):
            missing = await run("results", "show", wrong)
            assert missing.returncode == 1 and "trunkline results list" in missing.stderr
