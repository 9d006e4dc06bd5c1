"""The bot: the calls and events of Slack that this channel uses, with Slack's errors as what they mean for it."""

import json
import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NoReturn

import aiohttp
import anyio
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from trunkline import ConfigError
from trunkline.api.channel import Attachment, PostRefused
from trunkline_slack.bot_events import (
    Connected,
    Event,
    SlackMessage,
    parse_command,
    parse_message,
    parse_press,
)
from trunkline_slack.content import SlackContent, escape, marked_name
from trunkline_slack.settings import SlackSettings

log = logging.getLogger(__name__)

SCOPES = frozenset({
    "app_mentions:read", "channels:history", "channels:read", "chat:write", "commands", "files:write",
    "groups:history", "groups:read", "im:history", "im:read", "im:write",
})  # fmt: skip
"""What the bot must be permitted."""

SIGNED_OUT = frozenset({
    "account_inactive", "invalid_auth", "not_allowed_token_type", "not_authed", "token_expired", "token_revoked",
})  # fmt: skip
"""Slack's words for a token that it will always refuse."""

PASSING = frozenset({
    "", "fatal_error", "internal_error", "message_limit_exceeded", "ratelimited", "rate_limited",
    "request_timeout", "service_unavailable", "team_added_to_org", *SIGNED_OUT,
})  # fmt: skip
"""Slack's words for an error after which the same call may succeed. "" is an answer without a word."""

AWAY = (SlackApiError, aiohttp.ClientError, TimeoutError)
"""The errors that say that Slack does not answer now."""

EVENT_TYPE = "trunkline_post"
"""The type of the metadata by which a post is found again."""

CALL_SECONDS = 30.0
"""Seconds for one call, and for the first connection."""

UPLOAD_SECONDS = 120.0
"""Seconds that a file may take on its way to Slack."""

RATE_ATTEMPTS = 10
"""How often one call waits as long as Slack asks for."""

PAGE, MAX_MISSED = 100, 500
"""Messages that are asked for at once, and of one channel that are read after an absence."""

APPS = "api.slack.com/apps"


class CheckedClient(AsyncWebClient):
    """The library's client. It passes on which token Slack refuses, whoever made the call."""

    def __init__(self, on_refused: Callable[[str, bool], None], **more: Any) -> None:
        super().__init__(**more)
        self._on_refused = on_refused

    async def api_call(self, api_method: str, **more: Any) -> AsyncSlackResponse:
        """Make a call, as the library does."""
        try:
            return await super().api_call(api_method, **more)
        except SlackApiError as error:
            if word_of(error) in SIGNED_OUT:
                self._on_refused(word_of(error), api_method == "apps.connections.open")
            raise


