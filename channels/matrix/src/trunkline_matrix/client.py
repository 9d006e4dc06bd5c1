"""The calls of the client-server API that this channel makes, with the homeserver's errors as what they mean for it."""

import logging
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import anyio
import httpx
import msgspec

from trunkline import ConfigError
from trunkline_matrix.settings import MatrixSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT, UPLOAD_TIMEOUT = 30.0, 120.0
"""Seconds for one call, and for one with a file."""

RATE_ATTEMPTS, MAX_WAIT = 20, 300.0
"""How often a call waits as long as the homeserver asks for, and the most seconds that it waits each time."""

PAGE, MAX_PAGES = 100, 5
"""Events that are asked for at once, and pages that are read of one room."""

HEARD = (
    "m.room.message", "m.room.encrypted", "m.room.encryption", "m.room.member", "m.reaction", "m.sticker",
    "m.poll.start", "org.matrix.msc3381.poll.start",
)  # fmt: skip
"""The types of events that this channel takes."""

SIGNED_OUT = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED")
"""The homeserver's words for a token that it will always refuse."""

CLIENT, MEDIA = "/_matrix/client/v3", "/_matrix/client/v1/media"


class MatrixAway(Exception):
    """The homeserver has a failure that passes, or does not answer as one."""


class MatrixRefused(Exception):
    """The homeserver refuses a call, and changed nothing. ``word`` is its word for the reason."""

    def __init__(self, word: str, text: str) -> None:
        super().__init__(f"{word}: {text}" if text else word)
        self.word = word


AWAY = (httpx.HTTPError, MatrixAway)
"""The errors that say that the homeserver does not answer now."""


class Timeline(msgspec.Struct, frozen=True):
    """New events of a room. With ``limited`` there are more between the last answer and ``prev_batch``."""

    events: list[dict[str, Any]] = []
    limited: bool = False
    prev_batch: str = ""


class Events(msgspec.Struct, frozen=True):
    """Events without an order in time."""

    events: list[dict[str, Any]] = []


class JoinedRoom(msgspec.Struct, frozen=True):
    """A room of the account in which something is new."""

    timeline: Timeline = Timeline()
    state: Events = Events()


class InvitedRoom(msgspec.Struct, frozen=True):
    """A room to which the account is invited, with what the homeserver says of it."""

    invite_state: Events = Events()


class SyncedRooms(msgspec.Struct, frozen=True):
    """The rooms in which something is new."""

    join: dict[str, JoinedRoom] = {}
    invite: dict[str, InvitedRoom] = {}
    leave: dict[str, dict[str, Any]] = {}


class SyncBatch(msgspec.Struct, frozen=True):
    """An answer of ``sync``: the news of the account. ``next_batch`` is where the next answer begins."""

    next_batch: str
    rooms: SyncedRooms = SyncedRooms()


