"""The schedules over HTTP: read by whoever may read the block, changed by the owner alone."""

from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest

from tests.block_client import BlockClient, client_of_new_block
from tests.other_users import HEADER, Visitors, share
from trunkline.api.memory import utc_now
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import Platform

from .pulse_platform import ended_run, pulse_platform, state_when, until, write_schedule_file

pytestmark = pytest.mark.anyio

GUEST = Identity(id="guest", scope=TokenScope.OPERATE)
READER = Identity(id="reader", type="owner", scope=TokenScope.READ)

LATER = f'instruction = "say:hello"\nat = {utc_now() + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}\n'


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    async with pulse_platform(plugins=(Visitors(GUEST, READER),)) as running:
        yield running


@pytest.fixture
async def client(shared: Platform) -> BlockClient:
    return await client_of_new_block(shared)


def http_client(shared: Platform, **headers: str) -> httpx.AsyncClient:
    own = headers or {"authorization": f"Bearer {shared.token}"}
    return httpx.AsyncClient(base_url=f"{shared.url}/x/trunkline-pulse", headers=own, timeout=60)


async def test_the_owner_reads_runs_pauses_and_removes_schedules(
    shared: Platform, client: BlockClient
) -> None:
    """The list shows times in the schedule's own zone, the next due times, the runs and what must be corrected."""
    block = client.block
    await write_schedule_file(client.bus, block, "later", f'time_zone = "Europe/Lisbon"\n{LATER}')
    await write_schedule_file(client.bus, block, "wrong", 'instruction = "x"\ncron = "99 * * * *"\n')
    await state_when(client, "later", lambda state: state.next_due is not None)
    place = f"/blocks/{block}/schedules"
    async with http_client(shared) as http:
        later, wrong = (await http.get(place)).json()["schedules"]
        assert (later["name"], later["time_zone"], len(later["next"])) == ("later", "Europe/Lisbon", 1)
        assert later["schedule"]["instruction"] == "say:hello" and later["runs"] == []
        assert "99 * * * *" in wrong["problem"] and wrong["schedule"] is None
        found = (await http.get("/schedules")).json()["schedules"]
        assert [one["name"] for one in found if one["block"] == block] == ["later", "wrong"]
        assert (await http.post(f"{place}/later/run")).status_code == 200
        run = await ended_run(client, "later")
        (shown,) = (await http.get(place)).json()["schedules"][0]["runs"]
        assert (shown["outcome"], shown["turn"]) == ("finished", run.turn)
        assert (await http.post(f"{place}/later/pause")).status_code == 200
        (paused, _) = (await http.get(place)).json()["schedules"]
        assert paused["schedule"]["enabled"] is False and paused["next"] == []
        assert (await http.post(f"{place}/later/resume")).status_code == 200
        assert len((await http.get(place)).json()["schedules"][0]["next"]) == 1
        refused = await http.post(f"{place}/wrong/run")
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert "99 * * * *" in refused.json()["metadata"]["reason"]
        for name in ("later", "wrong"):
            assert (await http.post(f"{place}/{name}/remove")).status_code == 200
        assert (await http.get(place)).json() == {"schedules": []}
        for name in ("later", "No%20Name"):
            assert (await http.post(f"{place}/{name}/run")).status_code == 404


async def test_only_the_owner_changes_a_schedule(shared: Platform, client: BlockClient) -> None:
    """Who may read a block sees its schedules, also by a token of the owner that may only read. A block that is not
    shared does not exist, and the list of all blocks is the owner's."""
    block = client.block
    await write_schedule_file(client.bus, block, "later", LATER)
    place = f"/blocks/{block}/schedules"
    async with http_client(shared, **{HEADER: "guest"}) as http:
        assert (await http.get(place)).status_code == 404
        await share(shared.bus, "operate", block=block)

        async def is_seen() -> bool:
            return (await http.get(place)).status_code == 200

        await until(is_seen)
        assert [one["name"] for one in (await http.get(place)).json()["schedules"]] == ["later"]
    for who in ("guest", "reader"):
        async with http_client(shared, **{HEADER: who}) as http:
            assert (await http.get(place)).status_code == 200
            for verb in ("run", "pause", "resume", "remove"):
                assert (await http.post(f"{place}/later/{verb}")).status_code == 403
            assert (await http.get("/schedules")).status_code == 403
