"""Pictures, documents, recordings and places between Telegram and a scripted gateway."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunkline import CompletionError
from trunkline.api.channel import Attachment
from trunkline.api.gateway import SendMessage
from trunkline.api.model import Transcription, TranscriptionRequest
from trunkline.api.testing import (
    ScriptedAbilities,
    ScriptedFault,
    ScriptedGateway,
    running_channel,
    wait_until,
)
from trunkline.api.turn import TextDelta, ToolEnded, TurnEnded
from trunkline_telegram.channel import TelegramChannel
from trunkline_telegram.message_media import MEDIA_LIMIT, TOO_LARGE
from trunkline_telegram.settings import TelegramSettings

from .bot_api_server import OWNER, QUICK, STRANGER, TOKEN, BotApiServer, bot_api_server, failure

pytestmark = pytest.mark.anyio

GROUP = -100_777
PICTURE, OTHER = b"\xff\xd8\xff one picture", b"\xff\xd8\xff another"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)


@asynccontextmanager
async def talking() -> AsyncIterator[tuple[BotApiServer, ScriptedGateway]]:
    """A server, a gateway and the running channel between them."""
    async with ScriptedGateway() as gateway, bot_api_server() as server, running(server, gateway):
        yield server, gateway


@asynccontextmanager
async def running(server: BotApiServer, gateway: ScriptedGateway) -> AsyncIterator[None]:
    """The channel runs in this block."""
    settings = TelegramSettings(api_url=server.url, owners=(OWNER,), edit_seconds=0.02, poll_seconds=5)
    async with running_channel(TelegramChannel(settings, QUICK), gateway):
        yield


class Deaf(ScriptedAbilities):
    """No model hears."""

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        raise CompletionError("not_supported", "The adapter scripted does not transcribe.")


async def test_a_picture_and_a_document_reach_the_gateway() -> None:
    """The largest size of a picture is taken, captions are the text, and a document keeps its name."""
    async with talking() as (server, gateway):
        server.send_photo(PICTURE, caption="what is this?")
        server.send_file("document", b"%PDF-1.7", name="plan 2.pdf", media_type="application/pdf")
        await wait_until(lambda: len(gateway.sent) == 2)
    picture, document = gateway.sent
    assert [file.data for file in picture.documents] == [PICTURE] and picture.content == "what is this?"
    assert [(file.name, file.data) for file in document.documents] == [("plan 2.pdf", b"%PDF-1.7")]
    assert document.content == "" and document.client_id != picture.client_id


async def test_an_album_is_one_message_however_telegram_divides_it() -> None:
    """Pictures that are sent together are one message with one caption, also if the last arrives later."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        server.send_photo(PICTURE, media_group_id="a")
        server.send_photo(OTHER, media_group_id="a", caption="compare these")

        def late() -> None:
            server.send_photo(PICTURE + b"3", media_group_id="a")
            server.say("after")

        server.faults.append(ScriptedFault("getUpdates", after=late))
        async with running(server, gateway):
            await wait_until(lambda: len(server.seen()) == 2)
            server.repeat()
            await server.wait_for_confirmation()
    album, after = gateway.sent
    assert [file.data for file in album.documents] == [PICTURE, OTHER, PICTURE + b"3"]
    assert (album.content, after.content) == ("compare these", "after")
    assert len(server.seen()) == 2


async def test_a_voice_message_is_words_and_a_recording_is_a_file_of_words() -> None:
    """What the owner says is the message, marked as heard. What is said in a recording is a text file."""
    async with talking() as (server, gateway):
        server.send_file("voice", b"water the beans", media_type="audio/ogg")
        server.send_file("audio", b"ladies and gentlemen", name="talk.mp3", caption="sum it up")
        await wait_until(lambda: len(gateway.sent) == 2)
    voice, audio = gateway.sent
    assert voice.content == "[Voice message] water the beans" and not voice.documents
    assert audio.content == "sum it up"
    (file,) = audio.documents
    assert (file.name, file.media_type, file.data) == ("talk.txt", "text/plain", b"ladies and gentlemen")


