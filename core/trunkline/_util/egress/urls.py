"""Parses URLs of web pages strictly. An ambiguous URL is refused, so no other parser can interpret it differently.

No network. The parsed host is the host that policies name, that is resolved and connected to, and that is sent to the
server.
"""

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

import msgspec

from trunkline.errors import ToolError, ToolErrorKind

MAX_URL = 4096
PORTS = {"http": 80, "https": 443}

_FORM = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.DOTALL
)
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]*))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]|(?! )\s")
_SAFE = "!#$%&'()*+,/:;=?@[]~-._"


class UrlRefused(ToolError):
    """The text is not a valid URL of a web page; the message states the reason."""

    kind: ToolErrorKind = "invalid_arguments"


class WebAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The URL of a page. ``scheme`` is ``http`` or ``https``. ``host`` is an ASCII name or an IP address (IPv6
    without brackets). ``target`` is the path and the query, as they are sent.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port, in the form of the ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The complete URL, without a fragment."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def site(self) -> str:
        """The host without ``www.``, since both names have the same owner."""
        return self.host.removeprefix("www.")

    def resolve_link(self, link: str) -> "WebAddress":
        """Return the target of a link on this page, or of a redirect. Raises UrlRefused."""
        try:
            return parse_url(urljoin(self.url, link.strip()))
        except ValueError as error:
            raise UrlRefused(f"{link[:200]!r} is not a link that can be followed.") from error


def parse_url(text: str) -> WebAddress:
    """Parse a URL.

    Raises:
        UrlRefused: the URL has another scheme, a user or a password, or a host in an unusual notation; or it is not
            valid.
    """
    text = text.strip()
    shown = text if len(text) <= 200 else text[:197] + "..."
    if len(text) > MAX_URL:
        raise UrlRefused(f"{shown!r} is longer than {MAX_URL} characters.")
    found = _FORM.fullmatch(text)
    if found is None or _FORBIDDEN.search(text.partition("#")[0]):
        raise UrlRefused(
            f"{shown!r} is not the address of a web page. Write it whole, such as https://example.com/page."
        )
    scheme = found["scheme"].lower()
    if scheme not in PORTS:
        raise UrlRefused(
            f"{shown!r} is not the address of a web page: {scheme} is not used, only http and https."
        )
    if "@" in found["authority"]:
        raise UrlRefused("The address has a user or password in it, which is never sent. Leave it out.")
    parts = _HOST.fullmatch(found["authority"])
    if parts is None or not parts["host"]:
        raise UrlRefused(f"{shown!r} names no host.")
    target = quote(found["target"], safe=_SAFE)
    return WebAddress(
        scheme=scheme,
        host=_host(parts["host"]),
        port=_port(parts["port"], scheme),
        target=target if target.startswith("/") else f"/{target}",
    )


def _port(text: str | None, scheme: str) -> int:
    port = int(text) if text and len(text) <= 5 else PORTS[scheme]
    if (text and len(text) > 5) or not 0 < port < 65536:
        raise UrlRefused(f"{text!r} is not a port.")
    return port


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            raise UrlRefused(f"{text!r} is not an IPv6 address.") from None
        if address.scope_id is not None:
            raise UrlRefused(f"{text!r} names one of this machine's links, which is not used.")
        return str(address)
    host = _ascii(text).removesuffix(".")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _v4(host)
    if not host or len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise UrlRefused(f"{text[:200]!r} is not the name of a host.")
    return host


def _v4(host: str) -> str:
    """Return an IPv4 address in its usual notation. Programs interpret ``127.1``, ``0x7f000001`` and ``0177.0.0.1``
    differently.
    """
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise UrlRefused(
            f"{host[:200]!r} is an address in an unusual form. Write a host's name, or four decimal numbers."
        ) from None


def _ascii(text: str) -> str:
    """Return a name in the form of a DNS lookup: in lower case, with other scripts in their ASCII encoding."""
    if text.isascii():
        return text.lower()
    import idna

    try:
        return idna.encode(text, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise UrlRefused(f"{text[:200]!r} is not the name of a host.") from None
