"""Addresses of the web that somebody else chose: which are addresses at all, and which may be connected to.

``urls`` reads an address · ``ranges`` says what is not the internet · ``guard`` looks up and refuses.
"""

from trunkline._util.egress.host_guard import HostGuard, HostRefused, HostUnreachable
from trunkline._util.egress.urls import UrlRefused, WebAddress, parse_url

__all__ = ["HostGuard", "HostRefused", "HostUnreachable", "UrlRefused", "WebAddress", "parse_url"]