async def test_a_voice_message_that_no_model_takes_gets_a_sentence() -> None:
    """The voice message reaches no agent, and the sentence says what to do. The next message is answered."""
    async with ScriptedGateway() as gateway, bot_api_server() as server:
        gateway.model_abilities = Deaf()
        async with running(server, gateway):
            server.send_file("voice", b"water the beans")
            server.say("hello")
            await wait_until(lambda: len(server.seen()) == 2)
    (said,) = (text for text in server.seen() if "voice" in text)
    assert "I could not listen to the voice message: The adapter scripted does not transcribe." in said
    assert "[models]" in said and [message.content for message in gateway.sent] == ["hello"]


@pytest.mark.parametrize("said", [MEDIA_LIMIT + 1, 0])
async def test_a_file_that_telegram_does_not_give_is_told_once(said: int) -> None:
    """More than 20 MB, whether Telegram says so before or after it is asked; and a file that is gone."""
    async with talking() as (server, gateway):
        server.send_file("document", b"x", size=MEDIA_LIMIT + 1, name="film.mkv")
        if not said:  # the update does not say the size
            del server.updates[-1]["message"]["document"]["file_size"]
        server.send_file("document", b"x", name="gone.txt")
        server.files.popitem()
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 3)
        server.repeat()
        await server.wait_for_confirmation()
    assert sorted(server.seen()) == sorted(
        [TOO_LARGE, "Telegram does not return this file. Send it again.", "You said: hello"]
    )
    assert len(gateway.sent) == 1 and not server.downloads


@pytest.mark.parametrize("method", ["getFile", "download"])
@pytest.mark.parametrize(
    "answer", [failure(502, "Bad Gateway"), failure(429, "Too Many Requests", {"retry_after": 0.1})]
)
async def test_a_passing_error_of_telegram_loses_no_file(
    method: str, answer: tuple[int, dict[str, Any]]
) -> None:
    """The file is asked for again, and the message is sent once."""
    async with talking() as (server, gateway):
        server.faults.append(ScriptedFault(method, answer=answer))
        server.send_photo(PICTURE, caption="look")
        await wait_until(lambda: server.seen() == ["You said: look"])
    assert [file.data for message in gateway.sent for file in message.documents] == [PICTURE]
    assert not server.faults


async def test_an_expired_path_is_no_wrong_token() -> None:
    """Telegram answers 404 for an old path; the channel goes on."""
    async with talking() as (server, gateway):
        server.faults.append(ScriptedFault("download", answer=failure(404, "Not Found")))
        server.send_photo(PICTURE)
        server.say("hello")
        await wait_until(lambda: len(server.seen()) == 2)
    assert any("Send it again" in text for text in server.seen()) and len(gateway.sent) == 1


async def test_a_place_reaches_the_model_in_words() -> None:
    """A location has its coordinates and accuracy, a venue its name and address too."""
    here = {"latitude": 48.40108, "longitude": 9.98761}
    async with talking() as (server, gateway):
        server.say(None, location={**here, "horizontal_accuracy": 12.4})
        server.say(None, location=here, venue={"location": here, "title": "Minster", "address": "Ulm"})
        await wait_until(lambda: len(gateway.sent) == 2)
    assert [message.content for message in gateway.sent] == [
        "My place: latitude 48.401080, longitude 9.987610, within 12 m",
        "My place: Minster, Ulm (latitude 48.401080, longitude 9.987610)",
    ]


CHAT = {"id": OWNER, "type": "private", "first_name": "Ada"}
ADA = {"id": OWNER, "is_bot": False, "first_name": "Ada"}
VIDEO = {"file_id": "v", "file_unique_id": "u", "width": 1, "height": 1, "duration": 1}
STICKER = {"file_id": "s", "file_unique_id": "u", "type": "regular", "width": 1, "height": 1,
           "is_animated": False, "is_video": False}  # fmt: skip
