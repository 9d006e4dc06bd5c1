"""The outbound guard: addresses outside of the public internet are refused under every name, except those that the
owner opens."""

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.egress import HostGuard, HostRefused, HostUnreachable
from trunkline._util.egress.ip_ranges import reserved_reason

CLOSED = (
    "0.0.0.0", "0.1.2.3", "10.0.0.5", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "169.254.169.254", "168.63.129.16", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.168.1.1", "198.18.0.1",
    "192.88.99.1", "203.0.113.9", "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::808:808", "64:ff9b:1::a00:5", "2002:7f00:1::", "2001:0:a::1", "2001:db8::1", "fe80::1", "fec0::1",
    "fc00::1", "fd00:ec2::254", "ff02::1", "100::1", "4000::1", "5f00::1", "3fff::1", "fe80::1%eth0",
)  # fmt: skip
OPEN = (
    "8.8.8.8",
    "1.1.1.1",
    "172.32.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "2606:4700:4700::1111",
    "2a00:1450::1",
)


def resolving(*answers: Sequence[str]) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    """Return a resolver that gives these answers in turn, and then the last one."""
    said = [*answers]

    async def resolve(host: str, port: int) -> Sequence[str]:
        return said.pop(0) if len(said) > 1 else said[0]

    return resolve


@pytest.mark.parametrize("address", CLOSED)
@pytest.mark.anyio
async def test_non_public_addresses_are_refused(address: str) -> None:
    """This holds for the address itself, and for a name that resolves to it, alone or among public addresses."""
    for guard in (
        HostGuard(resolve=resolving([address])),
        HostGuard(resolve=resolving(["8.8.8.8", address, "1.1.1.1"])),
    ):
        with pytest.raises(HostRefused, match="Nothing was sent"):
            await guard.resolve_allowed("rebound.example", 80)
    with pytest.raises(HostRefused, match=r"only the internet is open\. A person can open it: allow"):
        await HostGuard(setting="allow").resolve_allowed(address, 443)


@pytest.mark.parametrize("address", OPEN)
@pytest.mark.anyio
async def test_the_internet_is_open_on_the_ports_of_the_web(address: str) -> None:
    """Ports 80 and 443, and those that the owner adds."""
    assert list(map(str, await HostGuard().resolve_allowed(address, 443))) == [address]
    with pytest.raises(HostRefused, match="port 22: the allowed ports are 80, 443"):
        await HostGuard().resolve_allowed(address, 22)
    assert await HostGuard(ports=[8443]).resolve_allowed(address, 8443)


@given(st.ip_addresses())
def test_addresses_that_python_calls_private_are_refused(address: IPv4Address | IPv6Address) -> None:
    """The list here is never laxer than the standard library's, for any address."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert reserved_reason(address)


@given(st.ip_addresses(v=4))
def test_ipv4_addresses_embedded_in_ipv6_are_refused(address: IPv4Address) -> None:
    """IPv4 in IPv6 is refused even for a permitted inner address, because another host would translate it."""
    number = int(address)
    carried = (number, 0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80)
    assert all(reserved_reason(IPv6Address(one)) for one in carried)


@pytest.mark.parametrize(
    ("allow", "host", "address", "port"),
    [
        ("10.0.0.5", "10.0.0.5", "10.0.0.5", 80),
        ("10.0.0.0/24", "anything.example", "10.0.0.9", 443),
        ("wiki.intern", "wiki.intern", "192.168.7.7", 80),
        ("wiki.intern:8080", "wiki.intern", "192.168.7.7", 8080),
        ("10.0.0.5:8080", "10.0.0.5", "10.0.0.5", 8080),
        ("[fd00::5]:8080", "fd00::5", "fd00::5", 8080),
        ("fd00::/8", "fd00::5", "fd00::5", 443),
        ("example.com:8443", "example.com", "8.8.8.8", 8443),
    ],
)
@pytest.mark.anyio
async def test_the_owner_opens_by_address_network_name_and_port(
    allow: str, host: str, address: str, port: int
) -> None:
    """The listed host is open, on the listed port only, and no other name is."""
    guard = HostGuard([allow], resolve=resolving([address]))
    assert list(map(str, await guard.resolve_allowed(host, port))) == [address]
    with pytest.raises(HostRefused):
        await guard.resolve_allowed(host, 81)
    with pytest.raises(HostRefused):
        await HostGuard([allow], resolve=resolving(["192.168.99.1"])).resolve_allowed("other.example", port)


@pytest.mark.parametrize(
    "allow", ["", "http://10.0.0.5", "10.0.0.0/99", "host:0", "host:x", "bücher.example", "[::1"]
)
def test_an_allow_entry_without_effect_is_an_error(allow: str) -> None:
    """A typing error in the settings is reported, and opens nothing."""
    with pytest.raises(ValueError):
        HostGuard([allow])


@pytest.mark.anyio
async def test_a_host_that_cannot_be_found_is_reported() -> None:
    """No address, a resolver that fails, or one that answers nonsense."""

    async def failing(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    for resolve in (failing, resolving([]), resolving(["nonsense"])):
        with pytest.raises(HostUnreachable, match="There is no host"):
            await HostGuard(resolve=resolve).resolve_allowed("nowhere.example", 80)


def test_the_examples_are_addresses() -> None:
    """The lists above have the intended kinds of addresses."""
    assert all(reserved_reason(ip_address(one)) for one in CLOSED) and not any(
        reserved_reason(ip_address(one)) for one in OPEN
    )
