"""A Discord in scripted form, as strict as the real one: the gateway's protocol, limits of texts, nonces, buttons and
acknowledgements, permissions and rate limits. It counts what people see. Faults are scripted: an error, a lost answer,
or a call at a moment.
"""

import asyncio
import base64
import json
import re
import socket
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from trunkline.api.testing import ScriptedFaults

BOT_ID, APPLICATION, ROLE, OWNER, STRANGER = 4_242_424_242_424_242, 777, 888, 1001, 2002
SERVER, CHANNEL, THREAD, HIDDEN = 9001, 9100, 9200, 9300
TOKEN = f"{base64.urlsafe_b64encode(str(BOT_ID).encode()).decode().rstrip('=')}.AbCdEf.secret-of-the-bot-AAAAAAAAAAAA"
INTENTS = 1 | 1 << 9 | 1 << 12 | 1 << 15
WHEN = "2026-11-28T00:00:00+00:00"
EPOCH = 1_420_070_400_000
NONCE_SECONDS = 180.0


@dataclass
class Shown:
    """A message in a channel, as people see it."""

    channel: int
    id: int
    author: int
    text: str
    components: list[dict[str, Any]] = field(default_factory=list)
    reply_to: int | None = None
    nonce: str | None = None
    mentions: list[int] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    versions: int = 1
    file: tuple[str, bytes] | None = None

    @property
    def buttons(self) -> dict[str, str]:
        """The words of the buttons by their labels."""
        return {one["label"]: one["custom_id"] for row in self.components for one in row["components"]}


@dataclass
class GatewaySession:
    """A session of the gateway: its events, and the connection that it has now."""

    id: str
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    socket: "Connection | None" = None


class Connection:
    """A connection, whose messages are parts of one zlib stream."""

    def __init__(self, ws: web.WebSocketResponse) -> None:
        self.ws = ws
        self._zlib = zlib.compressobj()

    async def send(self, op: int, data: object, name: str | None = None, number: int | None = None) -> None:
        payload = json.dumps({"op": op, "d": data, "t": name, "s": number}).encode()
        frame = self._zlib.compress(payload) + self._zlib.flush(zlib.Z_SYNC_FLUSH)
        with suppress(ConnectionError):  # the client has gone; a resumed session gets the event again
            if not self.ws.closed:
                await self.ws.send_bytes(frame)


