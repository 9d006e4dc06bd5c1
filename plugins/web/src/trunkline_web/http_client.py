"""A request to one host: guarded and pinned, its answer decompressed and limited in size. Transport errors become a
ToolError.

The guard looks the host up and the connection goes to what it found; name and certificate are those of the address that
was asked for. Nothing of the environment is used, no proxy and no cookie. Loads the client's library.
"""

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cached_property
from typing import Any

import anyio
import httpcore2

from trunkline import ToolError
from trunkline.api.egress import HostGuard, WebAddress
from trunkline_web.decompression import ENCODINGS, Decompressor
from trunkline_web.fetcher import REDIRECTS, HttpResponse

CONNECT_SECONDS = 5.0
"""For each of a host's addresses."""


class HttpClient:
    """Asks. ``tls`` is what certificates are held to, by default the system's."""

    def __init__(self, guard: HostGuard, user_agent: str, tls: ssl.SSLContext | None = None) -> None:
        self._backend = _PinnedBackend(guard)
        self._user_agent = user_agent
        self._tls = tls or httpcore2.default_ssl_context()

    async def get(self, address: WebAddress, headers: Mapping[str, str], most: int) -> HttpResponse:
        """The answer to a GET, with at most so many bytes of its body. Raises ToolError."""
        asked = {
            "User-Agent": self._user_agent,
            "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5",
            "Accept-Encoding": ENCODINGS,
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
                httpcore2.AsyncConnectionPool(network_backend=self._backend, ssl_context=self._tls) as pool,
                pool.stream("GET", url, headers=given) as response,
            ):
                return await _read_response(address, response, most)
        except ssl.SSLCertVerificationError as error:
            raise _certificate_error(address, error) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
            raise _connection_error(address, error) from error


class _PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that the guard has checked, and never to a name."""

    def __init__(self, guard: HostGuard) -> None:
        self._guard = guard

    @cached_property
    def _network_backend(self) -> httpcore2.AsyncNetworkBackend:
        return httpcore2.AnyIOBackend()  # pyright: ignore[reportReturnType] - it takes the case without anyio

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
        for address in await self._guard.resolve_allowed(host, port):
            try:
                return await self._network_backend.connect_tcp(str(address), port, timeout=CONNECT_SECONDS)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                fault = error
        raise ToolError(f"{host} does not answer on port {port}.", kind="unavailable") from fault

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


async def _read_response(address: WebAddress, response: httpcore2.Response, most: int) -> HttpResponse:
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reversed(response.headers)
    }
    body, cut = b"", False
    if response.status not in REDIRECTS:
        body, cut = await _read_body(response.aiter_stream(), headers.get("content-encoding", ""), most)
    return HttpResponse(address=address, status=response.status, headers=headers, body=body, cut=cut)


async def _read_body(chunks: AsyncIterator[bytes], packing: str, most: int) -> tuple[bytes, bool]:
    """The body, unpacked, and whether there would have been more of it."""
    unpacking, parts, room, came = Decompressor(packing), list[bytes](), most, 0
    async for chunk in chunks:
        came += len(chunk)
        part = unpacking.feed(chunk, room + 1)
        parts.append(part[:room])
        if len(part) > room or came > most:
            return b"".join(parts), True
        room -= len(part)
    return b"".join(parts), False


def _certificate_error(address: WebAddress, error: BaseException) -> ToolError:
    why = getattr(error, "verify_message", "") or "it was refused"
    return ToolError(
        f"The certificate of {address.host} cannot be trusted ({why}), so no request was sent.",
        kind="upstream_error",
    )


def _connection_error(address: WebAddress, error: Exception) -> ToolError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate_error(address, cause)
        cause = cause.__cause__ or cause.__context__
    kind = "does not speak valid HTTP" if isinstance(error, httpcore2.ProtocolError) else "hung up"
    return ToolError(f"{address.host} {kind}.", kind="upstream_error")
