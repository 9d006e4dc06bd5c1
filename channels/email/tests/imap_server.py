"""An IMAP server in scripted form: the part of RFC 3501 that the channel uses, with IDLE, MOVE, keywords, special-use
folders, STARTTLS, literals, and the faults of the mail store.
"""

import asyncio
import re
import shlex
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from .mail_store import AGENT, PASSWORD, Folder, MailStore, StoredMail

BEFORE_TLS = "IMAP4rev1 STARTTLS LOGINDISABLED"
"""The capabilities of a connection that must become encrypted first."""


class ImapSession:
    """One connection."""

    def __init__(
        self,
        store: MailStore,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        capabilities: str,
        starttls: ssl.SSLContext | None,
    ) -> None:
        self._store = store
        self._reader, self._writer = streams
        self._capabilities = capabilities
        self._starttls = starttls
        self._folder = Folder()
        self._is_signed_in = False

    async def run(self) -> None:
        """Serve until the client leaves or a fault cuts the connection."""
        with suppress(OSError, asyncio.IncompleteReadError):  # TLS that the client refuses, too
            self._write(f"* OK [CAPABILITY {self._offered}] ready\r\n")
            while await self._command():
                await self._writer.drain()
        self._writer.close()

    @property
    def _offered(self) -> str:
        return BEFORE_TLS if self._starttls is not None else self._capabilities

    def _write(self, text: str | bytes) -> None:
        self._writer.write(text.encode() if isinstance(text, str) else text)

    async def _line(self) -> str:
        line = await self._reader.readuntil(b"\n")
        text = line.decode().rstrip("\r\n")
        literal = re.search(r"\{(\d+)\}$", text)
        if literal is None:
            return text
        self._write("+ go on\r\n")
        data = (await self._reader.readexactly(int(literal[1]))).decode()
        return f'{text[: literal.start()]}"{data}"{await self._line()}'

    async def _command(self) -> bool:
        """Answer one command; report whether the connection goes on."""
        tag, _, rest = (await self._line()).partition(" ")
        words = rest.split(" ")
        name = words[1].upper() if words[0].upper() == "UID" else words[0].upper()
        arguments = rest.partition(name)[2].strip() if name in rest else rest.partition(" ")[2]
        if words[0].upper() == "UID":
            arguments = rest.split(" ", 2)[2]
        fault = self._store.take_fault(name)
        if fault.before is not None:
            fault.before()
        if fault.cut == "before":
            return False
        if fault.answer:
            self._write(
                f"{fault.answer}\r\n" if fault.answer.startswith("*") else f"{tag} {fault.answer}\r\n"
            )
            return not fault.answer.startswith("*")  # the server ends the connection
        answer = await self._answer(tag, name, arguments)
        if fault.after is not None:
            fault.after()
        if fault.cut == "after":
            return False
        self._write(answer)
        return name != "LOGOUT"

    async def _answer(self, tag: str, name: str, arguments: str) -> bytes:
        match name:
            case "CAPABILITY":
                done = f"* CAPABILITY {self._offered}\r\n"
            case "STARTTLS":
                self._write(f"{tag} OK begin\r\n")
                await self._writer.start_tls(self._starttls)  # type: ignore[arg-type]
                self._starttls = None
                return b""
            case "LOGIN":
                user, password = shlex.split(arguments)
                if self._starttls is not None:
                    return f"{tag} NO [PRIVACYREQUIRED] TLS first\r\n".encode()
                if (user, password) != (AGENT, PASSWORD):
                    return f"{tag} NO [AUTHENTICATIONFAILED] Invalid credentials\r\n".encode()
                self._is_signed_in, done = True, ""
            case "NOOP" | "EXPUNGE":
                done = ""
            case "LOGOUT":
                done = "* BYE until next time\r\n"
            case _ if not self._is_signed_in:
                return f"{tag} BAD sign in first\r\n".encode()
            case "SELECT" | "EXAMINE":
                done = self._select(arguments.strip().strip('"'))
            case "LIST":
                done = '* LIST (\\HasNoChildren) "/" INBOX\r\n* LIST (\\HasNoChildren \\Sent) "/" "Sent Items"\r\n'
            case "SEARCH":
                found = " ".join(str(mail.uid) for mail in self._search(arguments))
                done = f"* SEARCH {found}\r\n"
            case "FETCH":
                return self._fetch(arguments) + f"{tag} OK done\r\n".encode()
            case "STORE":
                self._store_flags(arguments)
                done = ""
            case "MOVE":
                self._move(arguments)
                done = ""
            case "IDLE":
                await self._idle()
                done = ""
            case _:
                return f"{tag} BAD unknown command {name}\r\n".encode()
        return f"{done}{tag} OK done\r\n".encode()

    def _select(self, name: str) -> str:
        self._folder = self._store.folders[name]
        return (
            f"* {len(self._folder.mails)} EXISTS\r\n* 0 RECENT\r\n* FLAGS (\\Seen \\Deleted)\r\n"
            f"* OK [PERMANENTFLAGS (\\Seen \\Deleted \\*)] limited\r\n"
            f"* OK [UIDVALIDITY {self._folder.uid_validity}] valid\r\n"
        )

    def _search(self, criteria: str) -> list[StoredMail]:
        words = shlex.split(criteria)
        if words[:1] == ["HEADER"]:
            assert words[1].lower() == "message-id"
            return [mail for mail in self._folder.mails if words[2] in mail.message_id]
        assert words in (["UNSEEN"], ["UNSEEN", "UNKEYWORD", "$Trunkline"]), words
        unwanted = {"\\Seen", *words[2:]}
        return [mail for mail in self._folder.mails if not unwanted & mail.flags]

    def _chosen(self, arguments: str) -> list[tuple[int, StoredMail]]:
        uids = [int(uid) for uid in arguments.split(" ", 1)[0].split(",")]
        return [(number, mail) for number, mail in enumerate(self._folder.mails, 1) if mail.uid in uids]

    def _fetch(self, arguments: str) -> bytes:
        answer = b""
        for number, mail in self._chosen(arguments):
            if "RFC822.SIZE" in arguments:
                answer += f"* {number} FETCH (UID {mail.uid} RFC822.SIZE {len(mail.raw)})\r\n".encode()
                continue
            is_header = "HEADER" in arguments
            data = mail.raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n\n" if is_header else mail.raw
            part = "BODY[HEADER]" if is_header else "BODY[]"
            answer += (
                f"* {number} FETCH (UID {mail.uid} {part} {{{len(data)}}}\r\n".encode() + data + b")\r\n"
            )
        return answer

    def _store_flags(self, arguments: str) -> None:
        flags = arguments.partition("(")[2].rstrip(")").split()
        for _, mail in self._chosen(arguments):
            mail.flags |= set(flags)

    def _move(self, arguments: str) -> None:
        target = self._store.folders[shlex.split(arguments)[1]]
        for _, mail in self._chosen(arguments):
            self._folder.mails.remove(mail)
            target.add(mail.raw)

    async def _idle(self) -> None:
        news = self._store.news
        self._write("+ idling\r\n")
        await self._writer.drain()
        done = asyncio.ensure_future(self._reader.readuntil(b"\n"))
        while not done.done():
            waiting = asyncio.ensure_future(news.wait())
            await asyncio.wait({done, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if news.is_set():
                self._write(f"* {len(self._folder.mails)} EXISTS\r\n")
                news = self._store.news
        await done


@asynccontextmanager
async def imap_server(
    store: MailStore,
    *,
    capabilities: str = "IMAP4rev1 IDLE MOVE SPECIAL-USE",
    implicit: ssl.SSLContext | None = None,
    starttls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Run a server on a free port of this machine, and yield the port."""
    sessions: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        sessions.add(task)
        try:
            await ImapSession(store, (reader, writer), capabilities, starttls).run()
        except asyncio.CancelledError:
            writer.close()
        finally:
            sessions.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=implicit)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(sessions):
            task.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
