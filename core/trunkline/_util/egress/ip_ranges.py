"""The ranges of IP addresses that are not public internet addresses. No I/O.

They follow the registries of special-purpose addresses (RFC 6890 and later entries of IANA), with the metadata
addresses of clouds. In IPv6 only 2000::/3 is public, without the ranges that embed an IPv4 address, because the
network determines where such a connection ends.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

RESERVED_V4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this host"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a provider's customers (CGNAT)"),
    ("127.0.0.0/8", "this machine (loopback)"),
    ("168.63.129.16/32", "a cloud's own service"),
    ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "for documentation"),
    ("192.31.196.0/24", "reserved for protocols"),
    ("192.52.193.0/24", "reserved for protocols"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved for protocols"),
    ("198.18.0.0/15", "for measurements"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)

RESERVED_V6: tuple[tuple[str, str], ...] = (
    ("::/128", "this host"),
    ("::1/128", "this machine (loopback)"),
    ("::/96", "an IPv4 address in IPv6"),
    ("::ffff:0:0/96", "an IPv4 address in IPv6"),
    ("::ffff:0:0:0/96", "an IPv4 address in IPv6"),
    ("64:ff9b::/96", "an IPv4 address in IPv6 (NAT64)"),
    ("64:ff9b:1::/48", "an IPv4 address in IPv6 (NAT64)"),
    ("2001::/32", "an IPv4 address in IPv6 (Teredo)"),
    ("2001::/23", "reserved for protocols"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "an IPv4 address in IPv6 (6to4)"),
    ("2620:4f:8000::/48", "reserved for protocols"),
    ("3ffe::/16", "reserved"),
    ("3fff::/20", "for documentation"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private"),
    ("ff00::/8", "multicast"),
)

_V4 = tuple((IPv4Network(net), why) for net, why in RESERVED_V4)
_V6 = tuple((IPv6Network(net), why) for net, why in RESERVED_V6)
_GIVEN_OUT = IPv6Network("2000::/3")


def reserved_reason(address: Address) -> str:
    """Return why the address is not a public internet address; empty when it is one."""
    if isinstance(address, IPv4Address):
        return next((why for net, why in _V4 if address in net), "")
    if address.scope_id is not None:
        return "of one link of this machine"
    why = next((why for net, why in _V6 if address in net), "")
    return why or ("" if address in _GIVEN_OUT else "reserved")
