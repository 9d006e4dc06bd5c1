"""Parses URLs that a model or a page provides, and refuses hosts outside the public internet."""

from trunkline._util.egress.host_guard import HostGuard, HostRefused, HostUnreachable
from trunkline._util.egress.urls import UrlRefused, WebAddress, parse_url

__all__ = ["HostGuard", "HostRefused", "HostUnreachable", "UrlRefused", "WebAddress", "parse_url"]