class SlackBot:
    """The connection of one app. Use it as an asynchronous context manager; ``next_event`` returns what happened.

    The library connects again, and waits where Slack limits a call. Methods raise one of ``AWAY`` when Slack does not
    answer or answers in another way than expected.
    """

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings
        self._send_event, self._events = anyio.create_memory_object_stream[Event](math.inf)
        self._refused = anyio.Event()
        self._refusal = ConfigError("channels.slack: Slack refuses the app.")
        self._client: CheckedClient
        self._socket: SocketModeClient
        self.id = ""
        self.dms: dict[str, str] = {}
        """The channels of the owner's direct messages, by user."""

    async def __aenter__(self) -> "SlackBot":
        """Sign in and connect. Raises ConfigError if Slack refuses a token or has not permitted what is needed."""
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_SECONDS))
        self._client = CheckedClient(
            self._note_refused,
            token=self._settings.reveal_bot_token(),
            base_url=self._settings.api_url,
            session=self._http,
            # never after a lost connection: Slack may have shown the post
            retry_handlers=[AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_ATTEMPTS)],
        )
        self._socket = SocketModeClient(self._settings.reveal_app_token(), web_client=self._client)
        self._socket.message_listeners.append(self._on_message)
        try:
            await self._sign_in()
            await self._open_direct_messages()
            with anyio.fail_after(CALL_SECONDS):
                opened = await self._client.apps_connections_open(app_token=self._socket.app_token)
                self._socket.wss_uri = fields_of(opened)["url"]
                await self._socket.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await self._close()
            self.raise_refused()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._close()

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5, shield=True):
            await self._socket.close()  # type: ignore[no-untyped-call]
            await self._http.close()

    async def _sign_in(self) -> None:
        answer = await self._client.auth_test()
        self.id = str(fields_of(answer)["user_id"])
        permitted = answer.headers.get("x-oauth-scopes")
        missing = SCOPES - {scope.strip() for scope in permitted.split(",")} if permitted else frozenset()
        if missing:
            raise ConfigError(
                f"channels.slack: Slack does not permit the bot {', '.join(sorted(missing))}.",
                hint=f"Add it at {APPS} in your app, on the page OAuth & Permissions under Bot Token Scopes, choose "
                "Reinstall to Workspace, and start again.",
            )

    def _note_refused(self, word: str, is_app: bool) -> None:
        field = "app_token" if is_app else "token"
        variable = self._settings.app_variable if is_app else self._settings.bot_variable
        page = "Basic Information, App-Level Tokens" if is_app else "OAuth & Permissions"
        self._refusal = ConfigError(
            f"channels.slack.{field}: Slack refuses the token in {variable}: {word}.",
            hint=f"It may have been revoked. Copy the current one at {APPS} in your app, on the page {page}, set the "
            "variable, and start again.",
        )
        self._refused.set()

    async def until_refused(self) -> NoReturn:
        """Wait until Slack refuses a token, and raise ConfigError then."""
        await self._refused.wait()
        raise self._refusal

    def raise_refused(self) -> None:
        """Raise ConfigError if Slack has refused a token."""
        if self._refused.is_set():
            raise self._refusal from None

    async def _open_direct_messages(self) -> None:
        for owner in self._settings.owners:
            try:
                answer = await self._client.conversations_open(users=owner)
                self.dms[owner] = fields_of(answer)["channel"]["id"]
            except SlackApiError as error:
                if word_of(error) in PASSING:
                    raise
                log.warning("Slack opens no direct messages with the owner %s: %s", owner, word_of(error))

    # Events -----------------------------------------------------------------------------------------------------

    async def next_event(self) -> Event:
        """Return the next event, in the order in which Slack sent them."""
        return await self._events.receive()

    async def is_connected(self) -> bool:
        """Report whether events arrive now."""
        return await self._socket.is_connected()

    async def _on_message(
        self, client: AsyncBaseSocketModeClient, message: dict[str, Any], raw: str | None
    ) -> None:
        """Take one message of the connection. A press or a command is confirmed at once, because Slack waits only three
        seconds; a message is confirmed when it is safe.
        """
        payload, envelope = message.get("payload") or {}, message.get("envelope_id", "")
        match message.get("type"):
            case "hello":
                self._send_event.send_nowait(Connected())
            case "events_api":
                event = self._parse_event(payload.get("event") or {}, envelope)
                if event is None:
                    await self.confirm(envelope)
                else:
                    self._send_event.send_nowait(event)
            case "interactive" | "slash_commands" as kind:
                await self.confirm(envelope)
                press = parse_command(payload) if kind == "slash_commands" else parse_press(payload)
                if press is not None:
                    self._send_event.send_nowait(press)

    def _parse_event(self, event: Mapping[str, Any], envelope: str) -> SlackMessage | None:
        is_private = event.get("type") == "message" and event.get("channel_type") == "im"
        if not is_private and event.get("type") != "app_mention":
            return None
        return parse_message(event, event["channel"], self.id, is_private=is_private, envelope=envelope)

    async def confirm(self, envelope: str) -> None:
        """Confirm that a message arrived. If this fails, Slack sends it again."""
        try:
            await self._socket.send_message(json.dumps({"envelope_id": envelope}))
        except (aiohttp.ClientError, ConnectionError, RuntimeError) as error:
            log.info("a message of Slack was not confirmed: %s", error)

    # Calls ------------------------------------------------------------------------------------------------------

    async def send(self, channel: str, thread: str, content: SlackContent, *, nonce: str) -> str:
        """Send a message and return its time, which is its id. Raises PostRefused if Slack refuses it."""
        try:
            answer = await self._client.chat_postMessage(
                channel=channel,
                thread_ts=thread or None,
                text=content.text,
                blocks=content.blocks,
                metadata={"event_type": EVENT_TYPE, "event_payload": {"delivery": nonce}},
                unfurl_links=False,
                unfurl_media=False,
            )
        except SlackApiError as error:
            if word_of(error) in PASSING:
                raise
            raise PostRefused(
                f"Slack refuses a message to the channel {channel}: {word_of(error)}"
            ) from error
        return str(fields_of(answer)["ts"])

    async def send_file(self, channel: str, thread: str, file: Attachment, data: bytes, *, nonce: str) -> str:
        """Send a file and return its id. Raises PostRefused if Slack refuses it."""
        name = marked_name(file.name, nonce)
        try:
            upload = fields_of(await self._client.files_getUploadURLExternal(filename=name, length=len(data)))
            async with self._http.post(
                upload["upload_url"], data=data, timeout=aiohttp.ClientTimeout(total=UPLOAD_SECONDS)
            ) as stored:
                stored.raise_for_status()
            await self._client.files_completeUploadExternal(
                files=[{"id": upload["file_id"], "title": file.name}],
                channel_id=channel,
                thread_ts=thread or None,
            )
        except SlackApiError as error:
            if word_of(error) in PASSING:
                raise
            raise PostRefused(f"Slack refuses a file for the channel {channel}: {word_of(error)}") from error
        return str(upload["file_id"])

    async def find_own_file(self, channel: str, thread: str, after: str, name: str) -> str | None:
        """Return the id of the file with this name in a message of the bot after ``after``."""
        async for message in self._messages(channel, thread, after):
            for file in message.get("files") or ():
                if message.get("user") == self.id and file.get("name") == name:
                    return str(file["id"])
        return None

    async def find_own(self, channel: str, thread: str, after: str, nonce: str) -> str | None:
        """Return the message of the bot after ``after`` whose metadata has this nonce."""
        async for message in self._messages(channel, thread, after):
            metadata = message.get("metadata") or {}
            delivery = (metadata.get("event_payload") or {}).get("delivery")
            if metadata.get("event_type") == EVENT_TYPE and delivery == nonce:
                return str(message["ts"])
        return None

    async def channels(self) -> list[str]:
        """Return the channels of which the bot is a member, without direct messages."""
        found: list[str] = []
        cursor = ""
        while True:
            answer = await self._client.users_conversations(
                types="public_channel,private_channel",
                exclude_archived=True,
                limit=PAGE,
                cursor=cursor or None,
            )
            found += [channel["id"] for channel in fields_of(answer)["channels"]]
            cursor = next_cursor(answer)
            if not cursor:
                return found

    async def missed(
        self, channel: str, thread: str, after: str, *, is_private: bool
    ) -> tuple[list[SlackMessage], list[str]]:
        """Return the messages of a channel or thread after ``after`` that are addressed to the bot, and the threads
        that began after it.
        """
        found, threads = [], []
        async for message in self._messages(channel, thread, after):
            incoming = parse_message(message, channel, self.id, is_private=is_private)
            if incoming is not None:
                found.append(incoming)
            if not thread and message.get("reply_count"):
                threads.append(str(message["ts"]))
        return found, threads

    async def _messages(self, channel: str, thread: str, after: str) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the newest messages after ``after``, none of a channel that the bot may not read."""
        cursor, read = "", 0
        while read < MAX_MISSED:
            asked: dict[str, Any] = {
                "channel": channel, "oldest": after, "limit": PAGE, "include_all_metadata": True,
                "cursor": cursor or None,
            }  # fmt: skip
            try:
                if thread:
                    answer = await self._client.conversations_replies(ts=thread, **asked)
                else:
                    answer = await self._client.conversations_history(**asked)
            except SlackApiError as error:
                if word_of(error) in PASSING:
                    raise
                log.warning("the messages of channel %s cannot be read: %s", channel, word_of(error))
                return
            messages = fields_of(answer)["messages"]
            read += len(messages)
            for message in messages:
                if float(message["ts"]) > float(after):  # a thread is listed with the message that began it
                    yield message
            cursor = next_cursor(answer)
            if not cursor:
                return

    async def edit(self, channel: str, ts: str, content: SlackContent) -> None:
        """Change a message of the bot, if it exists."""
        try:
            await self._client.chat_update(channel=channel, ts=ts, text=content.text, blocks=content.blocks)
        except SlackApiError as error:
            if word_of(error) in PASSING:
                raise
            log.info("a message of channel %s was not changed: %s", channel, word_of(error))

    async def delete(self, channel: str, ts: str) -> None:
        """Delete a message of the bot, if it exists."""
        try:
            await self._client.chat_delete(channel=channel, ts=ts)
        except SlackApiError as error:
            if word_of(error) in PASSING:
                raise
            log.info("a message of channel %s was not deleted: %s", channel, word_of(error))

    async def answer_press(self, reply_url: str, text: str) -> None:
        """Show a text to the person who pressed a button or gave a command. Does nothing if that is too long ago."""
        body = {"response_type": "ephemeral", "replace_original": False, "text": escape(text)}
        try:
            async with self._http.post(reply_url, json=body) as answer:
                if answer.status != 200:
                    log.info("a press or command was not answered: %d", answer.status)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.info("a press or command was not answered: %s", type(error).__name__)


def fields_of(answer: AsyncSlackResponse) -> Mapping[str, Any]:
    """Return the fields of an answer that succeeded."""
    return answer.data if isinstance(answer.data, Mapping) else {}


def next_cursor(answer: AsyncSlackResponse) -> str:
    """Return where the next page of an answer begins, "" after the last one."""
    return str((fields_of(answer).get("response_metadata") or {}).get("next_cursor", ""))


def word_of(error: SlackApiError) -> str:
    """Return Slack's word for an error, "" for an answer without one."""
    data = getattr(error.response, "data", None)
    return str(data.get("error", "")) if isinstance(data, Mapping) else ""
