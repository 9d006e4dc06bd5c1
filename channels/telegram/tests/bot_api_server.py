"""A Bot API server in scripted form, as strict as Telegram's: error texts, numbering of messages, one poller, limits of
texts, entities and buttons. It counts what people see. Faults are scripted: an error, a hang, or a call at a moment.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from trunkline.api.testing import ScriptedFaults, scripted_address
from trunkline_telegram.retry_times import RetryTimes

TOKEN = "4242:secret-of-the-bot-AAAAAAAAAAAA"
BOT = {"id": 4242, "is_bot": True, "first_name": "Bot", "username": "trunk_bot"}
OWNER, STRANGER = 1001, 2002
CONFLICT = (
    409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
)  # fmt: skip

QUICK = RetryTimes(first_pause=0.05, longest_pause=0.2, settling=0.1, searched=20)
"""The times of a channel whose server is on this machine."""

DOWNLOAD_LIMIT = 20 * 1024 * 1024
"""Bytes of the largest file that Telegram gives a bot."""

UPLOAD_LIMITS = {"photo": 10 * 1024 * 1024, "document": 50 * 1024 * 1024}
"""Bytes of the largest files that a bot can send."""

PHOTO_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF")

NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)

Answer = tuple[int, dict[str, Any]]


@dataclass
class Shown:
    """A message in a chat, as people see it. ``file`` is its kind and name, such as ``photo plan.png``; ``data`` is its
    content.
    """

    chat: int
    id: int
    text: str
    entities: list[dict[str, Any]]
    markup: dict[str, Any]
    own: bool = True
    thread: int | None = None
    reply_to: int | None = None
    versions: int = 1
    file: str = ""
    data: bytes = b""

    @property
    def buttons(self) -> dict[str, str]:
        """The data of the buttons by their labels."""
        rows = self.markup.get("inline_keyboard", [])
        return {button["text"]: button["callback_data"] for row in rows for button in row}


@dataclass(frozen=True)
class SentFile:
    """A file at Telegram. ``size`` is what Telegram says of it, which its data need not have."""

    id: str
    data: bytes
    size: int
    path: str


@dataclass
class BotApiServer:
    """The server. ``faults`` are used up one by one; ``calls`` are the methods that were called."""

    url: str = ""
    updates: list[dict[str, Any]] = field(default_factory=list)
    confirmed: int = 0
    messages: dict[tuple[int, int], Shown] = field(default_factory=dict)
    faults: ScriptedFaults[Answer] = field(default_factory=ScriptedFaults)
    calls: list[str] = field(default_factory=list)
    pressed: dict[str, str] = field(default_factory=dict)
    commands: list[dict[str, str]] = field(default_factory=list)
    blocked: set[int] = field(default_factory=set)
    migrated: dict[int, int] = field(default_factory=dict)
    started: set[int] = field(default_factory=lambda: {OWNER})
    files: dict[str, SentFile] = field(default_factory=dict)
    downloads: list[str] = field(default_factory=list)
    webhook: dict[str, str] = field(default_factory=dict)
    proxy: Callable[[], str] = lambda: ""
    problem: str = ""
    _ids: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _poll: int = 0
    _news: anyio.Event = field(default_factory=anyio.Event)

    # People -----------------------------------------------------------------------------------------------------

    def say(
        self,
        text: str | None,
        *,
        user: int = OWNER,
        chat: int | None = None,
        thread: int | None = None,
        **more: Any,
    ) -> int:
        """A person writes; return the id of the update."""
        chat = user if chat is None else chat
        self.started.add(user)
        id = self._next_id(chat)
        message: dict[str, Any] = {
            "message_id": id,
            "date": 1_700_000_000,
            "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup", "title": "group"},
            "from": {"id": user, "is_bot": False, "first_name": "Ada"},
            **more,
        }
        if text is not None:
            message["text"] = text
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        self.messages[chat, id] = Shown(chat, id, text or "", [], {}, own=False, thread=thread)
        return self._update({"message": message})

    def send_photo(self, data: bytes, *, caption: str | None = None, **more: Any) -> int:
        """A person sends a picture, which Telegram also has in a smaller size; return the id of the update."""
        small, large = self._sent_file(b"small", "photos/s 1.jpg"), self._sent_file(data, "photos/l 1.jpg")
        sizes = [
            {**_described(one), "width": side, "height": side} for one, side in ((small, 90), (large, 800))
        ]
        return self.say(None, photo=sizes, **({"caption": caption} if caption is not None else {}), **more)

    def send_file(
        self,
        kind: str,
        data: bytes,
        *,
        size: int | None = None,
        name: str = "",
        media_type: str = "",
        **more: Any,
    ) -> int:
        """A person sends a file of this kind: ``document``, ``voice`` or ``audio``; return the id of the update."""
        sent = _described(self._sent_file(data, f"{kind}/{name or 'file'}", size))
        sent |= {"duration": 1} if kind in ("voice", "audio") else {}
        sent |= {key: text for key, text in (("file_name", name), ("mime_type", media_type)) if text}
        return self.say(None, **{kind: sent}, **more)

    def _sent_file(self, data: bytes, path: str, size: int | None = None) -> SentFile:
        id = f"file-{len(self.files)}"
        self.files[id] = SentFile(id, data, len(data) if size is None else size, f"{len(self.files)}/{path}")
        return self.files[id]

    def press(self, data: str, *, user: int = OWNER) -> str:
        """A person presses a button with this data; return the id of the press."""
        query = f"press-{len(self.updates)}"
        chat = {"id": user, "type": "private", "first_name": "Ada"}
        message = {"message_id": 1, "date": 1_700_000_000, "chat": chat, "text": "?"}
        sender = {"id": user, "is_bot": False, "first_name": "Ada"}
        self._update({"callback_query": {
            "id": query, "from": sender, "chat_instance": "1", "data": data, "message": message,
        }})  # fmt: skip
        return query

    def migrate(self, chat: int, to: int) -> None:
        """A group becomes a supergroup."""
        self.migrated[chat] = to
        message = {"message_id": self._next_id(chat), "date": 1_700_000_000, "migrate_to_chat_id": to}
        self._update({"message": {**message, "chat": {"id": chat, "type": "group", "title": "group"}}})

    def repeat(self) -> None:
        """Deliver every update again, as Telegram does when a confirmation was lost."""
        self.confirmed = 0
        self._tell()

    async def wait_for_confirmation(self) -> None:
        """Wait until every update is confirmed."""
        while self._unconfirmed():
            news = self._news
            await news.wait()

    def seen(self, chat: int = OWNER) -> list[str]:
        """Return what the bot shows in a chat, the oldest first: texts, and files by their kind and name."""
        return [one.file or one.text for one in self.shown(chat)]

    def shown(self, chat: int = OWNER) -> list[Shown]:
        """Return the messages of the bot in a chat, the oldest first."""
        return [one for (where, _), one in sorted(self.messages.items()) if where == chat and one.own]

    # Telegram ---------------------------------------------------------------------------------------------------

    def _update(self, content: dict[str, Any]) -> int:
        id = 500 + len(self.updates)
        self.updates.append({"update_id": id, **content})
        self._tell()
        return id

    def close(self) -> None:
        """End the polls that wait."""
        self._poll = -1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def _next_id(self, chat: int) -> int:
        numbering = str(chat) if str(chat).startswith("-100") else "account"
        self._ids[numbering] += 1
        return self._ids[numbering]

    async def handle(self, request: Request) -> Response:
        """Answer a request as Telegram does."""
        method = request.path_params["method"]
        if request.path_params["token"] != f"bot{TOKEN}":
            return _failure(401, "Unauthorized")
        self.calls.append(method)
        form: dict[str, str] = {}
        uploads: dict[str, tuple[str, bytes]] = {}
        for key, value in (await request.form()).items():
            if isinstance(value, UploadFile):
                uploads[key] = (value.filename or "", await value.read())
            else:
                form[key] = value
        if (replaced := self.faults.begin(method)) is not None:
            return JSONResponse(replaced[1], replaced[0])
        answer = await self._answer(method, form, uploads, request)
        return _Broken() if self.faults.end(method) else answer

    async def download(self, request: Request) -> Response:
        """Return a file as Telegram does, by the path that ``getFile`` returned."""
        if request.path_params["token"] != f"bot{TOKEN}":
            return _failure(401, "Unauthorized")
        path = request.path_params["path"]
        self.downloads.append(path)
        if (replaced := self.faults.begin("download")) is not None:
            return JSONResponse(replaced[1], replaced[0])
        found = next((file for file in self.files.values() if file.path == path), None)
        return Response(found.data) if found is not None else _failure(404, "Not Found")

    def _get_file(self, form: dict[str, str]) -> Response:
        file = self.files.get(form["file_id"])
        if file is None:
            return _failure(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if file.size > DOWNLOAD_LIMIT:
            return _failure(400, "Bad Request: file is too big")
        return _success({**_described(file), "file_path": file.path})

    async def _answer(
        self, method: str, form: dict[str, str], uploads: dict[str, tuple[str, bytes]], request: Request
    ) -> Response:
        match method:
            case "sendPhoto" | "sendDocument":
                kind = method.removeprefix("send").lower()
                return self._send_file(kind, form, *uploads.get(kind, ("", b"")))
            case "sendLocation":
                place = f"place {float(form['latitude']):g}, {float(form['longitude']):g}"
                return self._add(form, Shown(int(form["chat_id"]), 0, "", [], {}, file=place))
            case "editMessageReplyMarkup":
                return self._edit_markup(form)
            case "getMe":
                return _success(BOT)
            case "getUpdates":
                return await self._get_updates(form, request)
            case "sendMessage":
                return self._send(form)
            case "editMessageText":
                return self._edit(form)
            case "deleteMessage":
                found = self.messages.pop((int(form["chat_id"]), int(form["message_id"])), None)
                return _success(True) if found else _failure(400, "Bad Request: message to delete not found")
            case "answerCallbackQuery":
                self.pressed[form["callback_query_id"]] = form.get("text", "")
                return _success(True)
            case "getFile":
                return self._get_file(form)
            case "setMyCommands":
                self.commands = json.loads(form["commands"])
                return _success(True)
            case "deleteWebhook":
                self.webhook = {}
                return _success(True)
            case "setWebhook":
                if not form["url"].startswith("https://") or "refused" in form["url"]:
                    return _failure(400, "Bad Request: bad webhook: HTTPS url must be provided for webhook")
                self.webhook = form
                return _success(True)
            case "getWebhookInfo":
                about = {"pending_update_count": len(self._unconfirmed()), "last_error_message": self.problem}
                return _success(
                    {"url": self.webhook.get("url", ""), "has_custom_certificate": False, **about}
                )
            case "sendChatAction":
                return _success(True)
            case _:
                return _failure(404, "Not Found")

    async def deliver(self) -> None:
        """Send updates to the webhook one after another, each until it is confirmed, through the proxy."""
        async with httpx.AsyncClient(timeout=60) as http:
            while True:
                news, waiting, proxy = self._news, self._unconfirmed(), self.proxy()
                if not self.webhook or not waiting or not proxy:
                    with anyio.move_on_after(0.05):
                        await news.wait()
                    continue
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook["secret_token"]}
                try:
                    answer = await http.post(f"{proxy}/telegram", json=waiting[0], headers=headers)
                except httpx.HTTPError as error:
                    self.problem = str(error)
                    await anyio.sleep(0.05)
                    continue
                self.problem = (
                    "" if answer.is_success else f"Wrong response from the webhook: {answer.status_code}"
                )
                if answer.is_success:
                    self.confirmed = waiting[0]["update_id"] + 1
                else:
                    await anyio.sleep(0.05)

    async def _get_updates(self, form: dict[str, str], request: Request) -> Response:
        if self.webhook:
            return _failure(409, "Conflict: can't use getUpdates method while webhook is active")
        self._poll += 1
        mine = self._poll
        self.confirmed = max(self.confirmed, int(form.get("offset", 0)))
        self._tell()  # ends the poll of another program
        with anyio.move_on_after(float(form.get("timeout", 0))):
            while not self._unconfirmed():
                news = self._news
                await news.wait()
                if mine != self._poll:
                    return _failure(*CONFLICT)
        return _success(self._unconfirmed())

    def _unconfirmed(self) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["update_id"] >= self.confirmed][:100]

    def _send(self, form: dict[str, str]) -> Response:
        return _problem(form) or self._add(form, Shown(int(form["chat_id"]), 0, *_content(form)))

    def _send_file(self, kind: str, form: dict[str, str], name: str, data: bytes) -> Response:
        limit = UPLOAD_LIMITS[kind]
        if kind == "document" and len(data) > limit:
            return _failure(413, "Request Entity Too Large")
        if len(data) > limit:
            sizes = (
                f"file of size {len(data)} bytes is too big for a photo; the maximum size is {limit} bytes"
            )
            return _failure(400, f"Bad Request: {sizes}")
        if not data:
            return _failure(400, "Bad Request: file must be non-empty")
        if kind == "photo" and not data.startswith(PHOTO_STARTS):
            return _failure(400, "Bad Request: IMAGE_PROCESS_FAILED")
        shown = Shown(int(form["chat_id"]), 0, "", [], {}, file=f"{kind} {name}", data=data)
        return self._add(form, shown)

    def _add(self, form: dict[str, str], shown: Shown) -> Response:
        """Show a message, as an answer and in a topic if the form says so."""
        problem = self._refusal(shown.chat)
        if problem is not None:
            return problem
        if "reply_parameters" in form:
            shown.reply_to = json.loads(form["reply_parameters"])["message_id"]
        if "message_thread_id" in form:
            shown.thread = int(form["message_thread_id"])
        shown.id = self._next_id(shown.chat)
        self.messages[shown.chat, shown.id] = shown
        return _success(_message(shown))

    def _edit_markup(self, form: dict[str, str]) -> Response:
        chat, id = int(form["chat_id"]), int(form["message_id"])
        shown = self.messages.get((chat, id))
        problem = self._refusal(chat) or _not_editable(shown)
        if problem is not None or shown is None:
            return problem or _failure(400, "Bad Request")
        markup = json.loads(form.get("reply_markup", "{}"))
        if shown.markup == markup:
            return _failure(400, NOT_MODIFIED)
        shown.markup = markup
        return _success(_message(shown))

    def _edit(self, form: dict[str, str]) -> Response:
        chat, id = int(form["chat_id"]), int(form["message_id"])
        problem = self._refusal(chat) or _problem(form)
        if problem is not None:
            return problem
        shown = self.messages.get((chat, id))
        problem = _not_editable(shown)
        if problem is not None or shown is None:
            return problem or _failure(400, "Bad Request")
        if shown.file:
            return _failure(400, "Bad Request: there is no text in the message to edit")
        if (shown.text, shown.entities, shown.markup) == _content(form):
            return _failure(400, NOT_MODIFIED)
        shown.text, shown.entities, shown.markup = _content(form)
        shown.versions += 1
        return _success(_message(shown))

    def _refusal(self, chat: int) -> Response | None:
        if chat in self.migrated:
            return _failure(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                {"migrate_to_chat_id": self.migrated[chat]},
            )
        if chat in self.blocked:
            return _failure(403, "Forbidden: bot was blocked by the user")
        if chat > 0 and chat not in self.started:
            return _failure(400, "Bad Request: chat not found")
        return None


class _Broken(Response):
    """The beginning of an answer, after which the connection is closed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"100")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})


