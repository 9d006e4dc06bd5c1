"""One GET: guarded, pinned, bounded in time and size. Everything that a server can do wrong ends here as a ToolError.

The guard looks a host up and the connection goes to what it found, at each redirect anew; name and certificate are
those of the address that was asked for. Nothing of the environment is used, no proxy and no cookie.
"""

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cached_property
from typing import Any

import anyio
import anyio.to_thread
import httpcore2
import msgspec

from trunkline import ToolError
from trunkline.outbound import Guard, UrlRefused, WebAddress
from trunkline_web.unpacking import PACKINGS, Unpacking

LARGEST = 8 * 1024 * 1024
"""Bytes of a body, packed or not. What is longer is cut."""

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CONNECT_SECONDS = 5.0
"""For each of a host's addresses."""


class Elsewhere(ToolError):
    """A redirect to another host. It is not followed: who allowed this host has not allowed that one."""

    def __init__(self, came: WebAddress, leads: WebAddress) -> None:
        super().__init__(
            f"{came.url[:500]} leads to another host, {leads.host}, and was not followed. "
            f"If that is wanted, call the tool with {leads.url[:1000]}."
        )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered in the end. ``headers`` have small names; ``cut``: the body was longer."""

    address: WebAddress
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def media_type(self) -> str:
        """Such as ``text/html``; empty when the server does not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """What the server says of the text's encoding; empty when nothing."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""


class Fetcher:
    """Gets pages. ``seconds`` is for a page with its redirects; ``tls`` is what certificates are held to."""

    def __init__(
        self, guard: Guard, *, seconds: float, user_agent: str, tls: ssl.SSLContext | None = None
    ) -> None:
        self._backend = _Pinned(guard)
        self._seconds = seconds
        self._user_agent = user_agent
        self._given_tls = tls

    async def get(
        self,
        address: WebAddress,
        *,
        headers: Mapping[str, str] | None = None,
        most: int = LARGEST,
        redirects: int = MOST_REDIRECTS,
    ) -> Answer:
        """Get at most so many bytes of a page, with whatever status; so many redirects within the site are followed.

        Raises:
            Elsewhere: it leads to another host.
            ToolError: it cannot be had; the text says why.
        """
        try:
            with anyio.fail_after(self._seconds):
                return await self._followed(address, headers or {}, most, redirects)
        except TimeoutError:
            raise ToolError(
                f"{address.host} did not give the page within {self._seconds:g} seconds."
            ) from None

    async def _followed(
        self, address: WebAddress, headers: Mapping[str, str], most: int, redirects: int
    ) -> Answer:
        for _ in range(redirects + 1):
            answer = await self._one(address, headers, most)
            leads = answer.headers.get("location")
            if answer.status not in REDIRECTS or leads is None:
                return answer
            address = _next(address, leads)
        raise ToolError(f"{address.host} redirects more than {redirects} times, which is not followed.")

    async def _one(self, address: WebAddress, headers: Mapping[str, str], most: int) -> Answer:
        asked = {
            "User-Agent": self._user_agent,
            "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5",
            "Accept-Encoding": PACKINGS,
            "Connection": "close",
            **headers,
        }
        url = httpcore2.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=address.target.encode(),
        )
        given = [(b"Host", address.authority.encode()), *((k.encode(), v.encode()) for k, v in asked.items())]
        try:
            async with (
                httpcore2.AsyncConnectionPool(
                    network_backend=self._backend, ssl_context=await self._tls()
                ) as pool,
                pool.stream("GET", url, headers=given) as response,
            ):
                return await _answer(address, response, most)
        except ssl.SSLCertVerificationError as error:
            raise _untrusted(address, error) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
            raise _broken(address, error) from error

    async def _tls(self) -> ssl.SSLContext:
        if self._given_tls is None:
            self._given_tls = await anyio.to_thread.run_sync(httpcore2.default_ssl_context)
        return self._given_tls


class _Pinned(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that the guard has looked at, and never to a name."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @cached_property
    def _plain(self) -> httpcore2.AnyIOBackend:
        return httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first of the host's addresses that takes one. Raises as ``Guard.addresses`` does."""
        fault: Exception | None = None
        for address in await self._guard.addresses(host, port):
            try:
                return await self._plain.connect_tcp(str(address), port, timeout=CONNECT_SECONDS)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                fault = error
        raise ToolError(f"{host} does not answer on port {port}.") from fault

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


async def _answer(address: WebAddress, response: httpcore2.Response, most: int) -> Answer:
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reversed(response.headers)
    }
    body, cut = b"", False
    if response.status not in REDIRECTS:
        body, cut = await _body(response.aiter_stream(), headers.get("content-encoding", ""), most)
    return Answer(address=address, status=response.status, headers=headers, body=body, cut=cut)


async def _body(chunks: AsyncIterator[bytes], packing: str, most: int) -> tuple[bytes, bool]:
    """The body, unpacked, and whether there would have been more of it."""
    unpacking, parts, room, came = Unpacking(packing), list[bytes](), most, 0
    async for chunk in chunks:
        came += len(chunk)
        part = unpacking.fed(chunk, room + 1)
        parts.append(part[:room])
        if len(part) > room or came > most:
            return b"".join(parts), True
        room -= len(part)
    return b"".join(parts), False


def _next(address: WebAddress, location: str) -> WebAddress:
    try:
        leads = address.leads_to(location)
    except UrlRefused as error:
        raise ToolError(f"{address.host} redirects to what cannot be followed: {error}") from error
    if leads.site != address.site:
        raise Elsewhere(address, leads)
    if (address.scheme, leads.scheme) == ("https", "http"):
        raise ToolError(f"{address.host} redirects from https to http, which is not followed.")
    return leads


def _untrusted(address: WebAddress, error: BaseException) -> ToolError:
    why = getattr(error, "verify_message", "") or "it was refused"
    return ToolError(
        f"The certificate of {address.host} cannot be trusted ({why}), so nothing was asked of it."
    )


def _broken(address: WebAddress, error: Exception) -> ToolError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _untrusted(address, cause)
        cause = cause.__cause__ or cause.__context__
    kind = (
        "does not speak HTTP that can be understood"
        if isinstance(error, httpcore2.ProtocolError)
        else "hung up"
    )
    return ToolError(f"{address.host} {kind}.")
