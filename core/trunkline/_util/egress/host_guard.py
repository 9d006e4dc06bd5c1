"""Resolves host names that a model, a page or a redirect chose, and permits only public internet addresses.

A name is resolved once per connection, all its addresses are checked, and the caller must connect to a checked
address. So a resolver that answers differently the next time (DNS rebinding) has no effect. The owner can permit
other hosts (this machine, private networks, cloud metadata services) by address or by name.
"""

import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import anyio

from trunkline._util.egress.ip_ranges import Address, Network, reserved_reason
from trunkline.errors import ToolError, ToolErrorKind

PORTS = frozenset({80, 443})
"""The ports of web pages. Other ports belong to other services, to which no connection is permitted."""

MAX_ADDRESSES = 8

_ENTRY = re.compile(
    r"\[(?P<v6>[^\]]*)\](?::(?P<port6>[0-9]{1,5}))?|(?P<name>[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?|(?P<bare>[^\[\]]*::?[^\[\]]*)"
)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host. Raises OSError when there are none."""


class HostRefused(ToolError):
    """A connection to the host is not permitted. The text states the reason and how the owner can permit it."""

    kind: ToolErrorKind = "permission_denied"


class HostUnreachable(ToolError):
    """The host cannot be resolved or does not answer."""

    kind: ToolErrorKind = "unavailable"


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host by the system's resolver."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class HostGuard:
    """Decides which hosts may be connected to.

    ``allow`` lists the additional hosts that the owner permits: ``10.0.0.5``, ``10.1.0.0/16``, ``wiki.intern``, each
    with a port (``10.0.0.5:8080``, ``[fd00::5]:8080``) or for the usual ports. ``ports`` are additional ports of
    internet hosts. ``setting`` names the setting for ``allow``, for the text of a refusal.

    Guarantees: every returned address was checked and is permitted.

    Not guaranteed: that a later lookup of the same name gives the same addresses, so connect to a returned address.

    Raises:
        ValueError: an entry of ``allow`` is not valid.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        ports: Iterable[int] = (),
        *,
        setting: str = "",
        resolve: Resolve = resolve_host,
    ) -> None:
        self._allowed = [_Allowed(entry) for entry in allow]
        self._ports = PORTS | frozenset(ports)
        self._cure = f" A person can open it: {setting}." if setting else ""
        self._resolve = resolve

    async def resolve_allowed(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a host, all of which are permitted. Connect to one of them without another lookup.

        Raises:
            HostRefused: the host, or one of its addresses, is not permitted.
            HostUnreachable: there is no such host.
        """
        found = await self._found(host, port)
        for address in found:
            self._refuse(host, address, port)
        return found[:MAX_ADDRESSES]

    async def _found(self, host: str, port: int) -> list[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        try:
            texts = await self._resolve(host, port)
            found = [ip_address(text) for text in dict.fromkeys(texts)]
        except (OSError, ValueError, UnicodeError) as error:
            raise HostUnreachable(f"There is no host {host}: its name cannot be resolved.") from error
        if not found:
            raise HostUnreachable(f"There is no host {host}: its name cannot be resolved.")
        return found

    def _refuse(self, host: str, address: Address, port: int) -> None:
        if any(one.opens(host, address) and port in (one.ports or self._ports) for one in self._allowed):
            return
        why = reserved_reason(address)
        if why:
            raise HostRefused(
                f"{host} may not be reached: {_address_text(host, address)} is {why}, and only the internet is open."
                f"{self._cure} Nothing was sent."
            )
        if port not in self._ports:
            raise HostRefused(
                f"{host} may not be reached on port {port}: the allowed ports are "
                f"{', '.join(map(str, sorted(self._ports)))}.{self._cure} Nothing was sent."
            )


class _Allowed:
    """An entry of the owner's list of permitted hosts. ``ports`` are the ports that it names; without any it permits
    the usual ports.
    """

    def __init__(self, entry: str) -> None:
        name, port = _split(entry.strip())
        self.ports = frozenset() if port is None else frozenset({port})
        self._name = name.lower()
        self._network: Network | None = None
        try:
            self._network = ip_network(name, strict=False)
        except ValueError:
            if not name or "/" in name or ":" in name or not name.isascii():
                raise ValueError(f"{entry!r} is not a host, address or network") from None

    def opens(self, host: str, address: Address) -> bool:
        """Report whether the entry permits this address."""
        if isinstance(self._network, IPv4Network | IPv6Network):
            return address.version == self._network.version and address in self._network
        return host == self._name


def _split(entry: str) -> tuple[str, int | None]:
    """Return host and port. Raises ValueError for an invalid port."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise ValueError(f"{entry!r} is not a host, address or network")
    name = found["v6"] or found["bare"] or found["name"] or ""
    port = found["port6"] or found["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise ValueError(f"{entry!r} has no valid port")
    return name, None if port is None else int(port)


def _address_text(host: str, address: Address) -> str:
    return "it" if host == str(address) else "what its name stands for"
