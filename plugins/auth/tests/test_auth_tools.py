"""The tools about who may enter: what they answer, whom they refuse, and that the owner approves every change."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.memory.files import DeleteMemory, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import call_tool
from trunkline_bus import new_id

pytestmark = pytest.mark.anyio

CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("auth_create_identity", {"id": "mallory"}),
    ("auth_grant", {"subject": "anna", "action": "chat", "resource": "block:main"}),
    ("auth_revoke", {"policy_id": "any"}),
)


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    async with platform(workers=("gateway", "memory", "tools")) as found:
        await AuthClient(found.bus).create_identity("anna", display_name="Anna")
        yield found


async def answer(running: Platform, tool: str, **arguments: Any) -> Any:
    """The result of a call in a turn of the owner."""
    outcome = await call_tool(running.bus, tool, arguments)
    assert outcome.status == "ok", outcome.output
    return _decoded(outcome)


async def approved(running: Platform, tool: str, **arguments: Any) -> str:
    """The result of a call that the owner approves."""
    call = new_id("call")
    asked = await call_tool(running.bus, tool, arguments, call=call)
    assert asked.status == "approval"
    return (await call_tool(running.bus, tool, arguments, call=call, approved=asked.call_hash)).output


def _decoded(outcome: ToolOutcome) -> Any:
    try:
        return json.loads(outcome.output)
    except ValueError:
        return outcome.output


async def test_ARCH_8_the_three_tools_answer_correctly(running: Platform) -> None:
    """PA-F19, PA-T17: whoami names the caller, check says what holds, and export has no credential."""
    me = await answer(running, "auth_whoami")
    assert (me["identity"], me["is_owner"], me["agent_of_block"]) == ("owner", True, "main")
    assert (await answer(running, "auth_check", resource="tool:read_file", action="read"))["allowed"] is True
    issued = await AuthClient(running.bus).issue_token("owner", TokenScope.CHAT, label="laptop")
    exported = json.dumps(await answer(running, "auth_export"))
    assert "anna" in exported and issued.token.id in exported
    secrets = (issued.text, running.token, running.home.token_key.read_text().strip(), '"mac"')
    assert [secret for secret in secrets if secret in exported] == []


async def test_PA_T17_a_denial_wins_and_the_unknown_is_refused(running: Platform) -> None:
    """A denial wins over any permission; what nothing permits, and whom nobody knows, is refused with the reason."""
    auth = AuthClient(running.bus)
    unknown = await answer(running, "auth_check", identity="anna", resource="block:main", action="chat")
    assert unknown["allowed"] is False
    allowed = await auth.grant(Policy(subject="anna", resource="block:main", action="chat", effect="allow"))
    shared = await answer(running, "auth_check", identity="anna", resource="block:main", action="read")
    assert shared["allowed"] is True
    denied = await auth.grant(Policy(subject="anna", resource="block:*", action="chat", effect="deny"))
    both = await answer(running, "auth_check", identity="anna", resource="block:main", action="chat")
    assert both["allowed"] is False
    stranger = await answer(running, "auth_check", identity="zoe", resource="block:main", action="read")
    assert "no identity" in stranger["why"]
    for policy in (allowed, denied):
        await auth.revoke(policy.policy.id)


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_every_change_needs_the_owner(running: Platform, tool: str, arguments: dict[str, Any]) -> None:
    """In a block that asks about nothing, each change asks, for the owner alone, and nothing covers a second call."""
    before = sorted((running.home.memory).rglob("*.json"))
    asked = await call_tool(running.bus, tool, arguments)
    assert asked.status == "approval"
    assert isinstance(asked.detail, ApprovalDetail)
    assert asked.detail.owner_only and not asked.detail.shape
    forged = await call_tool(running.bus, tool, arguments, approved="a-hash-of-another-call")
    assert forged.status == "error"
    assert sorted((running.home.memory).rglob("*.json")) == before


@pytest.mark.parametrize(("tool", "arguments"), [*CHANGES, ("auth_export", {}), ("auth_audit", {}),
                                                 ("auth_list_identities", {})])  # fmt: skip
async def test_turns_of_others_see_and_change_nothing(
    running: Platform, tool: str, arguments: dict[str, Any]
) -> None:
    """A collaborator's turn is refused, also with an approval of the call."""
    call = {"call": f"call-anna-{tool}", "actor": "anna"}
    outcome = await call_tool(running.bus, tool, arguments, **call)
    if outcome.status == "approval":
        outcome = await call_tool(running.bus, tool, arguments, approved=outcome.call_hash, **call)
    assert outcome.status == "error"
    assert "owner" in outcome.output.lower()
    assert "mallory" not in {one.id for one in await AuthClient(running.bus).identities()}


