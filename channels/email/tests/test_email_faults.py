"""What the faults of both servers lead to: nothing is lost, nothing is repeated, and nothing is sent unencrypted."""

from collections.abc import Callable

import pytest

from trunkline.api.testing import ScriptedGateway, running_channel, wait_until

from .mail_servers import mail_servers
from .mail_store import OWNER, Fault, MailStore
from .running_channel import talking

pytestmark = pytest.mark.anyio

NO_IDLE = "IMAP4rev1 UIDPLUS"


@pytest.mark.parametrize(
    "fault",
    [
        Fault("LOGIN", "NO [UNAVAILABLE] come back later"),
        Fault("SELECT", "BAD out of order"),
        Fault("SEARCH", "NO out of order"),
        Fault("FETCH", cut="before"),
        Fault("FETCH", "* BYE shutting down"),
        Fault("FETCH", "* 1 FETCH (nonsense"),
        Fault("STORE", cut="before"),
        Fault("STORE", cut="after"),
        Fault("STORE", "NO read-only"),
        Fault("IDLE", "BAD what"),
        Fault("IDLE", cut="before"),
        Fault("MOVE", "NO over quota"),
        Fault("LIST", cut="after"),
    ],
    ids=lambda fault: f"{fault.command}-{fault.answer or fault.cut}",
)
async def test_a_fault_of_imap_loses_and_repeats_nothing(fault: Fault) -> None:
    """The channel connects again and goes on where it was."""
    async with ScriptedGateway() as gateway, mail_servers() as servers:
        store = servers.store
        store.say("one")
        store.faults.append(fault)
        async with running_channel(servers.channel(), gateway):
            await wait_until(lambda: not store.faults)
            store.say("two")
            await wait_until(lambda: len(store.mails()) == 2)
            await wait_until(lambda: not store.untaken())
    assert [message.content for message in gateway.sent] == ["one", "two"]
    assert store.seen() == ["You said: one", "You said: two"]


async def test_a_mail_that_the_server_does_not_give_keeps_no_other_waiting() -> None:
    """It is tried again with the next connection."""
    async with ScriptedGateway() as gateway, mail_servers() as servers:
        store = servers.store
        store.say("one")
        store.faults.append(Fault("FETCH", "NO corrupt"))
        async with running_channel(servers.channel(), gateway):
            store.say("two")
            await wait_until(lambda: "You said: two" in store.seen())
        async with running_channel(servers.channel(), gateway):
            await wait_until(lambda: "You said: one" in store.seen())
    assert len(store.seen()) == 2


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("RCPT", "451 4.7.1 Greylisted, come back later")],
        [Fault("MAIL", "421 4.3.2 shutting down"), Fault("MAIL", "450 4.3.2 busy")],
        [Fault("DATA", "452 4.3.1 disk full")],
        [Fault("MAIL", cut="before")],
        [Fault("DATA", cut="before")],
        [Fault("DATA", cut="after")],
        [Fault("DATA", cut="after"), Fault("LOGIN", "NO [UNAVAILABLE] later")],
    ],
    ids=lambda faults: "-".join(f"{fault.command} {fault.answer[:3] or fault.cut}" for fault in faults),
)
async def test_a_fault_of_smtp_neither_loses_nor_repeats_an_answer(faults: list[Fault]) -> None:
    """What the server did not take is sent later; what it took without saying so is found and not sent again."""
    async with talking() as (servers, _, _):
        store = servers.store
        await wait_until(lambda: "IDLE" in store.commands)
        store.faults += faults
        store.say("one")
        await wait_until(lambda: not store.faults)
        await wait_until(store.mails)
        store.say("two")
        await wait_until(lambda: "You said: two" in store.seen())
    assert store.seen() == ["You said: one", "You said: two"]


async def test_an_answer_that_is_refused_for_good_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged once, and the next answer is sent."""
    async with talking() as (servers, _, _):
        servers.store.faults.append(Fault("RCPT", "550 5.1.1 no such user"))
        servers.store.say("one")
        await wait_until(lambda: "550" in caplog.text)
        servers.store.say("two")
        await wait_until(servers.store.mails)
    assert servers.store.seen() == ["You said: two"] and caplog.text.count("is not sent") == 1


async def test_a_server_that_takes_no_copy_still_sends() -> None:
    """The person gets the answer."""
    async with talking() as (servers, _, _):
        servers.store.refuses_copies = True
        servers.store.say("one")
        await wait_until(servers.store.mails)
    assert servers.store.seen() == ["You said: one"]


async def test_a_server_without_idle_and_move_is_polled() -> None:
    """Mails are found by looking, and copies are marked as read."""
    async with talking(capabilities=NO_IDLE, poll_seconds=0.05, sent_folder="INBOX") as (servers, _, _):
        servers.store.say("one")
        await wait_until(servers.store.mails)
        servers.store.say("two")
        await wait_until(lambda: len(servers.store.mails()) == 2)
        await wait_until(lambda: not servers.store.untaken())


async def _restart(change: Callable[[MailStore], None]) -> list[str]:
    """Answer one mail, change the mailbox while nobody reads it, and return what the owner got after one more mail."""
    async with ScriptedGateway() as gateway, mail_servers() as servers:
        store = servers.store
        async with running_channel(servers.channel(), gateway):
            store.say("one", message_id="<one@owner.test>")
            await wait_until(store.mails)
            await wait_until(lambda: not store.untaken())
        change(store)
        async with running_channel(servers.channel(), gateway):
            store.say("two")
            await wait_until(lambda: "You said: two" in store.seen())
            await wait_until(lambda: not store.untaken())
        return store.seen()


def _unread(store: MailStore) -> None:
    for mail in store.folders["INBOX"].mails:
        mail.flags.clear()


def _renumber(store: MailStore) -> None:
    _unread(store)
    store.folders["INBOX"].renumber()


def _again(store: MailStore) -> None:
    store.say("one", message_id="<one@owner.test>")


@pytest.mark.parametrize("change", [_unread, _renumber, _again])
async def test_a_mail_that_appears_again_is_not_answered_again(change: Callable[[MailStore], None]) -> None:
    """Marked as unread, numbered anew, or delivered twice: a mail is known by its Message-ID."""
    assert await _restart(change) == ["You said: one", "You said: two"]


async def test_uids_that_change_while_the_channel_runs_name_no_other_mail() -> None:
    """After a change of UIDVALIDITY the server ends the connection; the next one begins anew."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        store.say("one")
        await wait_until(store.mails)
        store.faults.append(Fault("SEARCH", "* BYE renumbering", before=lambda: _renumber(store)))
        store.say("two")
        await wait_until(lambda: len(store.mails()) == 2)
        await wait_until(lambda: not store.untaken())
    assert [message.content for message in gateway.sent] == ["one", "two"]
    assert len(store.mails(OWNER)) == 2
