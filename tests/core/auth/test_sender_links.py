"""Codes for channels: a code links one sender of one channel, once, and never for a guess, an old code or a replay."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import anyio
import msgspec
import pytest

from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.linked_senders import MOST_WRONG_OF_CHANNEL, MOST_WRONG_OF_SENDER, SENDER_BUCKET
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.testing.platform import Platform, platform
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    async with platform(workers=("gateway", "memory")) as started:
        yield started


@pytest.fixture
async def auth(running: Platform) -> AuthClient:
    """The owner, with no code that waits and nobody linked."""
    for channel in ("telegram", "other"):
        await running.bus.kv(SENDER_BUCKET).delete(channel)
    return AuthClient(running.bus)


def channel(running: Platform, name: str = "telegram") -> GatewayClient:
    return GatewayClient(running.bus, name)


async def test_a_code_links_one_sender_once(running: Platform, auth: AuthClient) -> None:
    """The first sender is linked, also if the request is repeated; a second one is not. The owner lists and removes."""
    code = (await auth.start_linking("telegram")).code
    assert await channel(running).link_sender(code.lower().replace("-", " "), "1001", "1001", "Ada")
    assert await channel(running).link_sender(code, "1001", "1001", "Ada")
    assert not await channel(running).link_sender(code, "2002", "2002", "Eve")
    (linked,) = await auth.senders("telegram")
    assert (linked.sender, linked.place, linked.name, linked.by) == ("1001", "1001", "Ada", "owner")
    assert await channel(running).senders() == (linked,)
    await auth.unlink_sender("telegram", "1001")
    assert await channel(running).senders() == ()
    assert not await channel(running).link_sender(code, "1001", "1001", "Ada")
    with pytest.raises(RemoteFault) as refused:
        await auth.unlink_sender("telegram", "1001")
    assert refused.value.code == "not_found"
    assert await auth.senders("no.channel*") == ()


async def test_two_senders_at_once_are_not_both_linked(running: Platform, auth: AuthClient) -> None:
    """Of twenty requests with one code at the same moment, one links its sender."""
    code = (await auth.start_linking("telegram")).code
    linked: list[int] = []

    async def attempt(number: int) -> None:
        if await channel(running).link_sender(code, str(number), str(number), ""):
            linked.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(attempt, number)
    assert len(linked) == 1 == len(await auth.senders("telegram"))


async def test_a_code_of_one_channel_counts_on_no_other(running: Platform, auth: AuthClient) -> None:
    """The code of another channel links nobody, and does not open a session of the web app either."""
    code = (await auth.start_linking("telegram")).code
    assert not await channel(running, "other").link_sender(code, "1001", "1001", "")
    assert await channel(running, "other").senders() == ()
    assert await channel(running).link_sender(code, "1001", "1001", "")


async def test_an_expired_code_links_nobody(running: Platform, auth: AuthClient) -> None:
    """After its ten minutes a code does not count."""
    code = (await auth.start_linking("telegram")).code
    bucket = running.bus.kv(SENDER_BUCKET)
    entry = await bucket.get("telegram")
    assert entry is not None and entry.value is not None
    old = datetime.now(UTC) - timedelta(seconds=1)
    codes = tuple(msgspec.structs.replace(one, expires=old) for one in entry.value.codes)
    await bucket.put("telegram", msgspec.structs.replace(entry.value, codes=codes))
    assert not await channel(running).link_sender(code, "1001", "1001", "")


async def test_a_sender_has_few_guesses(running: Platform, auth: AuthClient) -> None:
    """After its wrong codes a sender is not linked by the right one; another sender still is."""
    code = (await auth.start_linking("telegram")).code
    for number in range(MOST_WRONG_OF_SENDER):
        assert not await channel(running).link_sender(f"AAAA-AAA{number + 2}", "2002", "2002", "")
    assert not await channel(running).link_sender(code, "2002", "2002", "")
    assert await channel(running).link_sender(code, "1001", "1001", "")


async def test_many_strangers_together_have_few_guesses(running: Platform, auth: AuthClient) -> None:
    """After many wrong codes of a channel none counts, whoever sends it, until the owner asks anew."""
    code = (await auth.start_linking("telegram")).code
    for number in range(MOST_WRONG_OF_CHANNEL):
        assert not await channel(running).link_sender("AAAA-AAAA", f"stranger-{number}", "x", "")
    assert not await channel(running).link_sender(code, "1001", "1001", "")


async def test_codes_that_wait_are_few_and_are_stored_as_hashes(running: Platform, auth: AuthClient) -> None:
    """A fourth code is refused, the bus has no code in clear, and a name that is no channel's is refused."""
    codes = [(await auth.start_linking("telegram")).code for _ in range(3)]
    with pytest.raises(RemoteFault) as refused:
        await auth.start_linking("telegram")
    assert refused.value.code == "rate_limited"
    entry = await running.bus.kv(SENDER_BUCKET).get("telegram")
    assert entry is not None and not any(code in repr(entry.value) for code in codes)
    with pytest.raises(RemoteFault) as refused:
        await auth.start_linking("no.channel*")
    assert refused.value.code == "invalid_request"
