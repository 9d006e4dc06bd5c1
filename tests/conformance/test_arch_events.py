"""ARCH-4: every event of every kind of turn is one that the published contract has, with no field too many.

The events of real runs are held against ``/openapi.json`` as it is served, and, by the client, against the contract
that is written down apart from the code.
"""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import httpx
import pytest
from jsonschema import Draft202012Validator

import trunkline
from tests.support.processes import process_platform
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.testing.scripted_provider import ScriptedProvider

from . import contract
from .conftest import ConformancePlatform, OpenPlatform, client_of, talks_to

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"


class Busy:
    """A plugin that shows how the agent stands, and tools that say much, fail and ask."""

    name = "busy"

    @trunkline.hookimpl
    def trunkline_context_sources(self) -> list[Any]:
        return [self]

    async def __call__(self, turn: object) -> Sequence[StatusShown]:
        return [StatusShown(name="hud", data={"mood": "calm"}, text="calm")]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def much() -> str:
            """Say much."""
            return "much and more\n" * 50_000

        @trunkline.tool(effect="read")
        def fails() -> str:
            """Fail."""
            raise trunkline.ToolError("It does not work.")

        return [much, fails]


class Published:
    """The contract as it is served."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._components = document["components"]
        self._events = document["x-events"]
        self.extensions = document["x-event-extensions"]
        self.seen: dict[str, int] = {}

    def check(self, stream: bytes) -> list[contract.Event]:
        events = list(contract.events_in(stream, contract.GATEWAY_EVENTS))
        for block in stream.split(b"\n\n")[:-1]:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
            if fields:
                self._check(fields[b"event"].decode(), fields[b"data"])
        ids = [event.id for event in events if event.id]
        assert len(set(ids)) == len(ids), ids
        assert all(event.id or event.data.name == "waiting" for event in events)
        return events

    def _check(self, name: str, data: bytes) -> None:
        shapes = {"anyOf": self._events[name], "components": self._components}
        Draft202012Validator(shapes).validate(json.loads(data))
        self.seen[name] = self.seen.get(name, 0) + 1


async def published(http: httpx.AsyncClient) -> Published:
    return Published((await http.get("/openapi.json")).json())


async def said(http: httpx.AsyncClient, content: str, path: str = NEW) -> httpx.Response:
    return await http.post(path, json={"content": content})


async def decided(open_platform: ConformancePlatform, allow: bool) -> None:
    """Decide about every pending approval, once there is one."""
    with anyio.fail_after(60):
        while True:
            for one in (await open_platform.client.http.get("/api/approvals")).json()["approvals"]:
                path = f"/api/turns/{one['turn']}/calls/{one['call']}/decision"
                body = {"hash": one["hash"], "allow": allow}
                assert (await open_platform.client.http.post(path, json=body)).status_code == 202
                return
            await anyio.sleep(0.05)


async def test_ARCH_4_every_event_is_published(open_platform: OpenPlatform) -> None:
    """Text, tools, long results, failures, approvals both ways, a status, a cancelled and a failed turn."""
    config = {"permissions.approvals": "some"}
    async with open_platform(config, plugins=[Busy()]) as running:
        http = running.client.http
        rules = await published(http)
        write = 'call:write_file {"path": "a.md", "content": "x"} ;; say:so it is'
        for program in (
            "say:hi",
            "call:much {} ;; say:much",
            "call:fails {} ;; say:no",
            "status:500",
            "cut:3",
        ):
            rules.check((await said(http, program)).content)
        for allow in (True, False):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(decided, running, allow)
                rules.check((await said(http, write)).content)
        async with http.stream("POST", NEW, json={"content": "hang"}) as response:
            turn = response.headers["x-turn-id"]
            await http.post(f"/api/turns/{turn}/cancel")
            rules.check(await response.aread())
        unseen = {
            "text-reset",
            "tool-progress",
        }  # the first takes a kill, the second a program that writes for long
        assert set(rules.seen) == set(contract.GATEWAY_EVENTS) - unseen
        assert set(rules.extensions) == set(contract.EXTENSIONS)


async def test_ARCH_4_no_two_events_have_the_same_id() -> None:
    """The monitor is killed while it streams: after the reset too each id is new, and from each the rest comes."""
    with ScriptedProvider() as provider:
        async with (
            process_platform(config=talks_to(provider)) as running,
            client_of(running.url, running.token) as client,
        ):
            rules, received = await published(client.http), b""
            async with client.http.stream("POST", NEW, json={"content": "slow:60:50"}) as response:
                turn, killed = response.headers["x-turn-id"], False
                async for chunk in response.aiter_bytes():
                    received += chunk
                    if received.count(b"text-delta") > 5 and not killed:
                        killed = True
                        running.kill("monitor")
                        await running.restart("monitor")
            events = rules.check(received)
            assert killed and rules.seen["text-reset"] >= 1
            whole = text_of(events)
            assert whole.split() == [f"word-{number}" for number in range(1, 61)]
            for at in range(0, len(events) - 1, max(1, len(events) // 8)):
                path, headers = f"/api/turns/{turn}/events", {"last-event-id": events[at].id}
                rest = rules.check((await client.http.get(path, headers=headers)).content)
                assert text_of([*events[: at + 1], *rest]) == whole


def text_of(events: Sequence[contract.Event]) -> str:
    """The text that a client has at the end."""
    text = ""
    for event in events:
        if event.name == "text-delta":
            text += event.data.content
        elif event.name == "text-reset":
            text = event.data.content
    return text
