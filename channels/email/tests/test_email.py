"""The e-mail channel on a scripted gateway: threads, what is heard of a mail, commands, and what people get."""

from collections.abc import Iterator
from email.message import EmailMessage

import pytest

from trunkline import Unavailable
from trunkline.api.channel import Attachment
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import wait_until
from trunkline.api.turn import TextDelta, ToolEnded, TurnEnded

from .mail_store import AGENT, OWNER
from .running_channel import talking

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


async def test_a_thread_is_a_conversation() -> None:
    """A reply continues the conversation of its thread, also if it names only the answer; a new mail begins one."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        first = store.say("one", Subject="Beans")
        await wait_until(lambda: len(store.mails()) == 1)
        answer = store.mails()[0]
        store.say("two", In_Reply_To=str(answer["Message-ID"]))
        await wait_until(lambda: len(store.mails()) == 2)
        store.say("three", to=first)
        store.say("another", Subject="Peas")
        await wait_until(lambda: len(store.mails()) == 4)
    begun = gateway.sent[0].conversation, gateway.sent[3].conversation
    assert begun == (None, None)
    assert gateway.sent[1].conversation == gateway.sent[2].conversation is not None
    assert [message.content for message in gateway.sent] == [
        "Beans\n\none",
        "two",
        "three",
        "Peas\n\nanother",
    ]


async def test_an_answer_is_a_reply_that_no_program_answers() -> None:
    """An answer has the thread's subject and references, says that a program wrote it, and is filed as sent."""
    async with talking() as (servers, _, _):
        store = servers.store
        asked = store.say("hello", Subject="Beans", to=None)
        await wait_until(lambda: store.folders["Sent Items"].mails)
        (answer,) = store.mails()
    assert (
        answer["Subject"] == "Re: Beans"
        and answer["From"] == f"Trunkline <{AGENT}>"
        and answer["To"] == OWNER
    )
    assert answer["In-Reply-To"] == answer["References"] == asked["Message-ID"]
    assert answer["Auto-Submitted"] == "auto-replied"
    (filed,) = store.folders["Sent Items"].mails
    assert filed.message_id == answer["Message-ID"] and filed.message_id.endswith("@trunk.test>")
    assert store.untaken() == [] and len(store.folders["INBOX"].mails) == 1


FILES = (
    Attachment(path="a/chart", name="chart.png", media_type="image/png", size=len(PNG)),
    Attachment(path="a/gone", name="gone.pdf", media_type="application/pdf", size=9),
    Attachment(path="a/film", name="film.mp4", media_type="video/mp4", size=16 * 1024 * 1024),
)


async def test_files_of_an_agent_are_attached_once() -> None:
    """A file is attached to the answer, also after the gateway was away; one that is too large or gone is named."""

    def giving(message: SendMessage) -> Iterator[object]:
        yield TextDelta(step=0, offset=0, text="See here.")
        yield ToolEnded(step=0, call_id="c1", name="send_file", output="given", files=FILES)
        gateway.away = True
        yield TurnEnded(reason="stop")

    async with talking(giving) as (servers, gateway, _):
        gateway.files["a/chart"] = PNG
        servers.store.say("go")
        await wait_until(lambda: gateway.away)
        gateway.away = False
        await wait_until(lambda: servers.store.mails())
        (mail,) = servers.store.mails()
    files = [
        (one.get_filename(), one.get_content_type(), one.get_content()) for one in mail.iter_attachments()
    ]
    assert files == [("chart.png", "image/png", PNG)]
    (text,) = servers.store.seen()
    assert text.startswith("See here.") and "gone.pdf (9 bytes)" in text and "film.mp4" in text


async def test_markdown_is_drawn_without_pictures() -> None:
    """The HTML part draws Markdown. It loads nothing, and markup in an answer is text."""
    text = "**Bold** ![x](https://evil.test/a.png?secret=1) <img src=https://evil.test/b> [a](https://c.test)"
    async with talking() as (servers, _, _):
        servers.store.say(text)
        await wait_until(servers.store.mails)
        (answer,) = servers.store.mails()
    body = answer.get_body(preferencelist=("html",))
    assert body is not None
    html = body.get_content()
    assert "<strong>Bold</strong>" in html and 'href="https://c.test"' in html and "<img" not in html