POLL = {"id": "p", "question": "Tea?", "options": [], "total_voter_count": 0, "is_closed": False,
        "is_anonymous": True, "type": "regular", "allows_multiple_answers": False, "members_only": False,
        "allows_revoting": False}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ({"sticker": STICKER}, "sticker"),
        ({"poll": POLL}, "poll"),
        ({"contact": {"phone_number": "1", "first_name": "Ada"}}, "contact"),
        ({"video": VIDEO}, "video"),
        ({"animation": VIDEO, "document": {"file_id": "v", "file_unique_id": "u"}}, "GIF"),
        ({"dice": {"emoji": "🎲", "value": 3}}, "dice"),
    ],
)
async def test_each_content_without_a_way_to_the_model_is_named(content: dict[str, Any], name: str) -> None:
    """The sentence names the content, and the agent is not asked."""
    async with talking() as (server, gateway):
        server.say(None, **content)
        await wait_until(lambda: bool(server.seen()))
    assert server.seen() == [f"I cannot read this ({name}) here. Write it as text."] and not gateway.sent


async def test_an_edit_is_answered_once_and_a_moving_place_is_not() -> None:
    """An edit changes nothing, and the owner is told. The bot learns of no deletion."""
    async with talking() as (server, gateway):
        edited = {"message_id": 1, "date": 1, "edit_date": 2, "chat": CHAT, "from": ADA}
        server._update({"edited_message": {**edited, "location": {"latitude": 1.0, "longitude": 1.0}}})
        server._update({"edited_message": {**edited, "text": "helo"}})
        await wait_until(lambda: bool(server.seen()))
        server.repeat()
        await server.wait_for_confirmation()
    assert len(server.seen()) == 1 and "as a new message" in server.seen()[0] and not gateway.sent


async def test_pictures_in_a_group_need_a_mention_in_the_caption() -> None:
    """An album is taken whole if one caption mentions the bot, and no file of anything else is asked for."""
    async with talking() as (server, gateway):
        server.send_photo(OTHER, chat=GROUP, caption="not for you")
        server.send_photo(PICTURE, chat=GROUP, media_group_id="g")
        server.send_photo(OTHER, chat=GROUP, media_group_id="g", caption="@trunk_bot these")
        server.send_photo(OTHER, user=STRANGER, chat=GROUP, caption="@trunk_bot mine")
        await wait_until(lambda: len(gateway.sent) == 1)
        await server.wait_for_confirmation()
    assert [file.data for file in gateway.sent[0].documents] == [PICTURE, OTHER]
    assert gateway.sent[0].content == "these" and len(server.downloads) == 2


async def test_the_token_is_in_no_log_of_a_download(caplog: pytest.LogCaptureFixture) -> None:
    """The address of a file has the token too; the loggers show it hidden, also when the download fails."""
    secret = TOKEN.partition(":")[2]
    for name in ("httpx", "httpcore", "telegram", ""):
        caplog.set_level(logging.DEBUG, name)
    async with talking() as (server, gateway):
        server.faults.append(ScriptedFault("download", answer=failure(502, "Bad Gateway")))
        server.send_photo(PICTURE)
        await wait_until(lambda: len(gateway.sent) == 1)
    assert "/file/bot4242%3Ahidden/" in caplog.text
    assert secret not in caplog.text and secret not in str([record.args for record in caplog.records])


# Files and places of an answer -----------------------------------------------------------------------------------

PHOTO = Attachment(path="a/photo", name="plan.png", media_type="image/png", size=20)
TABLE = Attachment(path="a/table", name="plan.csv", media_type="text/csv", size=5)
GIF = Attachment(path="a/gif", name="film.gif", media_type="image/gif", size=20)
CONTENTS = {"a/photo": b"\x89PNG\r\n\x1a\n picture", "a/table": b"a,b\n1", "a/gif": b"GIF89a film"}


def giving(*files: Attachment, text: str = "Here it is.") -> Callable[[SendMessage], Iterator[Any]]:
    """An answer with these files."""

    def answer(message: SendMessage) -> Iterator[Any]:
        yield ToolEnded(step=0, call_id="call", name="send_file", output="given", files=files)
        if text:
            yield TextDelta(step=1, offset=0, text=text)
        yield TurnEnded(reason="stop")

    return answer


@asynccontextmanager
async def answered_by(
    answer: Callable[[SendMessage], Iterator[Any]], contents: dict[str, bytes] = CONTENTS
) -> AsyncIterator[BotApiServer]:
    """A server whose owner was promised this answer, and asks for it."""
    async with ScriptedGateway(answer) as gateway, bot_api_server() as server:
        gateway.files.update(contents)
        async with running(server, gateway):
            server.say("go")
            yield server