class MatrixClient:
    """The homeserver as one account sees it. Use it as an asynchronous context manager.

    Guarantees: a call that the homeserver limits is repeated after the time that it states. No other call is repeated:
    the homeserver may have carried it out. Methods raise one of ``AWAY`` if the homeserver does not answer, and
    MatrixRefused if it refuses the call. They raise ConfigError if it refuses the token, and set ``refusal``.

    Not guaranteed: that a call which raised one of ``AWAY`` was not carried out.
    """

    def __init__(self, settings: MatrixSettings) -> None:
        self._settings = settings
        self._http = httpx.AsyncClient(
            base_url=settings.homeserver.rstrip("/"),
            headers={"Authorization": f"Bearer {settings.reveal_token()}"},
            timeout=TIMEOUT,
            trust_env=False,
        )
        self._events_from = float("-inf")
        self.refusal: ConfigError | None = None
        self.id = settings.user or ""
        self.name = ""
        """The name that people see."""
        self.upload_limit = 0
        """Bytes of the largest file that the homeserver takes; 0 if it does not say."""

    async def __aenter__(self) -> "MatrixClient":
        """Sign in. Raises ConfigError if the homeserver refuses the token, or if it is another account's."""
        try:
            found = await self._call("GET", f"{CLIENT}/account/whoami")
            if found.get("user_id") != self.id:
                raise ConfigError(
                    f"channels.matrix.user is {self.id}, but the token in {self._settings.variable} belongs to "
                    f"{found.get('user_id')}.",
                    hint="Correct the setting or the variable, and start again.",
                )
            self.name = str(
                (await self._optional(f"{CLIENT}/profile/{part(self.id)}/displayname")).get("displayname", "")
            )
            limits = await self._optional(f"{MEDIA}/config") or await self._optional(
                "/_matrix/media/v3/config"
            )
            self.upload_limit = int(limits.get("m.upload.size") or 0)
        except BaseException:
            await self._http.aclose()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5, shield=True):
            await self._http.aclose()

    # Rooms ------------------------------------------------------------------------------------------------------

    async def sync(self, since: str, seconds: int) -> SyncBatch:
        """Return what is new since an earlier answer, after at most ``seconds``; for "" the latest events at once."""
        room = {
            "timeline": {"limit": PAGE, "types": HEARD},
            "state": {"types": ["m.room.member", "m.room.encryption"]},
            "ephemeral": {"types": []},
            "account_data": {"types": []},
        }
        wanted = {"room": room, "presence": {"types": []}, "account_data": {"types": []}}
        query = {
            "filter": msgspec.json.encode(wanted).decode(),
            "timeout": str(seconds * 1000 if since else 0),
        }
        if since:
            query["since"] = since
        answer = await self._answer("GET", f"{CLIENT}/sync", params=query, timeout=seconds + TIMEOUT)
        return _decoded(answer, SyncBatch)

    async def messages(
        self, room: str, start: str = "", end: str = "", *, own: bool = False
    ) -> list[dict[str, Any]]:
        """Return the events of a room between two places of ``sync``, the latest first; from the latest for "", and the
        latest ones if there are too many. With ``own`` return only messages of the account.
        """
        wanted: dict[str, Any] = (
            {"types": ["m.room.message"], "senders": [self.id]} if own else {"types": HEARD}
        )
        query = {"dir": "b", "limit": str(PAGE), "filter": msgspec.json.encode(wanted).decode()}
        query |= {name: place for name, place in (("from", start), ("to", end)) if place}
        found: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = await self._call("GET", f"{CLIENT}/rooms/{part(room)}/messages", params=query)
            found += page.get("chunk") or []
            if not page.get("end") or page["end"] == end:
                break
            query["from"] = page["end"]
        return found

    async def rooms(self) -> list[str]:
        """Return the rooms of the account."""
        return list((await self._call("GET", f"{CLIENT}/joined_rooms")).get("joined_rooms") or [])

    async def members(self, room: str) -> dict[str, str]:
        """Return who is in a room and who is invited to it, with ``join`` or ``invite`` for each."""
        found = await self._call(
            "GET", f"{CLIENT}/rooms/{part(room)}/members", params={"not_membership": "leave"}
        )
        events = [
            (one.get("state_key", ""), (one.get("content") or {}).get("membership")) for one in found["chunk"]
        ]
        return {user: membership for user, membership in events if membership in ("join", "invite")}

    async def is_encrypted(self, room: str) -> bool:
        """Report whether a room is encrypted. This never ends."""
        try:
            await self._call("GET", f"{CLIENT}/rooms/{part(room)}/state/m.room.encryption/")
        except MatrixRefused as refused:
            if refused.word == "M_NOT_FOUND":
                return False
            raise
        return True

    async def open_room(self, owner: str) -> str:
        """Make a private room without encryption, invite the owner, and return its id."""
        made = await self._call("POST", f"{CLIENT}/createRoom", json={
            "preset": "private_chat", "is_direct": True, "invite": [owner], "name": self.name or self.id,
        })  # fmt: skip
        return str(made["room_id"])

    async def join(self, room: str) -> None:
        """Accept an invitation."""
        await self._call("POST", f"{CLIENT}/rooms/{part(room)}/join", json={})

    async def leave(self, room: str, reason: str = "") -> None:
        """Leave a room, or decline an invitation. People see the reason."""
        await self._call(
            "POST", f"{CLIENT}/rooms/{part(room)}/leave", json={"reason": reason} if reason else {}
        )

    # Events -----------------------------------------------------------------------------------------------------

    async def send(self, room: str, content: Mapping[str, Any], transaction: str = "") -> str:
        """Send a message and return its id. The homeserver returns the same message for the same transaction."""
        name = transaction or uuid4().hex
        sent = await self._call(
            "PUT",
            f"{CLIENT}/rooms/{part(room)}/send/m.room.message/{part(name)}",
            json=dict(content),
            is_event=True,
        )
        return str(sent["event_id"])

    async def redact(self, room: str, event: str) -> None:
        """Remove what an event says."""
        await self._call(
            "PUT", f"{CLIENT}/rooms/{part(room)}/redact/{part(event)}/{uuid4().hex}", json={}, is_event=True
        )

    async def event(self, room: str, event: str) -> Mapping[str, Any]:
        """Return an event."""
        return await self._call("GET", f"{CLIENT}/rooms/{part(room)}/event/{part(event)}")

    async def show_typing(self, room: str, seconds: float) -> None:
        """Show that the account is writing. Does nothing if that fails."""
        body = {"typing": True, "timeout": int(seconds * 1000)}
        try:
            await self._http.put(f"{CLIENT}/rooms/{part(room)}/typing/{part(self.id)}", json=body)
        except httpx.HTTPError as error:
            log.debug("no typing is shown in room %s: %s", room, error)

    # Media ------------------------------------------------------------------------------------------------------

    async def upload(self, name: str, media_type: str, data: bytes) -> str:
        """Store a file and return its address. Nobody sees it before a message names the address."""
        found = await self._call(
            "POST",
            "/_matrix/media/v3/upload",
            params={"filename": name},
            content=data,
            headers={"Content-Type": media_type},
            timeout=UPLOAD_TIMEOUT,
        )
        return str(found["content_uri"])

    async def download(self, server: str, media: str, limit: int) -> bytes | None:
        """Return a file; None if it has more bytes than ``limit``."""
        try:
            return await self._downloaded(f"{MEDIA}/download/{part(server)}/{part(media)}", limit)
        except MatrixRefused as refused:
            if refused.word != "M_UNRECOGNIZED":
                raise
        return await self._downloaded(f"/_matrix/media/v3/download/{part(server)}/{part(media)}", limit)

    async def _downloaded(self, path: str, limit: int) -> bytes | None:
        data = bytearray()
        async with self._http.stream("GET", path, timeout=UPLOAD_TIMEOUT) as answer:
            if answer.status_code != 200:
                await answer.aread()
                self._raise(answer)
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > limit:
                    return None
        return bytes(data)

    # Answers ----------------------------------------------------------------------------------------------------

    async def _optional(self, path: str) -> Mapping[str, Any]:
        """Return an answer that may be missing, empty then."""
        try:
            return await self._call("GET", path)
        except MatrixRefused:
            return {}

    async def _call(self, method: str, path: str, **more: Any) -> Mapping[str, Any]:
        return _decoded(await self._answer(method, path, **more), dict[str, Any])

    async def _answer(self, method: str, path: str, *, is_event: bool = False, **more: Any) -> httpx.Response:
        """Make a call. Events wait together: a homeserver limits those of an account in all rooms."""
        for _ in range(RATE_ATTEMPTS):
            if is_event:
                await anyio.sleep_until(self._events_from)
            answer = await self._http.request(method, path, **more)
            if answer.status_code != 429:
                break
            until = anyio.current_time() + min(_wait(answer), MAX_WAIT)
            if is_event:
                self._events_from = max(self._events_from, until)
            else:
                await anyio.sleep_until(until)
        if answer.status_code != 200:
            self._raise(answer)
        return answer

    def _raise(self, answer: httpx.Response) -> None:
        """Raise what an answer means that is no success."""
        try:
            problem = msgspec.json.decode(answer.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            problem = {}
        word, text = str(problem.get("errcode", "")), str(problem.get("error", ""))
        if word in SIGNED_OUT:
            self.refusal = ConfigError(
                f"channels.matrix.token: the homeserver refuses the token in {self._settings.variable}: {word}.",
                hint="It may have been signed out. Sign in again for another one, set the variable, and start again.",
            )
            raise self.refusal
        if 400 <= answer.status_code < 500 and answer.status_code != 429 and word:
            raise MatrixRefused(word, text)
        raise MatrixAway(f"the homeserver answers {answer.status_code} {word} {text}".strip())


def part(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="")


def _decoded(answer: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.MsgspecError as error:
        raise MatrixAway(f"what answers is no homeserver: {error}") from error


def _wait(answer: httpx.Response) -> float:
    """Return the seconds after which a limited call may be repeated."""
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
        if "retry_after_ms" in problem:
            return max(0.0, float(problem["retry_after_ms"]) / 1000)
        return max(0.0, float(answer.headers.get("Retry-After", 1.0)))
    except (msgspec.MsgspecError, TypeError, ValueError):
        return 1.0