def _content(form: dict[str, str]) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    return form["text"], json.loads(form.get("entities", "[]")), json.loads(form.get("reply_markup", "{}"))


def _problem(form: dict[str, str]) -> Response | None:
    text, entities, markup = _content(form)
    units = len(text.encode("utf-16-le")) // 2
    if not text.strip():
        return _failure(400, "Bad Request: message text is empty")
    if units > 4096:
        return _failure(400, "Bad Request: message is too long")
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        cut = text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "replace")
        if not 0 <= start < end <= units or "\ufffd" in cut:
            return _failure(400, "Bad Request: ENTITY_BOUNDS_INVALID")
    for row in markup.get("inline_keyboard", []):
        for button in row:
            if not button["text"] or not 1 <= len(button["callback_data"].encode()) <= 64:
                return _failure(400, "Bad Request: BUTTON_DATA_INVALID")
    return None


def _not_editable(shown: Shown | None) -> Response | None:
    if shown is None:
        return _failure(400, "Bad Request: message to edit not found")
    return None if shown.own else _failure(400, "Bad Request: message can't be edited")


def _message(shown: Shown) -> dict[str, Any]:
    chat = {"id": shown.chat, "type": "private" if shown.chat > 0 else "supergroup", "title": "group"}
    message = {"message_id": shown.id, "date": 1_700_000_000, "chat": chat, "from": BOT}
    return message if shown.file else {**message, "text": shown.text}


def _described(file: SentFile) -> dict[str, Any]:
    return {"file_id": file.id, "file_unique_id": f"unique-{file.id}", "file_size": file.size}


def _success(result: object) -> Response:
    return JSONResponse({"ok": True, "result": result})


def _failure(code: int, description: str, parameters: dict[str, Any] | None = None) -> Response:
    return JSONResponse(failure(code, description, parameters)[1], code)


def failure(code: int, description: str, parameters: dict[str, Any] | None = None) -> Answer:
    """Return an error as the Bot API words it."""
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    return code, body | ({"parameters": parameters} if parameters else {})


@asynccontextmanager
async def bot_api_server() -> AsyncIterator[BotApiServer]:
    """Run a server on a free port."""
    server = BotApiServer()
    routes = [
        Route("/file/{token}/{path:path}", server.download, methods=["GET"]),
        Route("/{token}/{method}", server.handle, methods=["POST", "GET"]),
    ]
    async with scripted_address(Starlette(routes=routes)) as server.url, anyio.create_task_group() as tasks:
        tasks.start_soon(server.deliver)
        try:
            yield server
        finally:
            server.close()
            tasks.cancel_scope.cancel()
