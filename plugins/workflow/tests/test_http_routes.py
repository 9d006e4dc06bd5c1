"""Workflows and runs over HTTP: read by whoever may read the block, begun and installed by the owner alone."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from tests.block_client import BlockClient, stopped_at_the_end
from tests.other_users import HEADER, Visitors, share
from trunkline.api.memory import MEMORY_WRITE_MANY, WriteManyMemory
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_workflow.definition import text_hash
from trunkline_workflow.runs import Runs

from .workflow_tools import DEPLOY_APP, SETTINGS, EffectPlugin, effects

pytestmark = pytest.mark.anyio

GUEST = Identity(id="guest", scope=TokenScope.OPERATE)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    with ScriptedProvider() as provider:
        config = {**provider.settings, **SETTINGS}
        plugins = [EffectPlugin(), Visitors(GUEST)]
        home = tmp_path_factory.mktemp("workflow-routes")
        async with platform(home, config=config, plugins=plugins) as running:
            yield running


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    async with stopped_at_the_end(shared) as client:
        yield client


def http_client(shared: Platform, running: BlockClient, **headers: str) -> httpx.AsyncClient:
    own = headers or {"authorization": f"Bearer {shared.token}"}
    return httpx.AsyncClient(
        base_url=f"{shared.url}/x/trunkline-workflow/blocks/{running.block}", headers=own, timeout=60
    )


async def write(running: BlockClient, path: str, text: str) -> None:
    request = WriteManyMemory(files={f"blocks/{running.block}/{path}": text}, actor="owner")
    await running.bus.call(MEMORY_WRITE_MANY, request, timeout=20.0)


async def run_when(http: httpx.AsyncClient, run: str, status: str) -> dict[str, Any]:
    """Wait until a run has a status, and return it."""
    with anyio.fail_after(60):
        while True:
            found: dict[str, Any] = (await http.get(f"/runs/{run}")).json()
            if found["status"] == status:
                return found
            await anyio.sleep(0.1)


async def test_a_run_is_begun_approved_and_shown(shared: Platform, running: BlockClient) -> None:
    """The owner begins a run; the approval of its step is one like every other; steps and calls show what it did."""
    await write(running, "workflows/deploy-app.yaml", DEPLOY_APP)
    await write(running, "workflows/wrong.yaml", DEPLOY_APP.replace("next: review", "next: revue"))
    async with http_client(shared, running) as http:
        deploy, wrong = (await http.get("/workflows")).json()["workflows"]
        assert deploy["problems"] == [] and deploy["inputs"] == {"version": None}
        assert deploy["steps"][1]["edges"][0] == {"on": "approve", "to": "deploy", "end": ""}
        assert "line 11" in wrong["problems"][0] and wrong["steps"] == []
        assert (await http.post("/workflows/wrong/run")).status_code == 409
        refused = await http.post("/workflows/deploy-app/run", json={"inputs": {}})
        assert refused.status_code == 409 and "version" in refused.json()["metadata"]["reason"]
        assert (await http.post("/workflows/deploy-app/run", json=[])).status_code == 400
        assert (await http.post("/workflows/none/run")).status_code == 404
        begun = await http.post("/workflows/deploy-app/run", json={"inputs": {"version": "1.10"}})
        run = await run_when(http, begun.json()["run"], "waiting_approval")
        assert run["states"] == {"build": "done", "review": "waiting_approval"}
        (asked,) = [one for one in (await running.gateway.waiting()) if one.turn == run["turn"]]
        decided = await http.post(
            f"{shared.url}/api/turns/{asked.turn}/calls/{asked.call}/decision",
            json={"hash": asked.call_hash, "allow": True},
        )
        assert decided.status_code < 300, decided.text
        run = await run_when(http, run["run"], "completed")
        assert [(row["step"], row["outcome"]) for row in run["log"]] == [
            ("build", "ok"),
            ("review", "ok"),
            ("deploy", "ok"),
        ]
        (listed,) = (await http.get("/runs")).json()["runs"]
        assert (listed["run"], listed["status"]) == (run["run"], "completed")
        assert (await http.get("/runs/none")).status_code == 404
    assert effects(running.workspace) == ["build", "deploy"]


async def test_a_proposal_is_installed_as_it_was_shown(shared: Platform, running: BlockClient) -> None:
    """A proposal that changed after the owner read it is not installed."""
    await write(running, "workflow-proposals/deploy-app.yaml", DEPLOY_APP)
    async with http_client(shared, running) as http:
        (proposal,) = (await http.get("/workflows")).json()["proposals"]
        assert (proposal["text"], proposal["sha256"]) == (DEPLOY_APP, text_hash(DEPLOY_APP))
        changed = DEPLOY_APP.replace("Build the app", "Build it")
        await write(running, "workflow-proposals/deploy-app.yaml", changed)
        place = "/proposals/deploy-app/install"
        assert (await http.post(place, json={"sha256": proposal["sha256"]})).status_code == 409
        assert (await http.post(place, json={"sha256": text_hash(changed)})).status_code == 200
        found = (await http.get("/workflows")).json()
        assert [one["text"] for one in found["workflows"]] == [changed] and found["proposals"] == []


async def test_a_wrong_file_hides_nothing_and_takes_no_other_name(
    shared: Platform, running: BlockClient
) -> None:
    """A file that an agent wrote cannot break the list, and a proposal cannot replace a workflow of another name."""
    await write(running, "workflow-proposals/odd.yaml", "name: odd\nsteps: [{id: a, type: []}]\n")
    await write(running, "workflow-proposals/tidy.yaml", DEPLOY_APP)
    async with http_client(shared, running) as http:
        odd, tidy = (await http.get("/workflows")).json()["proposals"]
        assert odd["problems"] and tidy["problems"] == []
        refused = await http.post("/proposals/tidy/install", json={"sha256": tidy["sha256"]})
        assert refused.status_code == 409 and (await http.get("/workflows")).json()["workflows"] == []


async def test_another_channel_does_not_repeat_a_request(shared: Platform, running: BlockClient) -> None:
    """The record is there and the turn is not, as after a kill of the gateway: a command leaves the run to the gateway,
    because its own request would be another turn. A refused run leaves no record."""
    await write(running, "workflows/deploy-app.yaml", DEPLOY_APP)
    commands = Runs(running.bus, running.block)
    async with http_client(shared, running) as http:
        begun = (await http.post("/workflows/deploy-app/run", json={"inputs": {"version": "1"}})).json()
        await run_when(http, begun["run"], "waiting_approval")
        (record,) = await commands.list()
        await commands.files.save(msgspec.structs.replace(record, turn="", conversation=""))
        assert (await commands.find("last")).turn == "" and (await commands.list())[0].turn == ""
        assert (await http.get(f"/runs/{begun['run']}")).json()["turn"] == begun["turn"]
    assert (await commands.list())[0].turn == begun["turn"] and effects(running.workspace) == ["build"]


async def test_only_the_owner_begins_runs(shared: Platform, running: BlockClient) -> None:
    """Who may read a block sees its workflows and runs; a block that is not shared does not exist."""
    await write(running, "workflows/deploy-app.yaml", DEPLOY_APP)
    async with http_client(shared, running, **{HEADER: "guest"}) as http:
        assert (await http.get("/workflows")).status_code == 404
        await share(shared.bus, "operate", block=running.block)
        with anyio.fail_after(60):
            while (await http.get("/workflows")).status_code != 200:  # noqa: ASYNC110  asked over HTTP
                await anyio.sleep(0.1)
        assert (await http.get("/runs")).json() == {"runs": []}
        assert (await http.post("/workflows/deploy-app/run")).status_code == 403
        assert (await http.post("/proposals/deploy-app/install", json={})).status_code == 403
