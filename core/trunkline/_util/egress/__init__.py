"""Addresses of the web that somebody else chose: which are addresses at all, and which may be connected to.

``urls`` reads an address · ``ranges`` says what is not the internet · ``guard`` looks up and refuses.
"""

from trunkline._util.egress.host_guard import Guard, HostRefused, Unreachable
from trunkline._util.egress.urls import UrlRefused, WebAddress, read_url

__all__ = ["Guard", "HostRefused", "Unreachable", "UrlRefused", "WebAddress", "read_url"]