async def test_a_collaborator_may_ask_about_itself(running: Platform) -> None:
    """Whoami and check answer about the caller; about others they do not."""
    me = await call_tool(running.bus, "auth_whoami", {}, actor="anna")
    assert (json.loads(me.output)["identity"], json.loads(me.output)["is_owner"]) == ("anna", False)
    own = await call_tool(
        running.bus, "auth_check", {"resource": "tool:read_file", "action": "read"}, actor="anna"
    )
    assert own.status == "ok"
    other = {"identity": "owner", "resource": "block:main", "action": "chat"}
    assert (await call_tool(running.bus, "auth_check", other, actor="anna")).status == "error"


async def test_a_shared_block_is_reported_as_the_gateway_decides(running: Platform) -> None:
    """Whoever may chat may read; a rule for tools shares no block, and a denial of reading denies chatting."""

    async def may(action: str, **of: str) -> bool:
        arguments = {"resource": "block:main", "action": action, **of}
        actor = {} if of else {"actor": "greta"}
        return bool(_decoded(await call_tool(running.bus, "auth_check", arguments, **actor))["allowed"])

    async def all_of(*actions: str) -> list[bool]:
        own, asked = [[await may(one, **of) for one in actions] for of in ({}, {"identity": "greta"})]
        assert own == asked
        return own

    auth = AuthClient(running.bus)
    await auth.create_identity("greta")
    everything = await auth.grant(Policy(subject="greta", resource="*", action="*", effect="allow"))
    assert await all_of("read", "chat") == [False, False]
    shared = await auth.grant(Policy(subject="greta", resource="block:main", action="chat", effect="allow"))
    assert await all_of("read", "chat", "approve", "operate") == [True, True, False, False]
    denied = await auth.grant(Policy(subject="greta", resource="block:main", action="read", effect="deny"))
    assert await all_of("read", "chat") == [False, False]
    for policy in (everything, shared, denied):
        await auth.revoke(policy.policy.id)
    owner = await answer(running, "auth_check", resource="block:main", action="operate")
    assert owner["allowed"] is True


async def test_an_identity_is_made_granted_and_revoked_in_a_conversation(running: Platform) -> None:
    """What the owner approves is done, is in memory with its history, and in the audit log."""
    assert "cora" in await approved(running, "auth_create_identity", id="cora", display_name="Cora")
    listed = await answer(running, "auth_list_identities")
    assert {one["id"] for one in listed} >= {"owner", "cora"}
    granted = await approved(running, "auth_grant", subject="cora", action="chat", resource="block:main")
    id = granted.partition(":")[0]
    check = {"identity": "cora", "resource": "block:main", "action": "chat"}
    assert (await answer(running, "auth_check", **check))["allowed"] is True
    assert "Removed" in await approved(running, "auth_revoke", policy_id=id)
    assert (await answer(running, "auth_check", **check))["allowed"] is False
    assert "no identity" in await approved(
        running, "auth_grant", subject="nemo", action="chat", resource="block:main"
    )
    events = ("access_granted", "access_revoked", "identity_created")
    shown = ""
    with anyio.fail_after(20):
        while [event for event in events if event not in shown]:
            shown = str(await answer(running, "auth_audit"))


@pytest.mark.parametrize("path", ["/identities/anna.json", "/Identities/eve.json", "/identities/./eve.json"])
async def test_no_tool_writes_the_file_of_an_identity(running: Platform, path: str) -> None:
    """An agent can neither add an identity nor change one, by any tool that writes into memory."""
    file = running.home.memory / "identities" / "anna.json"
    before = file.read_bytes()
    record = {
        "id": "eve",
        "type": "owner",
        "display_name": "E",
        "status": "active",
        "created": "2026-01-01T00:00:00Z",
    }
    attempts = (
        ("memory_write", {"path": path, "content": json.dumps(record)}),
        ("memory_edit", {"path": path, "old_text": "collaborator", "new_text": "service"}),
        ("memory_delete", {"path": path}),
    )
    for tool, arguments in attempts:
        outcome = await call_tool(running.bus, tool, arguments)
        assert outcome.status == "error", (tool, outcome.output)
    assert file.read_bytes() == before
    assert not [one for one in running.home.memory.rglob("*") if one.name == "eve.json"]


async def test_a_broken_policy_permits_nothing(running: Platform) -> None:
    """While a policy cannot be read, a check says no and names the file."""
    request = WriteManyMemory(files={"policies/broken.json": "{"}, actor="owner")
    await running.bus.call(MEMORY_WRITE_MANY, request, timeout=10)
    try:
        found = await AuthClient(running.bus).check("anna", "block:main", "read")
        assert not found.allowed and "broken.json" in found.why
    finally:
        await running.bus.call(
            MEMORY_DELETE, DeleteMemory(path="policies/broken.json", actor="owner"), timeout=10
        )
