"""The Bot API: the calls that this channel makes, with Telegram's errors as what they mean for it."""

import hmac
import logging
import os
import warnings
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import anyio
import httpx
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
    Update,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from trunkline import ConfigError, Unavailable
from trunkline.api.channel import Attachment, FileRefused, IncomingFile, PostRefused
from trunkline_telegram.content import PostContent, is_photo
from trunkline_telegram.message_media import MEDIA_LIMIT, TOO_LARGE, MediaFile
from trunkline_telegram.settings import TelegramSettings
from trunkline_telegram.token_transport import TokenTransport, hidden_token

log = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT = 20.0
"""Seconds to wait for Telegram's answer."""

UPLOAD_TIMEOUT = 120.0
"""Seconds that a file may take on its way to Telegram."""

NO_PHOTO = ("photo_invalid_dimensions", "image_process_failed", "photo_save_file_invalid", "too big")
"""Words of the errors with which Telegram refuses a picture as a photo. The library changes their case."""

MAX_RETRY_AFTER = 300.0
"""Seconds that a call waits at most when Telegram says so; a longer wait is an error."""

UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
"""The kinds of updates that Telegram shall send."""

NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class ChatMoved(Exception):
    """The group has become a supergroup, with another id. Nothing was sent."""

    def __init__(self, chat: int) -> None:
        super().__init__(chat)
        self.chat = chat


