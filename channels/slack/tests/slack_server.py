"""A Slack in scripted form, as strict as the real one: Web API and Socket Mode, tokens, limits of texts, blocks and
buttons, confirmations, threads and metadata. It counts what people see. Faults are scripted: an error, a lost answer,
or a call at a moment.
"""

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from trunkline.api.testing import ScriptedFaults

BOT, OWNER, STRANGER = "UBOT", "UOWNER", "USTRANGER"
CHANNEL, PRIVATE, FOREIGN = "C100", "C200", "C300"
BOT_TOKEN, APP_TOKEN = "xoxb-1111-2222-secretofthebotAAAA", "xapp-1-A1-3333-secretoftheapp0000AAAA"
SCOPES = (
    "app_mentions:read,channels:history,channels:read,chat:write,commands,files:write,groups:history,groups:read,"
    "im:history,im:read,im:write"
)


@dataclass
class Shown:
    """A message in a channel, as people see it."""

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    thread: str = ""
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    versions: int = 1

    @property
    def buttons(self) -> dict[str, str]:
        """The words of the buttons by their labels."""
        rows = [one for one in self.blocks if one["type"] == "actions"]
        return {one["text"]["text"]: one["value"] for row in rows for one in row["elements"]}

    @property
    def elements(self) -> list[dict[str, Any]]:
        """The elements of the rich text."""
        return [one for block in self.blocks if block["type"] == "rich_text" for one in block["elements"]]


