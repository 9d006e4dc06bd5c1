"""Who is heard: the owner whose sender the receiving server confirms. Everybody else begins nothing."""

import logging

import anyio
import pytest

from trunkline.api.channel import STATE_PREFIX, AccountState
from trunkline.api.testing import ScriptedGateway, wait_until

from .mail_store import AGENT, OWNER, SERVER, STRANGER, MailStore
from .running_channel import talking

pytestmark = pytest.mark.anyio

CONFIRMED = [
    f"{SERVER}; dmarc=pass header.from=owner.test",
    f"{SERVER} 1; dkim=pass header.i=@owner.test header.s=a header.b=AbC/+; spf=fail smtp.mailfrom=x.test",
    f"{SERVER}; dkim=fail header.d=x.test; dkim=pass (2048-bit key) header.d=Owner.Test; dmarc=none",
    f"{SERVER.upper()}; new-thing=pass header.x=1;\r\n\tdmarc=pass (p=NONE sp=NONE) header.from=owner.test",
]
REFUSED = [
    "",
    f"{SERVER}; none",
    f"{SERVER}; dmarc=fail header.from=owner.test",
    f"{SERVER}; dmarc=none; spf=pass smtp.mailfrom=ada@owner.test",
    f"{SERVER}; dmarc=pass header.from=stranger.test",
    f"{SERVER}; dmarc=pass",
    f"{SERVER}; dkim=pass header.d=test",
    f"{SERVER}; dkim=pass header.d=mail.owner.test",
    f"{SERVER}; dkim=pass header.d=owner.test; dmarc=fail header.from=owner.test",
    f"{SERVER}; dmarc=pass header.from=owner.test; dmarc=fail header.from=owner.test",
    f'{SERVER}; spf=pass smtp.mailfrom="; dmarc=pass header.from=owner.test"@stranger.test',
    f"{SERVER}; spf=pass (; dmarc=pass header.from=owner.test) smtp.mailfrom=stranger.test",
    f"{SERVER}; =?utf-8?q?dmarc=3Dpass_header=2Efrom=3Downer=2Etest?=",
    f"{SERVER}.evil.test; dmarc=pass header.from=owner.test",
    "evil.test; dmarc=pass header.from=owner.test",
    "dmarc=pass header.from=owner.test",
    f"evil.test; none\r\nAuthentication-Results: {SERVER}; dmarc=pass header.from=owner.test",
    f"{SERVER}; dmarc=fail header.from=owner.test\r\n"
    f"Authentication-Results: {SERVER}; dmarc=pass header.from=owner.test",
]


def arrive(store: MailStore, results: str, *, sender: str = f"From: Ada <{OWNER}>") -> None:
    """A mail arrives with these results of the receiving server."""
    field = f"Authentication-Results: {results}\r\n" if results else ""
    number = len(store.folders["INBOX"].mails)
    store.arrive(f"{field}{sender}\r\nMessage-ID: <{number}@x.test>\r\n\r\nmail {number}\r\n".encode())


async def heard_after(gateway: ScriptedGateway, store: MailStore) -> list[str]:
    """Wait until a mail that is accepted has been answered, and return what was heard before."""
    store.say("the last one")
    await wait_until(lambda: "You said: the last one" in store.seen())
    await wait_until(lambda: not store.untaken())
    return [message.content for message in gateway.sent][:-1]


async def test_a_sender_that_the_server_confirms_is_heard() -> None:
    """DMARC, or a DKIM signature of exactly the domain in From."""
    async with talking() as (servers, gateway, _):
        for results in CONFIRMED:
            arrive(servers.store, results)
        assert len(await heard_after(gateway, servers.store)) == len(CONFIRMED)


async def test_a_sender_that_the_server_does_not_confirm_is_not_heard(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A forged From with any results that a sender can write, below or inside those of the server, begins nothing."""
    async with talking() as (servers, gateway, _):
        for results in REFUSED:
            arrive(servers.store, results)
        assert await heard_after(gateway, servers.store) == []
        assert len(servers.store.mails()) == 1 and STRANGER not in servers.store.received
    assert caplog.text.count("is refused") == len(REFUSED)


@pytest.mark.parametrize(
    "sender",
    [
        f"From: {STRANGER}\r\nFrom: {OWNER}",
        f"From: {OWNER}, {STRANGER}",
        f'From: "{OWNER}" <{STRANGER}>',
        f"From: friends: {OWNER};\r\nSender: {OWNER}",
        f"From: <{OWNER}> {STRANGER}",
        "From: ",
        "Subject: no sender",
    ],
)
async def test_an_unclear_from_is_not_heard(sender: str) -> None:
    """Only exactly one address in exactly one From is a sender."""
    async with talking() as (servers, gateway, _):
        arrive(servers.store, f"{SERVER}; dmarc=pass header.from=owner.test", sender=sender)
        assert await heard_after(gateway, servers.store) == []


async def test_without_a_receiving_server_nobody_is_heard() -> None:
    """No setting trusts a plain From: without the server's name every mail is refused."""
    async with talking(authentication_server="") as (servers, gateway, _):
        servers.store.say("hello")
        await wait_until(lambda: not servers.store.untaken())

        said = ""
        while "authentication_server is not set" not in said:
            states = await gateway.records().list(STATE_PREFIX, AccountState)
            said = " ".join(one.value.text for one in states)
            await anyio.sleep(0.01)
    assert gateway.sent == [] and servers.store.mails() == []


async def test_strangers_get_nothing_or_one_line() -> None:
    """By default nothing. With answer_strangers a confirmed stranger gets one line, once, and begins no turn."""
    async with talking() as (servers, gateway, _):
        servers.store.say("hello", sender=STRANGER)
        assert await heard_after(gateway, servers.store) == [] and servers.store.seen(STRANGER) == []
    async with talking(answer_strangers=True) as (servers, gateway, _):
        servers.store.say("hello", sender=STRANGER)
        servers.store.say("anybody?", sender=STRANGER)
        servers.store.say("forged", sender="mallory@forged.test", confirmed="fail")
        servers.store.say("absent", sender="bob@away.test", Auto_Submitted="auto-replied")
        assert await heard_after(gateway, servers.store) == []
        await wait_until(lambda: servers.store.seen(STRANGER))
        (line,) = servers.store.seen(STRANGER)
    assert "private" in line and set(servers.store.received) == {STRANGER, OWNER}


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied (vacation)"},
        {"Auto_Submitted": "auto-generated"},
        {"List_Id": "<beans.lists.test>"},
        {"Precedence": "bulk"},
        {"Return_Path": "<>"},
        {"X_Autoreply": "yes"},
    ],
)
async def test_mails_of_programs_are_never_answered(headers: dict[str, str]) -> None:
    """Absence notices, lists and bounces begin nothing, even from the owner's address."""
    async with talking() as (servers, gateway, _):
        servers.store.say("I am away.", **headers)
        assert await heard_after(gateway, servers.store) == [] and len(servers.store.mails()) == 1


async def test_mails_in_the_name_of_the_mailbox_begin_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A mail from the mailbox's own address that this channel did not send is a stranger's."""
    caplog.set_level(logging.INFO)
    async with talking(answer_strangers=True) as (servers, gateway, _):
        servers.store.say("from yourself", sender=AGENT)
        assert await heard_after(gateway, servers.store) == []
        await wait_until(lambda: len(servers.store.folders["INBOX"].mails) == 2)