class BotApi:
    """The Bot API for one bot. Use it as an asynchronous context manager.

    A call that Telegram limits is repeated after the time that Telegram states. Methods raise TelegramError when
    Telegram does not answer or answers in another way than expected.
    """

    def __init__(self, settings: TelegramSettings) -> None:
        # The typed method fails for all updates if one cannot be read, and without its number it cannot be skipped.
        warnings.filterwarnings("ignore", "Please use 'Bot.getUpdates'", PTBUserWarning)
        # Without, python-telegram-bot warns at each RetryAfter that its number of seconds is deprecated.
        os.environ.setdefault("PTB_TIMEDELTA", "true")
        token = settings.reveal_token()
        hidden = hidden_token(token)
        base = settings.api_url.rstrip("/")
        polling, sending = (_request(token, connections) for connections in (1, 32))
        self._bot = Bot(
            hidden,
            base_url=f"{base}/bot",
            base_file_url=f"{base}/file/bot",
            request=sending,
            get_updates_request=polling,
        )
        self._files = f"{base}/file/bot{hidden}/"
        self._variable = settings.token.env if settings.token else "TELEGRAM_BOT_TOKEN"
        self.webhook_secret = hmac.new(token.encode(), b"trunkline webhook", "sha256").hexdigest()
        """The secret by which Telegram's requests are known. It is the same in each process with this token."""
        self.username = ""
        self.id = 0

    async def __aenter__(self) -> "BotApi":
        """Sign in. Raises ConfigError if Telegram refuses the token, TelegramError if it does not answer."""
        try:
            await self._limited(self._bot.initialize)
        except InvalidToken:
            raise ConfigError(
                f"channels.telegram.token: Telegram refuses the bot's token in {self._variable}.",
                hint="It may be revoked. Ask @BotFather for the current one, set the variable, and start again.",
            ) from None
        self.username, self.id = self._bot.username, self._bot.id
        return self

    async def __aexit__(self, *failure: object) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5, shield=True):
            await self._bot.shutdown()

    async def prepare(self, commands: dict[str, str], webhook: str) -> None:
        """Set the bot's commands, and let updates be sent to the address ``webhook``; for "" let them be polled. Raises
        ConfigError if Telegram refuses the address.
        """
        if webhook:
            await self._set_webhook(webhook)
        else:
            await self._limited(lambda: self._bot.delete_webhook(drop_pending_updates=False))
        wanted = [BotCommand(name, text) for name, text in commands.items()]
        await self._limited(lambda: self._bot.set_my_commands(wanted))

    async def _set_webhook(self, webhook: str) -> None:
        try:
            await self._limited(
                lambda: self._bot.set_webhook(
                    webhook,
                    secret_token=self.webhook_secret,
                    allowed_updates=list(UPDATES),
                    max_connections=1,  # so updates come one after another, in their order
                    drop_pending_updates=False,
                )
            )
        except BadRequest as refused:
            raise ConfigError(
                f"channels.telegram.webhook_url: Telegram refuses the address: {refused.message}",
                hint="It needs a public name, a valid certificate, and the port 443, 80, 88 or 8443.",
            ) from refused

    async def webhook_problem(self, webhook: str) -> str:
        """Return why Telegram sends no updates to the address now, "" if it does. An address that another program
        has set is set again.
        """
        info = await self._limited(self._bot.get_webhook_info)
        if info.url != webhook:
            await self._set_webhook(webhook)
            return "another program has changed the webhook"
        return info.last_error_message or "Telegram does not say why" if info.pending_update_count else ""

    async def updates(self, offset: int | None, wait: int) -> list[tuple[int, Update | None]]:
        """Return the updates from ``offset`` on, which confirms those before it. An update that cannot be read is None.
        While another program polls, the error is Telegram's ``Conflict``.
        """
        arguments: dict[str, Any] = {"timeout": wait, "allowed_updates": list(UPDATES), "limit": 100}
        if offset is not None:
            arguments["offset"] = offset
        found = await self._limited(
            lambda: self._bot.do_api_request("getUpdates", api_kwargs=arguments, read_timeout=wait + TIMEOUT)
        )
        return [(int(raw["update_id"]), self.read_update(raw)) for raw in found]

    def read_update(self, raw: dict[str, Any]) -> Update | None:
        """Return an update; None if it cannot be read."""
        try:
            return Update.de_json(raw, self._bot)
        except Exception:
            log.exception("an update of Telegram cannot be read and is skipped: %s", raw.get("update_id"))
            return None

    async def download(self, file: MediaFile) -> IncomingFile:
        """Return a file of a message.

        Raises:
            FileRefused: it is too large, or Telegram has it no more.
            Unavailable: Telegram does not answer.
        """
        if file.size > MEDIA_LIMIT:
            raise FileRefused(TOO_LARGE)
        try:
            found = await self._limited(lambda: self._bot.get_file(file.id))
            if not (found.file_path or "").startswith(self._files):
                raise FileRefused("The Bot API server returned no address of this file.")
            data = bytes(await self._limited(found.download_as_bytearray))
        except (
            BadRequest,
            Forbidden,
            InvalidToken,
        ) as refused:  # a path that has expired counts as a wrong token
            if "too big" in refused.message:
                raise FileRefused(TOO_LARGE) from refused
            raise FileRefused("Telegram does not return this file. Send it again.") from refused
        except TelegramError as error:
            raise Unavailable(f"Telegram does not return a file: {error}") from error
        return IncomingFile(file.name, file.media_type, data, is_voice=file.is_voice)

    async def send(self, chat: int, content: PostContent, *, thread: int | None, reply_to: int | None) -> int:
        """Send a message and return its id. Raises PostRefused if Telegram refuses it, ChatMoved for a moved group."""

        async def send(entities: list[MessageEntity]) -> int:
            message = await self._bot.send_message(
                chat,
                content.text,
                entities=entities or None,
                reply_markup=_keyboard(content),
                message_thread_id=thread,
                link_preview_options=NO_PREVIEW,
                reply_parameters=_reply_parameters(reply_to),
            )
            return message.message_id

        return await self._sent(chat, lambda: self._plain_if_refused(send, content))

    async def send_file(
        self, chat: int, file: Attachment, data: bytes, *, thread: int | None, reply_to: int | None
    ) -> int:
        """Send a file and return the id of its message. A picture that Telegram does not take as a photo, for example
        because it is very long, is sent as a document. Raises as ``send`` does.
        """
        more: dict[str, Any] = {
            "message_thread_id": thread,
            "reply_parameters": _reply_parameters(reply_to),
            "write_timeout": UPLOAD_TIMEOUT,
            "read_timeout": UPLOAD_TIMEOUT,
        }

        async def send_document() -> int:
            message = await self._bot.send_document(
                chat, data, filename=file.name, disable_content_type_detection=True, **more
            )
            return message.message_id

        async def send_photo() -> int:
            try:
                return (await self._bot.send_photo(chat, data, filename=file.name, **more)).message_id
            except BadRequest as refused:
                if not any(word in refused.message.lower() for word in NO_PHOTO):
                    raise
                return await send_document()

        return await self._sent(chat, send_photo if is_photo(file) else send_document)

    async def send_place(
        self, chat: int, place: tuple[float, float], *, thread: int | None, reply_to: int | None
    ) -> int:
        """Send a place on a map and return the id of its message. Raises as ``send`` does."""

        async def send() -> int:
            message = await self._bot.send_location(
                chat,
                latitude=place[0],
                longitude=place[1],
                message_thread_id=thread,
                reply_parameters=_reply_parameters(reply_to),
            )
            return message.message_id

        return await self._sent(chat, send)

    async def _sent(self, chat: int, send: Callable[[], Awaitable[int]]) -> int:
        try:
            return await self._limited(send)
        except ChatMigrated as moved:
            raise ChatMoved(moved.new_chat_id) from moved
        except (BadRequest, Forbidden) as refused:
            raise PostRefused(
                f"Telegram refuses a message to the chat {chat}: {refused.message}"
            ) from refused
        except NetworkError as error:
            if "Too Large" not in error.message:
                raise
            raise PostRefused(f"The file is too large for Telegram: {error.message}") from error

    async def has_message(self, chat: int, message: int) -> bool:
        """Report whether a message without buttons exists and is the bot's. The message stays as it is: its buttons are
        set to none. Raises ChatMoved for a moved group.
        """
        try:
            await self._limited(lambda: self._bot.edit_message_reply_markup(chat, message))
        except ChatMigrated as moved:
            raise ChatMoved(moved.new_chat_id) from moved
        except Forbidden:
            return False
        except BadRequest as refused:
            return "not modified" in refused.message
        return True

    async def edit(self, chat: int, message: int, content: PostContent) -> bool:
        """Change a message; report whether it exists and is the bot's."""

        async def edit(entities: list[MessageEntity]) -> int:
            await self._bot.edit_message_text(
                content.text,
                chat,
                message,
                entities=entities or None,
                reply_markup=_keyboard(content),
                link_preview_options=NO_PREVIEW,
            )
            return message

        try:
            await self._limited(lambda: self._plain_if_refused(edit, content))
        except ChatMigrated as moved:
            raise ChatMoved(moved.new_chat_id) from moved
        except Forbidden:
            return False
        except BadRequest as refused:
            return "not modified" in refused.message
        return True

    async def _plain_if_refused(
        self, act: Callable[[list[MessageEntity]], Awaitable[int]], content: PostContent
    ) -> int:
        """Call ``act`` with the entities, and without them if Telegram refuses those."""
        entities = [
            MessageEntity(one.type, one.offset, one.length, url=one.url, language=one.language)
            for one in content.entities
        ]
        try:
            return await act(entities)
        except BadRequest as refused:
            if not entities or "entit" not in refused.message.lower():
                raise
            log.warning(
                "Telegram refuses the styles of a message, which is shown without them: %s", refused.message
            )
            return await act([])

    async def delete(self, chat: int, message: int) -> None:
        """Delete a message of the bot, if it exists."""
        try:
            await self._limited(lambda: self._bot.delete_message(chat, message))
        except (BadRequest, Forbidden) as refused:
            log.info("a message of chat %s was not deleted: %s", chat, refused.message)

    async def show_typing(self, chat: int, thread: int | None) -> None:
        """Show that the bot is writing, for five seconds. Does nothing if that fails."""
        try:
            await self._bot.send_chat_action(chat, "typing", message_thread_id=thread)
        except TelegramError as error:
            log.debug("no typing is shown in chat %s: %s", chat, error)

    async def answer_button(self, query: str, text: str) -> None:
        """Show a text to the person who pressed a button. Does nothing if the press is too old."""
        try:
            await self._limited(lambda: self._bot.answer_callback_query(query, text[:200]))
        except BadRequest as refused:
            log.info("a button was not answered: %s", refused.message)

    async def _limited(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except RetryAfter as limited:
                wait = limited.retry_after
                seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
                if seconds > MAX_RETRY_AFTER:
                    raise
                await anyio.sleep(seconds)


def _request(token: str, connections: int) -> HTTPXRequest:
    limits = httpx.Limits(max_connections=connections)
    transport = TokenTransport(token, httpx.AsyncHTTPTransport(limits=limits))
    return HTTPXRequest(
        connection_pool_size=connections,
        read_timeout=TIMEOUT,
        write_timeout=TIMEOUT,
        connect_timeout=TIMEOUT,
        pool_timeout=TIMEOUT,
        httpx_kwargs={"transport": transport, "trust_env": False},
    )


def _reply_parameters(reply_to: int | None) -> ReplyParameters | None:
    return ReplyParameters(reply_to, allow_sending_without_reply=True) if reply_to else None


def _keyboard(content: PostContent) -> InlineKeyboardMarkup | None:
    if not content.buttons:
        return None
    rows = [[InlineKeyboardButton(label, callback_data=data)] for label, data in content.buttons]
    return InlineKeyboardMarkup(rows)