class SlackServer:
    """The server. ``faults`` are used up one by one; ``calls`` are the methods that were called."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: dict[tuple[str, str], Shown] = {}
        self.faults: ScriptedFaults[tuple[int, str]] = ScriptedFaults()
        self.calls: list[str] = []
        self.closed_to: set[str] = set()
        self.files: dict[str, tuple[str, bytes]] = {}
        self.signed_out = ""
        self.scopes = SCOPES
        self.said: dict[str, str] = {}
        self.sockets: list[web.WebSocketResponse] = []
        self.connected = 0
        self.unconfirmed: dict[str, dict[str, Any]] = {}
        self.confirmed: list[str] = []
        self.problems: list[str] = []
        self._tickets = 0
        self._last = 0
        self._jobs: set[asyncio.Task[Any]] = set()

    # People -----------------------------------------------------------------------------------------------------

    def say(
        self,
        text: str,
        *,
        user: str = OWNER,
        channel: str = "",
        thread: str = "",
        tell: bool = True,
        **extra: Any,
    ) -> str:
        """A person writes; return the time of the message. Without ``tell`` Slack sends no event."""
        channel = channel or dm_of(user)
        shown = Shown(channel, self._next_ts(), user, text, thread=thread, extra=extra)
        self.messages[channel, shown.ts] = shown
        if tell:
            self._tell_message(shown)
        return shown.ts

    def _tell_message(self, shown: Shown) -> None:
        is_private = shown.channel.startswith("D")
        event = {**self.listed(shown), "channel": shown.channel}
        if is_private:
            self._send("events_api", {"event": {**event, "channel_type": "im"}})
        elif f"<@{BOT}>" in shown.text:
            self._send("events_api", {"event": {**event, "type": "app_mention"}})

    def press(self, words: str, *, user: str = OWNER) -> str:
        """A person presses a button with these words; return the id of the press."""
        id = self._next_ts().replace(".", "")
        self._send("interactive", {
            "type": "block_actions", "user": {"id": user}, "channel": {"id": dm_of(user)}, "trigger_id": id,
            "response_url": self._reply_url(id),
            "actions": [{"type": "button", "value": words, "action_id": "button-0", "action_ts": id}],
        })  # fmt: skip
        return id

    def command(self, text: str, *, user: str = OWNER, channel: str = "") -> str:
        """A person gives the slash command; return the id of the command."""
        id = self._next_ts().replace(".", "")
        self._send("slash_commands", {
            "command": "/trunkline", "text": text, "user_id": user, "channel_id": channel or dm_of(user),
            "trigger_id": id, "response_url": self._reply_url(id),
        })  # fmt: skip
        return id

    def seen(self, channel: str = "") -> list[str]:
        """Return what the bot shows in a channel, the oldest first."""
        return [one.text for one in self.shown(channel)]

    def shown(self, channel: str = "") -> list[Shown]:
        """Return the messages of the bot in a channel, the oldest first."""
        channel = channel or dm_of(OWNER)
        found = [one for one in self.messages.values() if one.channel == channel and one.user == BOT]
        return sorted(found, key=lambda one: float(one.ts))

    def repeat(self) -> None:
        """Send every message of people again, as Slack does when a confirmation was late."""
        for shown in list(self.messages.values()):
            if shown.user != BOT:
                self._tell_message(shown)

    def refresh(self) -> None:
        """Ask the client to connect again, as Slack does every few hours."""
        for one in self.sockets:
            self._start(one.send_str(json.dumps({"type": "disconnect", "reason": "refresh_requested"})))

    def disconnect(self) -> None:
        """Close every connection."""
        for one in self.sockets:
            self._start(one.close())
        self.sockets = []

    # Socket Mode ------------------------------------------------------------------------------------------------

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection, and send again what was not confirmed on the former one."""
        if request.query.get("ticket") != str(self._tickets):
            return web.Response(status=404)
        self._tickets += 1  # an address is good for one connection
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        self.connected += 1
        await ws.send_str(json.dumps({"type": "hello", "num_connections": 1}))
        self.sockets.append(ws)
        for envelope in list(self.unconfirmed.values()):
            await ws.send_str(json.dumps({**envelope, "retry_attempt": 1, "retry_reason": "timeout"}))
        async for frame in ws:
            if frame.type is WSMsgType.TEXT:
                id = json.loads(frame.data)["envelope_id"]
                if self.unconfirmed.pop(id, None) is None:
                    self.problems.append(f"{id} is confirmed twice, or unknown")
                self.confirmed.append(id)
        with suppress(ValueError):
            self.sockets.remove(ws)
        return ws

    def _send(self, kind: str, payload: dict[str, Any]) -> None:
        id = f"envelope-{self._next_ts()}"
        envelope = {"type": kind, "envelope_id": id, "payload": payload, "accepts_response_payload": True}
        if kind == "events_api" or self.sockets:  # a press is lost while nothing is connected
            self.unconfirmed[id] = envelope
        if self.sockets:
            self._start(self._push(self.sockets[-1], envelope))

    async def _push(self, ws: web.WebSocketResponse, envelope: dict[str, Any]) -> None:
        with suppress(ConnectionError):  # the client has gone; the next connection gets it
            if not ws.closed:
                await ws.send_str(json.dumps(envelope))

    def _start(self, job: Any) -> None:
        task = asyncio.ensure_future(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def reply(self, request: web.Request) -> web.Response:
        """Take what an app says about a press or a command."""
        body = await request.json()
        if body.get("response_type") != "ephemeral" or body.get("replace_original") is not False:
            self.problems.append(f"reply {body}")
        self.said[request.match_info["id"]] = body["text"]
        return web.Response(text="ok")

    # Web API ----------------------------------------------------------------------------------------------------

    async def call(self, request: web.Request) -> web.Response:
        """Serve one method, and let faults happen."""
        method = request.match_info["method"]
        self.calls.append(method)
        asked: dict[str, Any] = {**request.query}
        if request.content_type == "application/json":
            asked |= await request.json()
        else:
            asked |= {**await request.post()}
        if "token" in asked:
            self.problems.append("a token in an address or a body")
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {token}":
            return refused("invalid_auth")
        if self.signed_out:
            return refused(self.signed_out)
        if (replaced := self.faults.begin(method)) is not None:
            status, word = replaced
            return refused(word, status, {"Retry-After": "0"} if status == 429 else {})
        methods: dict[str, Callable[[dict[str, Any]], web.Response]] = {
            "auth.test": self._auth_test, "apps.connections.open": self._open_connection,
            "conversations.open": self._open_dm, "users.conversations": self._channels,
            "conversations.history": self._history, "conversations.replies": self._replies,
            "files.getUploadURLExternal": self._reserve, "files.completeUploadExternal": self._share,
            "chat.postMessage": self._post, "chat.update": self._update, "chat.delete": self._delete,
        }  # fmt: skip
        answer = methods[method](asked) if method in methods else refused("unknown_method")
        if self.faults.end(method) and request.transport is not None:
            request.transport.close()
        return answer

    def _auth_test(self, asked: dict[str, Any]) -> web.Response:
        return good({"user_id": BOT, "team_id": "T1", "bot_id": "B1"}, {"x-oauth-scopes": self.scopes})

    def _open_connection(self, asked: dict[str, Any]) -> web.Response:
        self._tickets += 1
        address = self.url.replace("http", "ws", 1).removesuffix("/api/")
        return good({"url": f"{address}/socket?ticket={self._tickets}"})

    def _open_dm(self, asked: dict[str, Any]) -> web.Response:
        if asked["users"] not in (OWNER, STRANGER):
            return refused("user_not_found")
        return good({"channel": {"id": dm_of(asked["users"])}})

    def _channels(self, asked: dict[str, Any]) -> web.Response:
        page = int(asked.get("cursor") or 0)  # one channel in a page
        member = (CHANNEL, PRIVATE)
        more = str(page + 1) if page + 1 < len(member) else ""
        return good({"channels": [{"id": member[page]}], "response_metadata": {"next_cursor": more}})

    def _history(self, asked: dict[str, Any]) -> web.Response:
        found = [one for one in self.messages.values() if one.channel == asked["channel"] and not one.thread]
        return self._list(asked, sorted(found, key=lambda one: -float(one.ts)))

    def _replies(self, asked: dict[str, Any]) -> web.Response:
        parent = self.messages.get((asked["channel"], asked["ts"]))
        if parent is None:
            return refused("thread_not_found")
        found = [one for one in self.messages.values() if one.channel == asked["channel"]]
        replies = sorted((one for one in found if one.thread == parent.ts), key=lambda one: float(one.ts))
        return self._list(asked, [parent, *replies], always=parent)

    def _list(self, asked: dict[str, Any], found: list[Shown], always: Shown | None = None) -> web.Response:
        if asked["channel"] == FOREIGN:
            return refused("not_in_channel")
        oldest, limit = float(asked.get("oldest") or 0), int(asked.get("limit") or 100)
        found = [one for one in found if float(one.ts) > oldest or one is always]
        start = int(asked.get("cursor") or 0)
        more = str(start + limit) if start + limit < len(found) else ""
        with_metadata = str(asked.get("include_all_metadata")).lower() in ("1", "true")
        listed = [self.listed(one, with_metadata=with_metadata) for one in found[start : start + limit]]
        return good({"messages": listed, "has_more": bool(more), "response_metadata": {"next_cursor": more}})

    def _post(self, asked: dict[str, Any]) -> web.Response:
        channel, thread = asked["channel"], asked.get("thread_ts", "")
        problem = self._problem(asked)
        if channel == FOREIGN:
            problem = "not_in_channel"
        if channel in {dm_of(user) for user in self.closed_to}:
            problem = "messages_tab_disabled"
        if thread and (channel, thread) not in self.messages:
            problem = "thread_not_found"
        if problem:
            return refused(problem)
        metadata = asked.get("metadata")
        if metadata is not None and isinstance(metadata, str):
            metadata = json.loads(metadata)
        shown = Shown(channel, self._next_ts(), BOT, asked["text"], blocks_of(asked), thread, metadata)
        self.messages[channel, shown.ts] = shown
        return good({"channel": channel, "ts": shown.ts})

    def _reserve(self, asked: dict[str, Any]) -> web.Response:
        if int(asked["length"]) < 1:
            return refused("invalid_arguments")
        id = f"F{len(self.files)}"
        self.files[id] = (asked["filename"], b"")
        return good({"file_id": id, "upload_url": f"{self.url.removesuffix('/api/')}/upload/{id}"})

    async def upload(self, request: web.Request) -> web.Response:
        """Take the content of a file. The address is the credential."""
        if "Authorization" in request.headers:
            self.problems.append("a token at the address of an upload")
        id = request.match_info["id"]
        self.files[id] = (self.files[id][0], await request.read())
        return web.Response(text="OK")

    def _share(self, asked: dict[str, Any]) -> web.Response:
        (file,) = json.loads(asked["files"])
        name, data = self.files[file["id"]]
        if not data:
            return refused("file_not_found")
        shared = {"id": file["id"], "name": name, "title": file["title"]}
        channel, thread = asked["channel_id"], asked.get("thread_ts") or ""
        shown = Shown(channel, self._next_ts(), BOT, "", thread=thread, extra={"files": [shared]})
        self.messages[channel, shown.ts] = shown
        return good({"files": [{"id": file["id"], "title": file["title"]}]})

    def _update(self, asked: dict[str, Any]) -> web.Response:
        shown = self.messages.get((asked["channel"], asked["ts"]))
        if shown is None:
            return refused("message_not_found")
        if shown.user != BOT:
            return refused("cant_update_message")
        problem = self._problem(asked)
        if problem:
            return refused(problem)
        shown.text, shown.blocks = asked["text"], blocks_of(asked)
        shown.versions += 1
        return good({"channel": shown.channel, "ts": shown.ts})

    def _delete(self, asked: dict[str, Any]) -> web.Response:
        known = self.messages.pop((asked["channel"], asked["ts"]), None)
        return good({}) if known is not None else refused("message_not_found")

    def _problem(self, asked: dict[str, Any]) -> str:
        """Return the word with which Slack refuses a message, "" if it does not."""
        text, blocks = asked.get("text", ""), blocks_of(asked)
        if not text.strip() and not blocks:
            return "no_text"
        if len(text) > 4000:
            return "msg_too_long"
        if re.search(r"<[@#!]", text):
            self.problems.append("a message may mention people")
        for block in blocks:
            elements = block["elements"]
            if block["type"] == "rich_text":
                runs = [run for part in elements for run in part["elements"]]
                names = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
                wrong = any(part["type"] not in names or not part["elements"] for part in elements)
                wrong |= any(run["type"] not in ("text", "link") for run in runs)
                wrong |= any(not run.get("text" if run["type"] == "text" else "url") for run in runs)
            else:
                ids = [one["action_id"] for one in elements]
                wrong = block["type"] != "actions" or not 1 <= len(elements) <= 25 or len(ids) != len({*ids})
                wrong |= any(len(one["text"]["text"]) > 75 or len(one["value"]) > 2000 for one in elements)
            if wrong or not elements:
                return "invalid_blocks"
        return ""

    # Messages ---------------------------------------------------------------------------------------------------

    def listed(self, shown: Shown, *, with_metadata: bool = False) -> dict[str, Any]:
        """Return a message as Slack lists it."""
        message: dict[str, Any] = {"type": "message", "user": shown.user, "text": shown.text, "ts": shown.ts}
        replies = [
            one for one in self.messages.values() if (one.channel, one.thread) == (shown.channel, shown.ts)
        ]
        if shown.thread or replies:
            message["thread_ts"] = shown.thread or shown.ts
        if replies:
            message["reply_count"] = len(replies)
        if shown.user == BOT:
            message |= {"bot_id": "B1", "blocks": shown.blocks}
            if with_metadata and shown.metadata:
                message["metadata"] = shown.metadata
        else:
            message["client_msg_id"] = f"client-{shown.ts}"
        return message | shown.extra

    def _next_ts(self) -> str:
        self._last = max(self._last + 1, int(time.time() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06}"

    def _reply_url(self, id: str) -> str:
        return f"{self.url.removesuffix('/api/')}/reply/{id}"


def dm_of(user: str) -> str:
    """Return the channel of a person's direct messages."""
    return f"D{user[1:]}"


def blocks_of(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a call, which may be a list or JSON."""
    blocks = asked.get("blocks") or []
    return json.loads(blocks) if isinstance(blocks, str) else blocks


def good(more: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    """Return an answer to a call that succeeded."""
    return web.json_response({"ok": True, **more}, headers=headers)


def refused(word: str, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Return an error as Slack words it."""
    return web.json_response({"ok": False, "error": word}, status=status, headers=headers)


@asynccontextmanager
async def slack_server() -> AsyncIterator[SlackServer]:
    """Run a server on a free port."""
    server = SlackServer()
    app = web.Application()
    app.add_routes([
        web.get("/socket", server.socket),
        web.post("/reply/{id}", server.reply),
        web.post("/upload/{id}", server.upload),
        web.route("*", "/api/{method}", server.call),
    ])  # fmt: skip
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await web.SockSite(runner, listening).start()
        server.url = f"http://127.0.0.1:{listening.getsockname()[1]}/api/"
        try:
            yield server
        finally:
            server.disconnect()
            await runner.cleanup()
