"""Gets a page: bounded in time, and along redirects within its site, each of which is looked at like an address."""

import re
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from trunkline import ToolError
from trunkline.api.egress import HostGuard, UrlRefused, WebAddress
from trunkline.api.text import escape_tag
from trunkline.api.tool import ToolErrorKind

if TYPE_CHECKING:
    from trunkline_web.http_client import HttpClient

LARGEST = 8 * 1024 * 1024
"""Bytes of a body, packed or not. What is longer is cut."""

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})


_TYPE = re.compile(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,80}")


class CrossSiteRedirectError(ToolError):
    """A redirect to another host. It is not followed: who allowed this host has not allowed that one."""

    kind: ToolErrorKind = "upstream_error"

    def __init__(self, came: WebAddress, leads: WebAddress) -> None:
        super().__init__(
            f"{came.url[:500]} leads to another host, {leads.host}, and was not followed. "
            f"If that is wanted, call the tool with {leads.url[:1000]}."
        )


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The final response of a server. The names of ``headers`` are in lower case; ``cut`` is true if the body was
    longer."""

    address: WebAddress
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def media_type(self) -> str:
        """Such as ``text/html``; empty when the server says nothing, or what is none."""
        said = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return said if _TYPE.fullmatch(said) else ""

    @property
    def charset(self) -> str:
        """The encoding that the server declares; empty when it declares none."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""


class PageFetcher:
    """Gets pages. ``seconds`` is for a page with its redirects; ``tls`` is what certificates are held to."""

    def __init__(
        self, guard: HostGuard, *, seconds: float, user_agent: str, tls: ssl.SSLContext | None = None
    ) -> None:
        self._guard = guard
        self._seconds = seconds
        self._user_agent = user_agent
        self._tls = tls
        self._wire: HttpClient | None = None

    async def get(
        self,
        address: WebAddress,
        *,
        headers: Mapping[str, str] | None = None,
        most: int = LARGEST,
        redirects: int = MOST_REDIRECTS,
    ) -> HttpResponse:
        """Get at most so many bytes of a page, with whatever status. So many redirects within the site are followed;
        with none a redirect is the answer.

        Raises:
            CrossSiteRedirectError: it leads to another host.
            ToolError: it cannot be had; the text says why.
        """
        wire = await self._http_client()
        try:
            with anyio.fail_after(self._seconds):
                return await _follow_redirects(wire, address, headers or {}, most, redirects)
        except TimeoutError:
            raise ToolError(
                f"{address.host} did not send the page within {self._seconds:g} seconds.",
                kind="timeout",
            ) from None

    async def _http_client(self) -> "HttpClient":
        """Return the HTTP client. Its library is imported on first use."""
        if self._wire is None:
            self._wire = await anyio.to_thread.run_sync(self._load_client)
        return self._wire

    def _load_client(self) -> "HttpClient":
        from trunkline_web.http_client import HttpClient

        return HttpClient(self._guard, self._user_agent, self._tls)


async def _follow_redirects(
    wire: "HttpClient", address: WebAddress, headers: Mapping[str, str], most: int, redirects: int
) -> HttpResponse:
    for _ in range(redirects + 1):
        answer = await wire.get(address, headers, most)
        leads = answer.headers.get("location")
        if answer.status not in REDIRECTS or leads is None or not redirects:
            return answer
        address = _redirect_target(address, leads)
    raise ToolError(
        f"{address.host} redirects more than {redirects} times, which is not followed.", kind="upstream_error"
    )


def _redirect_target(address: WebAddress, location: str) -> WebAddress:
    try:
        leads = address.resolve_link(location)
    except UrlRefused as error:
        raise ToolError(
            f"{address.host} redirects to an address that cannot be followed: {escape_tag(str(error))}",
            kind="upstream_error",
        ) from error
    if leads.site != address.site:
        raise CrossSiteRedirectError(address, leads)
    if (address.scheme, leads.scheme) == ("https", "http"):
        raise ToolError(
            f"{address.host} redirects from https to http, which is not followed.", kind="upstream_error"
        )
    return leads