async def test_files_of_an_answer_follow_its_text() -> None:
    """A picture is a photo, a table and a GIF are documents; each has its bytes and name, and all are in the topic."""
    async with ScriptedGateway(giving(PHOTO, TABLE, GIF)) as gateway, bot_api_server() as server:
        gateway.files.update(CONTENTS)
        async with running(server, gateway):
            server.say("@trunk_bot go", chat=GROUP, thread=7)
            await wait_until(lambda: len(server.seen(GROUP)) == 4)
            shown = server.shown(GROUP)
    assert [one.file or one.text for one in shown] == [
        "Here it is.", "photo plan.png", "document plan.csv", "document film.gif",
    ]  # fmt: skip
    assert [one.data for one in shown[1:]] == list(CONTENTS.values())
    assert all(one.thread == 7 and one.reply_to for one in shown)


async def test_an_answer_of_a_file_alone_has_no_text() -> None:
    """No sentence says that the answer is empty."""
    async with answered_by(giving(TABLE, text="")) as server:
        await wait_until(lambda: bool(server.seen()))
        await server.wait_for_confirmation()
    assert server.seen() == ["document plan.csv"]


async def test_a_picture_that_is_no_photo_for_telegram_is_a_document() -> None:
    """Telegram refuses some pictures, for example very long ones; then people get the file."""
    async with answered_by(giving(PHOTO), {"a/photo": b"not really a PNG"}) as server:
        await wait_until(lambda: len(server.seen()) == 2)
    assert server.seen() == ["Here it is.", "document plan.png"]
    assert server.calls.count("sendPhoto") == 1


@pytest.mark.parametrize("why", ["gone", "too large", "refused"])
async def test_a_file_that_cannot_be_sent_is_named_in_the_answer(why: str) -> None:
    """A file that is no longer stored, exceeds 50 MB, or is refused; the others arrive."""
    table = Attachment(path="a/table", name="plan.csv", media_type="text/csv", size=51 * 1024 * 1024)
    first = table if why == "too large" else TABLE
    contents = {path: data for path, data in CONTENTS.items() if why != "gone" or path != "a/table"}
    async with ScriptedGateway(giving(first, PHOTO)) as gateway, bot_api_server() as server:
        gateway.files.update(contents)
        if why == "refused":
            server.faults.append(
                ScriptedFault("sendDocument", answer=failure(413, "Request Entity Too Large"))
            )
        async with running(server, gateway):
            server.say("go")
            await wait_until(lambda: bool(server.seen()) and "cannot send" in server.seen()[0])
            await wait_until(lambda: len(server.seen()) == 2)
    assert "This channel cannot send you the file plan.csv (" in server.seen()[0]
    assert server.seen()[1] == "photo plan.png"


@pytest.mark.parametrize("method", ["sendPhoto", "sendDocument"])
async def test_a_file_whose_answer_is_lost_is_sent_once(method: str) -> None:
    """The connection breaks after Telegram has acted: the file is found by its buttons."""
    async with ScriptedGateway(giving(PHOTO, TABLE)) as gateway, bot_api_server() as server:
        gateway.files.update(CONTENTS)
        server.faults.append(ScriptedFault(method, lost=True))
        async with running(server, gateway):
            server.say("go")
            await wait_until(lambda: len(server.seen()) == 3 and not server.faults)
            server.say("/help")
            await wait_until(lambda: len(server.seen()) == 4)
    assert server.seen()[:3] == ["Here it is.", "photo plan.png", "document plan.csv"]
    assert "editMessageReplyMarkup" in server.calls


async def test_a_link_to_a_place_is_also_shown_on_a_map() -> None:
    """Each place once, in the order of the text; what is no place on earth stays text."""
    text = "[Ulm](geo:48.4,9.99), [again](geo:48.4,9.99), [South](geo:-33.9,18.4;u=20), [no](geo:91,0)"
    async with answered_by(giving(text=text)) as server:
        await wait_until(lambda: len(server.seen()) == 3)
    assert server.seen() == ["Ulm, again, South, no", "place 48.4, 9.99", "place -33.9, 18.4"]