async def test_a_mail_is_heard_without_its_quotation_and_signature() -> None:
    """The agent gets what the person wrote, from plain text and from HTML."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        store.say("Water them.\n\n-- \nAda\n")
        store.say(
            "Yes.\n\nOn Mon, 2 Nov 2026 at 15:04, Agent <agent@trunk.test> wrote:\n\n> Shall I?\n> Or not?\n"
        )
        mail = EmailMessage()
        mail.set_content(
            '<div>From <b>HTML</b></div><ul><li>one</li></ul><div class="gmail_quote">old<blockquote>older</blockquote>'
            "</div><script>no()</script>",
            subtype="html",
        )
        store.deliver(mail)
        await wait_until(lambda: len(gateway.sent) == 3)
    assert [message.content for message in gateway.sent] == ["Water them.", "Yes.", "From HTML\n\n* one"]


async def test_files_of_a_mail_are_passed_on() -> None:
    """Attachments and pictures in the text reach the gateway with their names; a mail without text may have files."""
    async with talking() as (servers, gateway, _):
        mail = EmailMessage()
        mail.set_content("Look.")
        mail.add_attachment(PNG, maintype="image", subtype="png", filename="bean.png")
        mail.add_attachment("a,b\n", subtype="csv", filename="beans.csv")
        servers.store.deliver(mail)
        bare = EmailMessage()
        bare.set_content(b"%PDF-1.4", maintype="application", subtype="pdf", filename="plan.pdf")
        servers.store.deliver(bare)
        servers.store.say(" \n")
        await wait_until(lambda: len(servers.store.mails()) == 3)
    assert [(file.name, file.media_type) for file in gateway.sent[0].documents] == [
        ("bean.png", "image/png"), ("beans.csv", "text/csv"),
    ]  # fmt: skip
    assert gateway.sent[0].documents[0].data == PNG and gateway.sent[0].content == "Look."
    assert [file.name for file in gateway.sent[1].documents] == ["plan.pdf"] and len(gateway.sent) == 2
    assert "no text" in "".join(servers.store.seen())


async def test_a_mail_that_is_too_large_is_answered_and_not_read() -> None:
    """The owner learns the limit, and the body is never fetched."""
    async with talking(max_mail_bytes=10_000) as (servers, gateway, _):
        servers.store.say("x " * 10_000)
        servers.store.say("small")
        await wait_until(lambda: len(servers.store.mails()) == 2)
        assert "larger than 10 kB" in "".join(servers.store.seen())
    assert [message.content for message in gateway.sent] == ["small"]


async def test_commands_are_mails_of_one_line() -> None:
    """Commands answer in their thread and begin no turn; a line in a longer mail is a message."""
    async with talking() as (servers, gateway, _):
        store = servers.store
        store.say("hello")
        await wait_until(store.mails)
        for line in ("/status", "/cost", "/stop", "/model", "/help", "/dance"):
            store.say(line, to=store.mails()[0])
        store.say("/help\nme with this")
        await wait_until(lambda: len(store.mails()) == 8)
        said = "\n".join(store.seen())
    for expected in ("scripted/model", "The last answer used", "Nothing runs", "There is no command /dance"):
        assert expected in said
    assert [message.content for message in gateway.sent] == ["hello", "/help\nme with this"]


async def test_the_owner_is_told_by_mail() -> None:
    """A notice reaches each owner, as a mail that begins a thread; without a connection the sender is told."""
    async with talking(owners=(OWNER, "bob@owner.test")) as (servers, _, one):
        servers.store.say("hello")
        await wait_until(servers.store.mails)
        await one.tell_owner("The beans are ripe.\nAll of them.")
        notice = servers.store.mails()[-1]
        assert notice["Subject"] == "The beans are ripe." and notice["Auto-Submitted"] == "auto-generated"
        assert servers.store.seen("bob@owner.test") == ["The beans are ripe.\nAll of them."]
    with pytest.raises(Unavailable):
        await servers.channel().tell_owner("too late")
