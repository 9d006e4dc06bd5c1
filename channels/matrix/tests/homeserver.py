"""A homeserver in scripted form, as strict as a real one: tokens, memberships, transactions, sync positions, gaps, the
size of events, rate limits and media. It counts what people see. Faults are scripted: an error, a lost answer, or a
call at a moment.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from trunkline.api.testing import ScriptedFaults

BOT, OWNER, STRANGER, THIRD = "@bot:example.org", "@me:example.org", "@who:other.org", "@third:example.org"
TOKEN = "syt_Ym90_secretoftheaccount_0000"
DIRECT, GROUP = "!direct:example.org", "!group:example.org"
LIMIT = 1_000_000
"""Bytes of the largest upload."""


@dataclass
class Room:
    """A room. ``members`` has who is in it or invited."""

    members: dict[str, str] = field(default_factory=dict)
    name: str = ""
    is_encrypted: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    invited_at: int = 0
    joined_at: int = 0


@dataclass
class Shown:
    """A message as people see it."""

    id: str
    sender: str
    content: dict[str, Any]
    versions: int = 1

    @property
    def text(self) -> str:
        """What it says."""
        return str(self.content.get("body", ""))

    @property
    def thread(self) -> str:
        """The message that began its thread."""
        relation = self.content.get("m.relates_to", {})
        return str(relation.get("event_id", "")) if relation.get("rel_type") == "m.thread" else ""


class Refused(Exception):
    """The homeserver refuses a call."""

    def __init__(self, status: int, word: str, **more: Any) -> None:
        super().__init__(word)
        self.response = web.json_response({"errcode": word, "error": "scripted", **more}, status=status)


class Homeserver:
    """The homeserver. ``faults`` are used up one by one; ``calls`` are the names of the calls, and
    ``waiting`` is the number of requests that wait for news.
    """

    def __init__(self) -> None:
        self.url = ""
        self.rooms: dict[str, Room] = {}
        self.faults: ScriptedFaults[tuple[int, dict[str, Any]]] = ScriptedFaults()
        self.calls: list[str] = []
        self.problems: list[str] = []
        self.left: dict[str, str] = {}
        self.media: dict[str, tuple[str, bytes]] = {}
        self.signed_out = ""
        self.user = BOT
        self.remembers_transactions = True
        self.old_media = False
        self.encrypts_new_rooms = False
        self.bucket: list[float] = []
        self.burst, self.seconds = 1_000_000, 0.0
        self.timeline_limit = 100
        self.waiting = 0
        self._transactions: dict[tuple[str, str], str] = {}
        self._position = 0
        self._refused_until: dict[str, float] = {}
        self._news = asyncio.Event()
        self.add_room(DIRECT, BOT, OWNER)
        self.add_room(GROUP, BOT, OWNER, THIRD)

    # People -----------------------------------------------------------------------------------------------------

    def add_room(self, room: str, *members: str, name: str = "", is_encrypted: bool = False) -> None:
        """Make a room with these members."""
        self.rooms[room] = Room(name=name, is_encrypted=is_encrypted)
        for member in members:
            self.change(room, member, "join")

    def invite(
        self,
        room: str,
        inviter: str,
        *others: str,
        name: str = "",
        reason: str = "",
        is_encrypted: bool = False,
    ) -> None:
        """A person makes a room and invites the account."""
        self.add_room(room, inviter, *others, name=name, is_encrypted=is_encrypted)
        self.change(room, BOT, "invite", sender=inviter, reason=reason)

    def change(self, room: str, user: str, membership: str, *, sender: str = "", reason: str = "") -> None:
        """The membership of somebody changes."""
        members = self.rooms[room].members
        was = members.pop(user, "leave")
        if membership in ("join", "invite"):
            members[user] = membership
        content = {"membership": membership, **({"reason": reason} if reason else {})}
        self._add(room, "m.room.member", sender or user, content, state_key=user, unsigned={
            "prev_content": {"membership": was},
        })  # fmt: skip
        if user == BOT and membership == "invite":
            self.rooms[room].invited_at = self._position
        if user == BOT and membership == "join":
            self.rooms[room].joined_at = self._position

    def encrypt(self, room: str) -> None:
        """Somebody switches on encryption."""
        self.rooms[room].is_encrypted = True
        content = {"algorithm": "m.megolm.v1.aes-sha2"}
        self._add(room, "m.room.encryption", OWNER, content, state_key="")

    def say(
        self,
        text: str,
        *,
        user: str = OWNER,
        room: str = DIRECT,
        thread: str = "",
        kind: str = "m.room.message",
        **more: Any,
    ) -> str:
        """A person writes; return the id of the message."""
        content: dict[str, Any] = {"msgtype": "m.text", "body": text, **more}
        if thread:
            content["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread}
        return self._add(room, kind, user, content)

    def react(self, event: str, key: str, *, user: str = OWNER, room: str = DIRECT) -> str:
        """A person reacts to a message."""
        return self._add(
            room,
            "m.reaction",
            user,
            {"m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": key}},
        )

    def remove(self, room: str, event: str) -> None:
        """A person removes a message."""
        for one in self.rooms[room].events:
            if one["event_id"] == event:
                one["content"] = {}

    def shown(self, room: str = DIRECT) -> list[Shown]:
        """Return the messages of the account in a room as people see them, the oldest first."""
        found: dict[str, Shown] = {}
        for event in self.rooms[room].events if room in self.rooms else []:
            content, relation = event["content"], event["content"].get("m.relates_to", {})
            if event["type"] != "m.room.message" or event["sender"] != BOT or not content:
                continue
            if relation.get("rel_type") != "m.replace":
                found[event["event_id"]] = Shown(event["event_id"], BOT, content)
            elif relation["event_id"] in found:
                shown = found[relation["event_id"]]
                shown.content, shown.versions = content["m.new_content"], shown.versions + 1
        return list(found.values())

    def seen(self, room: str = DIRECT) -> list[str]:
        """Return what the account shows in a room, the oldest first."""
        return [one.text for one in self.shown(room)]

    def _add(self, room: str, kind: str, sender: str, content: dict[str, Any], **more: Any) -> str:
        self._position += 1
        id = f"$event{self._position}"
        at = int(time.time() * 1000)
        event = {
            "event_id": id,
            "type": kind,
            "sender": sender,
            "content": content,
            "origin_server_ts": at,
            **more,
        }
        self.rooms[room].events.append({**event, "position": self._position})
        self._news.set()
        self._news = asyncio.Event()
        return id

    # Calls ------------------------------------------------------------------------------------------------------

    async def call(self, request: web.Request) -> web.StreamResponse:
        """Serve one call, and let faults happen."""
        path = [unquote(one) for one in request.rel_url.raw_path.removeprefix("/_matrix/").split("/")]
        body = await request.json() if request.content_type == "application/json" else {}
        name = name_of(path, body)
        self.calls.append(name)
        if "access_token" in request.query:
            self.problems.append("a token in an address")
        try:
            if self.signed_out or request.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Refused(401, self.signed_out or "M_UNKNOWN_TOKEN")
            if (replaced := self.faults.begin(name)) is not None:
                status, problem = replaced
                return web.json_response(problem, status=status)
            answer = await self._serve(name, path, body, request)
        except Refused as refused:
            return refused.response
        if self.faults.end(name) and request.transport is not None:
            request.transport.close()
        return answer

    async def _serve(
        self, name: str, path: list[str], body: dict[str, Any], request: web.Request
    ) -> web.StreamResponse:
        match path[2:] if path[0] == "client" else path:
            case ["account", "whoami"]:
                return web.json_response({"user_id": self.user})
            case ["profile", _, "displayname"]:
                return web.json_response({"displayname": "Agent"})
            case ["sync"]:
                return await self._sync(request.query)
            case ["joined_rooms"]:
                joined = [room for room, one in self.rooms.items() if one.members.get(BOT) == "join"]
                return web.json_response({"joined_rooms": joined})
            case ["createRoom"]:
                return self._create(body)
            case ["rooms", room, *rest]:
                return self._in_room(room, rest, body, request.query)
            case ["media", *rest] if path[0] == "client" and not self.old_media:
                return self._media(rest)
            case ["media", "v3", "upload"]:
                return self._upload(request.query["filename"], request.content_type, await request.read())
            case ["media", "v3", *rest]:
                return self._media(rest)
        raise Refused(404, "M_UNRECOGNIZED")

    def _create(self, body: Mapping[str, Any]) -> web.Response:
        if body.get("preset") != "private_chat" or any(one.endswith("nowhere.org") for one in body["invite"]):
            raise Refused(403, "M_FORBIDDEN")
        room = f"!made{self._position}:example.org"
        self.add_room(room, BOT, name=body.get("name", ""), is_encrypted=self.encrypts_new_rooms)
        for user in body["invite"]:
            self.change(room, user, "invite", sender=BOT)
        return web.json_response({"room_id": room})

    def _in_room(
        self, room: str, rest: list[str], body: dict[str, Any], query: Mapping[str, str]
    ) -> web.Response:
        known = self.rooms.get(room)
        if known is None or BOT not in known.members:
            raise Refused(403, "M_FORBIDDEN")
        if rest == ["join"]:
            self.change(room, BOT, "join")
            return web.json_response({"room_id": room})
        if rest == ["leave"]:
            self.left[room] = body.get("reason", "")
            self.change(room, BOT, "leave")
            return web.json_response({})
        if known.members[BOT] != "join":
            raise Refused(403, "M_FORBIDDEN")
        match rest:
            case ["members"]:
                chunk = [
                    {"type": "m.room.member", "state_key": user, "content": {"membership": membership}}
                    for user, membership in known.members.items()
                ]
                return web.json_response({"chunk": chunk})
            case ["state", "m.room.encryption", ""]:
                if not known.is_encrypted:
                    raise Refused(404, "M_NOT_FOUND")
                return web.json_response({"algorithm": "m.megolm.v1.aes-sha2"})
            case ["messages"]:
                return self._messages(known, query)
            case ["send", "m.room.message", transaction]:
                return web.json_response({"event_id": self._send(room, transaction, body)})
            case ["redact", event, _]:
                self.remove(room, event)
                return web.json_response({"event_id": "$redaction"})
            case ["event", event]:
                found = [one for one in known.events if one["event_id"] == event]
                if not found:
                    raise Refused(404, "M_NOT_FOUND")
                return web.json_response(listed(found[0]))
            case ["typing", _]:
                return web.json_response({})
        raise Refused(404, "M_UNRECOGNIZED")

    def _send(self, room: str, transaction: str, content: dict[str, Any]) -> str:
        known = self._transactions.get((room, transaction))
        if known is not None and self.remembers_transactions:
            return known
        self._limit(transaction)
        if len(json.dumps(content, ensure_ascii=False).encode()) > 65_000:
            raise Refused(413, "M_TOO_LARGE")
        if not isinstance(content.get("body"), str) or not str(content.get("msgtype", "")).startswith("m."):
            raise Refused(400, "M_BAD_JSON")
        for one in (content, content.get("m.new_content", content)):
            if one.get("m.mentions") != {}:
                self.problems.append("a message may mention people")
            if one["msgtype"] == "m.text" and not one["body"].strip():
                self.problems.append("an empty message")
        if self.rooms[room].is_encrypted and "encrypted" not in content["body"]:
            self.problems.append(f"sent to an encrypted room: {content['body']}")
        if (
            content["msgtype"] != "m.text"
            and content["url"].removeprefix("mxc://example.org/") not in self.media
        ):
            self.problems.append("a file that was not uploaded")
        id = self._add(room, "m.room.message", BOT, content)
        self._transactions[room, transaction] = id
        return id

    def _limit(self, transaction: str) -> None:
        """Refuse a message that comes too early, as a token bucket does."""
        now = time.monotonic()
        if now < self._refused_until.get(transaction, 0.0):
            self.problems.append("a limited call was repeated too early")
        self.bucket = [at for at in self.bucket if at > now - self.seconds]
        if len(self.bucket) >= self.burst:
            wait = self.bucket[0] + self.seconds - now
            self._refused_until[transaction] = now + wait * 0.9
            raise Refused(429, "M_LIMIT_EXCEEDED", retry_after_ms=int(wait * 1000) + 1)
        self.bucket.append(now)

    # Reading ----------------------------------------------------------------------------------------------------

    async def _sync(self, query: Mapping[str, str]) -> web.Response:
        since = int(query["since"].removeprefix("s")) if "since" in query else None
        wanted = json.loads(query["filter"])["room"]
        until = time.monotonic() + int(query["timeout"]) / 1000
        while True:
            news, position = self._news, self._position
            rooms = self._new_in(since, wanted)
            if since is None or any(rooms.values()):
                break
            self.waiting += 1
            try:
                await asyncio.wait_for(news.wait(), max(0.0, until - time.monotonic()))
            except TimeoutError:
                break
            finally:
                self.waiting -= 1
        return web.json_response({"next_batch": f"s{position}", "rooms": rooms})

    def _new_in(self, since: int | None, wanted: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        limit, types = min(self.timeline_limit, wanted["timeline"]["limit"]), wanted["timeline"]["types"]
        found: dict[str, dict[str, Any]] = {"join": {}, "invite": {}, "leave": {}}
        for id, room in self.rooms.items():
            membership = room.members.get(BOT, "leave")
            if membership == "invite" and (since is None or room.invited_at > since):
                found["invite"][id] = {"invite_state": {"events": self._stripped(room)}}
            # whoever joins is shown what was said before, as its homeserver has it
            start = 0 if room.joined_at > (since or 0) else since or 0
            events = [one for one in room.events if one["position"] > start and one["type"] in types]
            if membership != "join" or not events:
                continue
            shown = events[len(events) - limit :] if limit < len(events) else events
            shown = shown if limit else []
            left_out = events[: len(events) - len(shown)]
            found["join"][id] = {
                "timeline": {
                    "events": [listed(one) for one in shown],
                    "limited": bool(left_out),
                    "prev_batch": f"p{shown[0]['position'] if shown else self._position + 1}",
                },
                "state": {"events": [listed(one) for one in left_out if "state_key" in one]},
            }
        return found

    def _stripped(self, room: Room) -> list[dict[str, Any]]:
        """Return what is shown of a room to whom it invites."""
        state: list[dict[str, Any]] = [listed(one) for one in room.events if one.get("state_key") == BOT][-1:]
        if room.name:
            state.append({"type": "m.room.name", "state_key": "", "content": {"name": room.name}})
        if room.is_encrypted:
            state.append({"type": "m.room.encryption", "state_key": "", "content": {}})
        return state

    def _messages(self, room: Room, query: Mapping[str, str]) -> web.Response:
        wanted = json.loads(query["filter"])
        start = int(query["from"][1:]) if "from" in query else self._position + 1
        end = int(query["to"][1:]) if "to" in query else 0
        events = [one for one in reversed(room.events) if end < one["position"] < start]
        events = [one for one in events if one["type"] in wanted["types"]]
        events = [one for one in events if one["sender"] in wanted.get("senders", [one["sender"]])]
        page = events[: min(int(query["limit"]), 3)]
        more = {"end": f"p{page[-1]['position']}"} if len(page) < len(events) else {}
        return web.json_response({"start": f"p{start}", "chunk": [listed(one) for one in page], **more})

    # Media ------------------------------------------------------------------------------------------------------

    def _upload(self, name: str, media_type: str, data: bytes) -> web.Response:
        if len(data) > LIMIT:
            raise Refused(413, "M_TOO_LARGE")
        id = f"media{len(self.media)}"
        self.media[id] = (media_type, data)
        return web.json_response({"content_uri": f"mxc://example.org/{id}"})

    def _media(self, rest: list[str]) -> web.Response:
        match rest:
            case ["config"]:
                return web.json_response({"m.upload.size": LIMIT})
            case ["download", "example.org", id] if id in self.media:
                media_type, data = self.media[id]
                return web.Response(body=data, content_type=media_type)
        raise Refused(404, "M_NOT_FOUND")


def name_of(path: list[str], body: Mapping[str, Any]) -> str:
    """Return the name of a call, by which faults are scripted."""
    if "send" in path:
        return "edit" if "m.new_content" in body else "file" if "url" in body else "send"
    names = (
        "sync", "whoami", "members", "messages", "joined_rooms", "createRoom", "join", "leave", "upload", "download",
        "event", "redact", "typing", "config", "state",
    )  # fmt: skip
    return next((name for name in names if name in path), "other")


def listed(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as it is sent to clients."""
    return {name: value for name, value in event.items() if name != "position"}


@asynccontextmanager
async def homeserver() -> AsyncIterator[Homeserver]:
    """Run a homeserver on a free port."""
    server = Homeserver()
    app = web.Application(client_max_size=10 * LIMIT)
    app.add_routes([web.route("*", "/_matrix/{rest:.*}", server.call)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await web.SockSite(runner, listening).start()
        server.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            yield server
        finally:
            await runner.cleanup()
