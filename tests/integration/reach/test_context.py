"""The services that an isolated or remote tool can request from the platform: each works, or gives a clear error."""

import anyio
import pytest

from trunkline.cli._support.permissions import change_permissions
from trunkline.contracts.tools.messages import ToolOutcome

from .tool_platform import Reached

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

SAID = {
    "ask": "No person can be asked here. Put the question into your answer.",
    "tell": "No message can be sent to a person from here. Put it into your answer.",
    "plan": "Planning cannot be begun from here.",
    "plans": "Whether the agent only plans cannot be known from here.",
    "read": "Documents cannot be reached from here.",
    "search": "Documents cannot be reached from here.",
}
"""What there is in the tools worker alone, and what is said elsewhere."""

DISTANT = {
    "apart_": SAID,
    "laptop__": {
        **SAID,
        "memory": "Memory cannot be reached from here.",
        "model": "No model can be asked from here.",
    },
}
"""A plugin in a process of its own has memory and models by the tools worker; another host has not."""


async def test_services_unavailable_to_a_remote_tool_are_tool_errors(reached: Reached) -> None:
    """A person, planning, documents, another host's memory and models: each is refused at once, to the tool itself,
    in words that the model can act on. The tool has started once, no person was asked, nothing is planned, and the
    audit log has the outcome."""
    await change_permissions(reached.running.bus, "main", {"approvals": "none"})
    before = len(reached.marks())
    outcomes: dict[str, ToolOutcome] = {}

    async def want(prefix: str, what: str) -> None:
        key = f"call_{prefix}{what}"
        outcomes[key] = await reached.call(f"{prefix}want", "main", {"what": what}, key)

    async with anyio.create_task_group() as tasks:
        for prefix, wants in DISTANT.items():
            for what in wants:
                tasks.start_soon(want, prefix, what)
    reported = {key: (one.status, one.output) for key, one in outcomes.items()}
    assert reported == {
        f"call_{prefix}{what}": ("error", said)
        for prefix, wants in DISTANT.items()
        for what, said in wants.items()
    }
    assert sorted(reached.marks()[before:]) == sorted(
        [
            *(f"apart_want {what}" for what in DISTANT["apart_"]),
            *(f"want {what}" for what in DISTANT["laptop__"]),
        ]
    )
    noted = await reached.audited(set(reported), 2 * len(reported))
    assert {one.call: one.status for one in noted if one.event == "call"} == dict.fromkeys(reported, "error")
    assert await reached.running.gateway.waiting() == ()
    assert (await reached.call("touch", "main", {"mark": "not planning"})).status == "ok"


@pytest.mark.parametrize("prefix", ["near_", *DISTANT])
async def test_a_remote_tool_can_load_other_tools(reached: Reached, prefix: str) -> None:
    """The model receives the named tools, by their names here."""
    await change_permissions(reached.running.bus, "main", {"approvals": "none"})
    outcome = await reached.call(f"{prefix}want", "main", {"what": "load"})
    assert (outcome.status, outcome.loads) == ("ok", (f"{prefix}look",))
