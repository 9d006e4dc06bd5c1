"""The request of "hello" in a fresh home, as a vendor's endpoint receives it: few tools, few tokens (MB-F9, PA-F43)."""

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunkline.cli.checks.runner import run_checks
from trunkline.config import load_config
from trunkline.config.settings import MonitorSettings
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.memory.initial_files import AGENT
from trunkline.contracts.tools.messages import ListTools
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.testing.platform import Platform, clean_environ, platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

MOST_TOOLS, MOST_TOKENS = 12, 2_500
AS_SHIPPED = {"monitor.discovery_threshold": MonitorSettings().discovery_threshold}
"""Platforms of tests show models all tools otherwise."""


@asynccontextmanager
async def home() -> AsyncIterator[tuple[Platform, ScriptedProvider]]:
    with ScriptedProvider() as provider:
        config = {**provider.settings, **AS_SHIPPED}
        async with platform(config=config) as running:
            yield running, provider


async def sent(running: Platform, provider: ScriptedProvider, text: str = "hello", **given: Any) -> Any:
    await running.say(text, **given)
    return provider.answer_requests[-1].body


async def programs(running: Platform) -> set[str]:
    """The tools that run programs, which a fresh home does not permit."""
    found = await running.bus.call(LIST_TOOLS, ListTools(block="main"))
    return {spec.name for spec in found.tools or () if spec.effect == "exec"}


def tools_of(body: Any) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


async def test_a_greetings_request_is_small() -> None:
    """At most twelve tools and 2 500 tokens at four bytes each; no tool that runs programs. The initial instructions
    of memory are in it, as the owner's words, and so are the questions of the first conversation."""
    async with home() as (running, provider):
        body = await sent(running, provider)
        names = tools_of(body)
        assert len(await programs(running)) > 3
        assert {"discover_tools", "load_tools", "read_file", "memory_search"} <= set(names)
        assert len(names) <= MOST_TOOLS and not await programs(running) & set(names)
        assert len(json.dumps(body, ensure_ascii=False).encode()) / 4 <= MOST_TOKENS
        system = body["messages"][0]["content"]
        assert AGENT.strip() in system and "This is your first conversation here" in system
        assert "owner's own words" in system.split('<context source="/AGENT.md"')[1].partition("\n")[0]
        named = set(re.findall(r"`([a-z]+_[a-z_]+)`", system))
        known = (await running.bus.call(LIST_TOOLS, ListTools(block="main"))).tools or ()
        assert named <= {spec.name for spec in known} | {"discover_tools", "load_tools"}, (
            "no tool is invented"
        )


async def test_agent_md_is_read_by_the_requested_name() -> None:
    """A model that does as the first line says finds the file."""
    async with home() as (running, provider):
        body = await sent(running, provider, 'call:memory_read {"path": "AGENT.md"} ;; say:ok')
        reported = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "tool")
        assert "no file" not in reported and "You are the agent of this place." in reported


async def test_all_that_may_be_used_are_sent_without_discovery() -> None:
    """``discovery = "off"`` sends every tool but those forbidden to the block; discovery lists these with the way to
    grant them, and they are sent once granted."""
    async with home() as (running, provider):
        (running.home.memory / "preferences.toml").write_text('discovery = "off"\n')
        names = tools_of(await sent(running, provider))
        while len(names) <= MOST_TOOLS:  # until the hand edit counts
            names = tools_of(await sent(running, provider))
        assert len(names) > 30 and not await programs(running) & set(names) and "discover_tools" in names
        body = await sent(running, provider, 'call:discover_tools {"query": "run a command"} ;; say:ok')
        reported = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "tool")
        assert "Restricted: " in reported and "--allow-shell" in reported


async def test_pa_f43_unknown_tool_names_in_settings_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """PA-F43: a name in ``always_send`` of no tool is in the log once, and in doctor's findings; the others are
    sent."""
    async with home() as (running, provider):
        text = 'always_send = ["read_file", "raed_file", "mcp:gone:*"]\n'
        (running.home.memory / "preferences.toml").write_text(text)
        with caplog.at_level(logging.WARNING):
            names = tools_of(await sent(running, provider))
            while names != ["read_file", "discover_tools", "load_tools"]:
                names = tools_of(await sent(running, provider))
            await sent(running, provider)
        reported = [line for line in caplog.messages if "always_send" in line]
        assert len(reported) == 1 and "raed_file, mcp:gone:*" in reported[0]
        found = await run_checks(read=lambda: load_config(running.home.path, environ=clean_environ()))
        [one] = [finding for finding in found if finding.id == "tools.always_send"]
        assert (
            one.status == "warning" and "raed_file" in one.summary and "read_file" not in one.summary.split()
        )


async def test_a_block_s_description_and_goals_reach_its_model() -> None:
    """The values stored by ``trunkline blocks create --description --goal`` are in the block's requests, as a marked
    part."""
    async with home() as (running, provider):
        config = BlockConfig(description="Runs the tea shop.", goals=("Sell tea.", "Answer letters."))
        await running.gateway.create_block("shop", config)
        system = (await sent(running, provider, block="shop"))["messages"][0]["content"]
        assert system.startswith("Read AGENT.md for your instructions.")
        assert (
            '<context source="block.toml"' in system
            and "What this block is for: Runs the tea shop." in system
        )
        assert "The goals of this block:\n- Sell tea.\n- Answer letters.\n" in system
        assert "tea shop" not in json.dumps(await sent(running, provider))


async def test_the_tool_command_runs_hidden_tools_without_a_model() -> None:
    """``/tool`` loads a tool that is not among those for every day, and runs it with its own types."""
    async with platform(config=AS_SHIPPED) as running:
        answer = await running.say("/tool memory_write path=tea.md content=green")
        assert (running.home.memory / "blocks/main/tea.md").read_text() == "green", answer.text
        assert "nosuch" in (await running.say("/tool nosuch a=1")).text