class DiscordServer:
    """The server. ``faults`` are used up one by one; ``calls`` are the routes that were called."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: dict[int, Shown] = {}
        self.faults: ScriptedFaults[tuple[int, dict[str, Any]]] = ScriptedFaults()
        self.calls: list[str] = []
        self.files: dict[str, bytes] = {}
        self.commands: list[dict[str, Any]] = []
        self.closed_to: set[int] = set()
        self.intents_permitted = True
        self.said: dict[str, str] = {}
        self.acknowledged: dict[str, float] = {}
        self.sessions: dict[str, GatewaySession] = {}
        self.identified = 0
        self.resumed = 0
        self.problems: list[str] = []
        self._asked: dict[str, float] = {}
        self._last_id = 0
        self._jobs: set[asyncio.Task[None]] = set()

    # People -----------------------------------------------------------------------------------------------------

    def say(
        self, text: str, *, user: int = OWNER, channel: int | None = None, tell: bool = True, **extra: Any
    ) -> int:
        """A person writes; return the id of the message. Without ``tell`` the gateway keeps it to itself."""
        channel = dm_of(user) if channel is None else channel
        mentions = [int(id) for id in re.findall(r"<@!?(\d+)>", text)]
        shown = Shown(channel, self._next_id(), user, text, mentions=mentions, extra=extra)
        self.messages[shown.id] = shown
        if tell:
            self._tell("MESSAGE_CREATE", self._with_server(shown))
        return shown.id

    def attachment(self, name: str, media_type: str, data: bytes | None, size: int = 1) -> dict[str, Any]:
        """Return a file as a message has it; without data, Discord no longer has it."""
        if data is not None:
            self.files[name] = data
        url = f"{self.url.removesuffix('/api/v10')}/files/{name}"
        return {
            "id": "1", "filename": name, "size": size, "url": url, "proxy_url": url, "content_type": media_type,
        }  # fmt: skip

    def press(self, words: str, *, user: int = OWNER) -> str:
        """A person presses a button with these words; return the token of the interaction."""
        data = {"custom_id": words, "component_type": 2, "id": 1}
        shown = next(iter(self.messages.values()), Shown(dm_of(user), 1, BOT_ID, "?"))
        return self._interact(3, data, user, dm_of(user), message=self._message(shown))

    def command(self, name: str, words: str = "", *, user: int = OWNER, channel: int | None = None) -> str:
        """A person gives a slash command; return the token of the interaction."""
        options = [{"type": 3, "name": "words", "value": words}] if words else []
        data = {"id": "77", "name": name, "type": 1, "options": options}
        return self._interact(2, data, user, dm_of(user) if channel is None else channel)

    def seen(self, channel: int | None = None) -> list[str]:
        """Return what the bot shows in a channel, the oldest first."""
        return [one.text for one in self.shown(channel)]

    def shown(self, channel: int | None = None) -> list[Shown]:
        """Return the messages of the bot in a channel, the oldest first."""
        channel = dm_of(OWNER) if channel is None else channel
        found = [one for one in self.messages.values() if one.channel == channel and one.author == BOT_ID]
        return sorted(found, key=lambda one: one.id)

    def disconnect(self, code: int = 4000, *, forget: bool = False) -> None:
        """Close every connection; with ``forget`` no session can be resumed."""
        for session in self.sessions.values():
            if session.socket is not None:
                self._start(session.socket.ws.close(code=code))
                session.socket = None
        if forget:
            self.sessions.clear()

    def repeat(self) -> None:
        """Send every message of people again, as Discord may after a resumed session."""
        for shown in list(self.messages.values()):
            if shown.author != BOT_ID:
                self._tell("MESSAGE_CREATE", self._with_server(shown))

    # Gateway ----------------------------------------------------------------------------------------------------

    async def gateway(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection."""
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        if request.query.get("v") != "10" or request.query.get("compress") != "zlib-stream":
            await ws.close(code=4012)
            return ws
        connection = Connection(ws)
        await connection.send(10, {"heartbeat_interval": 500})
        session: GatewaySession | None = None
        async for frame in ws:
            if frame.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            payload = json.loads(frame.data)
            data = payload["d"]
            match payload["op"]:
                case 1:
                    await connection.send(11, None)
                case 2 if session is not None:
                    await ws.close(code=4005)
                case 2:
                    session = await self._identify(connection, data)
                case 6:
                    session = await self._resume(connection, data)
                case 3 | 4:
                    pass
                case _:
                    await ws.close(code=4001 if session else 4003)
        return ws

    async def _identify(self, connection: Connection, data: dict[str, Any]) -> GatewaySession | None:
        if data["token"] != TOKEN:
            await connection.ws.close(code=4004)
            return None
        if not self.intents_permitted and data["intents"] & (1 << 15):
            await connection.ws.close(code=4014)
            return None
        if data["intents"] != INTENTS:
            self.problems.append(f"intents {data['intents']}")
        self.identified += 1
        session = GatewaySession(f"session-{self.identified}", socket=connection)
        self.sessions = {session.id: session}
        self._dispatch(session, "READY", {
            "v": 10, "user": {**user_of(BOT_ID), "mfa_enabled": False, "flags": 0}, "session_id": session.id,
            "resume_gateway_url": self._gateway_url, "guilds": [{"id": str(SERVER), "unavailable": True}],
            "application": {"id": str(APPLICATION), "flags": 0}, "shard": [0, 1],
        })  # fmt: skip
        newest = {id: self._newest(id) for id in (CHANNEL, THREAD, HIDDEN)}
        self._dispatch(session, "GUILD_CREATE", {
            "id": str(SERVER), "name": "server", "unavailable": False,
            "roles": [{"id": "1"}, {"id": str(ROLE), "tags": {"bot_id": str(BOT_ID)}}],
            "channels": [
                {"id": str(CHANNEL), "type": 0, "last_message_id": newest[CHANNEL]},
                {"id": str(HIDDEN), "type": 0, "last_message_id": newest[HIDDEN]},
                {"id": "9400", "type": 4},
            ],
            "threads": [{"id": str(THREAD), "type": 11, "last_message_id": newest[THREAD]}],
        })  # fmt: skip
        return session

    async def _resume(self, connection: Connection, data: dict[str, Any]) -> GatewaySession | None:
        session = self.sessions.get(data["session_id"])
        if data["token"] != TOKEN or session is None:
            await connection.send(9, False)
            return None
        self.resumed += 1
        for number, (name, event) in enumerate(session.events[data["seq"] :], data["seq"] + 1):
            await connection.send(0, event, name, number)
        session.socket = connection
        self._dispatch(session, "RESUMED", {})
        return session

    def _tell(self, name: str, event: dict[str, Any]) -> None:
        for session in self.sessions.values():
            self._dispatch(session, name, event)

    def _dispatch(self, session: GatewaySession, name: str, event: dict[str, Any]) -> None:
        session.events.append((name, event))
        if session.socket is not None:
            self._start(session.socket.send(0, event, name, len(session.events)))

    def _start(self, job: Any) -> None:
        task = asyncio.ensure_future(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    def _interact(self, kind: int, data: dict[str, Any], user: int, channel: int, **more: Any) -> str:
        id = self._next_id()
        token = f"interaction-{id}"
        self._asked[token] = time.monotonic()
        self._tell("INTERACTION_CREATE", {
            "id": str(id), "application_id": str(APPLICATION), "type": kind, "data": data, "token": token, "version": 1,
            "user": user_of(user), "channel": {"id": str(channel), "type": 1}, "channel_id": str(channel),
            "locale": "en-US", "app_permissions": "0", "entitlements": [], "context": 1,
            "authorizing_integration_owners": {"0": "0"}, "attachment_size_limit": 0, **more,
        })  # fmt: skip
        return token

    # REST -------------------------------------------------------------------------------------------------------

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Check the token, and let faults happen."""
        if request.path.startswith(("/gateway", "/files/")):
            return await handler(request)  # type: ignore[no-any-return]
        resource = request.match_info.route.resource
        route = (
            f"{request.method} {resource.canonical.removeprefix('/api/v10') if resource else request.path}"
        )
        self.calls.append(route)
        open_to_all = "{token}" in route
        if not open_to_all and request.headers.get("Authorization") != f"Bot {TOKEN}":
            return web.json_response({"message": "401: Unauthorized", "code": 0}, status=401)
        if (replaced := self.faults.begin(route)) is not None:
            status, body = replaced
            headers = {}
            if status == 429:
                after = str(body["retry_after"])
                headers = {
                    "Retry-After": after, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": after,
                    "X-RateLimit-Limit": "5", "X-RateLimit-Bucket": "b", "X-RateLimit-Scope": "user",
                    "X-RateLimit-Reset": str(time.time() + body["retry_after"]), "Via": "1.1 google",
                }  # fmt: skip
            return web.json_response(body, status=status, headers=headers)
        answer: web.StreamResponse = await handler(request)
        if self.faults.end(route) and request.transport is not None:
            request.transport.close()
        return answer

    async def gateway_bot(self, request: web.Request) -> web.Response:
        limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
        return web.json_response({"url": self._gateway_url, "shards": 1, "session_start_limit": limit})

    async def open_dm(self, request: web.Request) -> web.Response:
        user = int((await request.json())["recipient_id"])
        if user in self.closed_to:
            return failure(400, 50033, "Invalid Recipient(s)")
        return web.json_response(
            {"id": str(dm_of(user)), "type": 1, "last_message_id": None, "recipients": [user_of(user)]}
        )

    async def get_commands(self, request: web.Request) -> web.Response:
        if request.match_info["application"] != str(APPLICATION):
            return failure(404, 10002, "Unknown Application")
        return web.json_response(self.commands)

    async def put_commands(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        for one in wanted:
            if not re.fullmatch(r"[a-z_-]{1,32}", one["name"]) or not 1 <= len(one["description"]) <= 100:
                return failure(400, 50035, "Invalid Form Body")
        more = {
            "application_id": str(APPLICATION),
            "default_member_permissions": None,
            "version": "1",
            "type": 1,
        }
        self.commands = [{**one, **more, "id": str(number)} for number, one in enumerate(wanted, 1)]
        return web.json_response(self.commands)

    async def list_messages(self, request: web.Request) -> web.Response:
        channel = int(request.match_info["channel"])
        if channel == HIDDEN:
            return failure(403, 50001, "Missing Access")
        after, limit = int(request.query.get("after", 0)), int(request.query.get("limit", 50))
        found = [self.messages[id] for id in sorted(self.messages) if id > after]
        found = [one for one in found if one.channel == channel][:limit]
        listed = [{**self._message(one), "nonce": None} for one in reversed(found)]
        for one in listed:
            del one["nonce"]  # Discord need not say it here
        return web.json_response(listed)

    async def create_message(self, request: web.Request) -> web.Response:
        channel = int(request.match_info["channel"])
        body, file = await sent_message(request)
        problem = self._refusal(channel) or self._problem(body, file)
        if problem is not None:
            return problem
        nonce = body.get("nonce")
        if nonce is not None and body.get("enforce_nonce"):
            since = self._id_at(time.time() - NONCE_SECONDS)
            for known in self.messages.values():
                if known.nonce == nonce and known.author == BOT_ID and known.id > since:
                    return web.json_response(self._message(known))
        reply = body.get("message_reference")
        shown = Shown(
            channel,
            self._next_id(),
            BOT_ID,
            body.get("content") or "",
            body.get("components") or [],
            file=file,
            reply_to=int(reply["message_id"]) if reply else None,
            nonce=nonce,
        )
        self.messages[shown.id] = shown
        self._tell("MESSAGE_CREATE", self._with_server(shown))
        return web.json_response(self._message(shown))

    async def edit_message(self, request: web.Request) -> web.Response:
        body = await request.json()
        shown = self.messages.get(int(request.match_info["message"]))
        problem = self._refusal(int(request.match_info["channel"])) or self._problem(body)
        if problem is not None:
            return problem
        if shown is None:
            return failure(404, 10008, "Unknown Message")
        if shown.author != BOT_ID:
            return failure(403, 50005, "Cannot edit a message authored by another user")
        shown.text, shown.components = body["content"], body.get("components", [])
        shown.versions += 1
        return web.json_response(self._message(shown))

    async def delete_message(self, request: web.Request) -> web.Response:
        if self.messages.pop(int(request.match_info["message"]), None) is None:
            return failure(404, 10008, "Unknown Message")
        return web.Response(status=204)

    async def file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["name"])
        return web.Response(body=data) if data is not None else failure(404, 0, "Not Found")

    async def typing(self, request: web.Request) -> web.Response:
        return web.Response(status=204)

    async def respond(self, request: web.Request) -> web.Response:
        token, body = request.match_info["token"], await request.json()
        if token not in self._asked or time.monotonic() > self._asked[token] + 3:
            return failure(404, 10062, "Unknown interaction")
        if token in self.acknowledged:
            return failure(400, 40060, "Interaction has already been acknowledged.")
        if body["type"] not in (4, 5) or body["data"].get("flags") != 64:
            self.problems.append(f"response {body}")
        self.acknowledged[token] = time.monotonic() - self._asked[token]
        if body["type"] == 4:
            self.said[token] = body["data"]["content"]
        if request.query.get("with_response", "").lower() != "true":
            return web.Response(status=204)
        return web.json_response({"interaction": {"id": request.match_info["interaction"], "type": 2}})

    async def edit_response(self, request: web.Request) -> web.Response:
        token, body = request.match_info["token"], await request.json()
        if token not in self.acknowledged:
            return failure(404, 10015, "Unknown Webhook")
        problem = self._problem(body)
        if problem is not None:
            return problem
        self.said[token] = body["content"]
        shown = Shown(dm_of(OWNER), self._next_id(), BOT_ID, body["content"])
        return web.json_response(self._message(shown))

    def _refusal(self, channel: int) -> web.Response | None:
        if channel in {dm_of(user) for user in self.closed_to}:
            return failure(403, 50007, "Cannot send messages to this user")
        if channel == HIDDEN:
            return failure(403, 50001, "Missing Access")
        return None

    def _problem(self, body: dict[str, Any], file: tuple[str, bytes] | None = None) -> web.Response | None:
        text = body.get("content") or ""
        if file is not None and len(file[1]) > 10 * 1024 * 1024:
            return failure(413, 40005, "Request entity too large")
        if not text.strip() and file is None:
            return failure(400, 50006, "Cannot send an empty message")
        if len(text.encode("utf-16-le")) // 2 > 2000 or len(str(body.get("nonce") or "")) > 25:
            return failure(400, 50035, "Invalid Form Body")
        if body.get("allowed_mentions", {}).get("parse") != []:
            self.problems.append("a message may mention people")
        rows = body.get("components") or []
        buttons = [one for row in rows for one in row["components"]]
        ids = [one["custom_id"] for one in buttons]
        wrong = (
            len(rows) > 5
            or any(row["type"] != 1 or not 1 <= len(row["components"]) <= 5 for row in rows)
            or any(
                not 1 <= len(one["label"]) <= 80 or not 1 <= len(one["custom_id"]) <= 100 for one in buttons
            )
            or len(ids) != len(set(ids))
        )
        return failure(400, 50035, "Invalid Form Body") if wrong else None

    # Messages ---------------------------------------------------------------------------------------------------

    @property
    def _gateway_url(self) -> str:
        return self.url.replace("http", "ws", 1).removesuffix("/api/v10") + "/gateway"

    def _next_id(self) -> int:
        self._last_id = max(self._last_id + 1, self._id_at(time.time()))
        return self._last_id

    def _id_at(self, seconds: float) -> int:
        return (int(seconds * 1000) - EPOCH) << 22

    def _newest(self, channel: int) -> str | None:
        ids = [one.id for one in self.messages.values() if one.channel == channel]
        return str(max(ids)) if ids else None

    def _with_server(self, shown: Shown) -> dict[str, Any]:
        is_private = shown.channel < SERVER
        return self._message(shown) | ({} if is_private else {"guild_id": str(SERVER)})

    def _message(self, shown: Shown) -> dict[str, Any]:
        message: dict[str, Any] = {
            "id": str(shown.id), "channel_id": str(shown.channel), "author": user_of(shown.author),
            "content": shown.text, "timestamp": WHEN, "edited_timestamp": None, "tts": False,
            "mention_everyone": False, "mentions": [user_of(one) for one in shown.mentions], "mention_roles": [],
            "attachments": [], "embeds": [], "pinned": False, "type": 19 if shown.reply_to else 0, "flags": 0,
            "components": [], **shown.extra,
        }  # fmt: skip
        return message | ({"nonce": shown.nonce} if shown.nonce else {})


async def sent_message(request: web.Request) -> tuple[dict[str, Any], tuple[str, bytes] | None]:
    """Return the fields of a message, and the name and content of its file."""
    if request.content_type == "application/json":
        return await request.json(), None
    form = await request.post()
    body, part = json.loads(form["payload_json"]), form["files[0]"]
    assert isinstance(part, web.FileField) and [one["filename"] for one in body["attachments"]] == [
        part.filename
    ]
    return body, (part.filename, part.file.read())


def dm_of(user: int) -> int:
    """Return the channel of a person's direct messages."""
    return 5000 + user % 1000


def user_of(id: int) -> dict[str, Any]:
    """Return a person or the bot, as the API shows them."""
    return {
        "id": str(id), "username": f"user-{id}", "discriminator": "0", "global_name": None, "avatar": None,
        "bot": id == BOT_ID, "public_flags": 0,
    }  # fmt: skip


def failure(status: int, code: int, message: str) -> web.Response:
    """Return an error as Discord words it."""
    return web.json_response({"code": code, "message": message}, status=status)


@asynccontextmanager
async def discord_server() -> AsyncIterator[DiscordServer]:
    """Run a server on a free port."""
    server = DiscordServer()
    app = web.Application(middlewares=[server.guard])
    api, message = "/api/v10", "/channels/{channel}/messages"
    app.add_routes([
        web.get("/gateway", server.gateway),
        web.get("/files/{name}", server.file),
        web.get(f"{api}/gateway/bot", server.gateway_bot),
        web.post(f"{api}/users/@me/channels", server.open_dm),
        web.get(f"{api}/applications/{{application}}/commands", server.get_commands),
        web.put(f"{api}/applications/{{application}}/commands", server.put_commands),
        web.get(f"{api}{message}", server.list_messages),
        web.post(f"{api}{message}", server.create_message),
        web.patch(f"{api}{message}/{{message}}", server.edit_message),
        web.delete(f"{api}{message}/{{message}}", server.delete_message),
        web.post(f"{api}/channels/{{channel}}/typing", server.typing),
        web.post(f"{api}/interactions/{{interaction}}/{{token}}/callback", server.respond),
        web.patch(f"{api}/webhooks/{{application}}/{{token}}/messages/@original", server.edit_response),
    ])  # fmt: skip
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await web.SockSite(runner, listening).start()
        server.url = f"http://127.0.0.1:{listening.getsockname()[1]}{api}"
        try:
            yield server
        finally:
            server.disconnect(1001)
            await runner.cleanup()
