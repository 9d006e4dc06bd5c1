"""Untrusted addresses: which are valid, and which hosts may be reached."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.egress import HostGuard as HostGuard
    from trunkline._util.egress import HostRefused as HostRefused
    from trunkline._util.egress import HostUnreachable as HostUnreachable
    from trunkline._util.egress import UrlRefused as UrlRefused
    from trunkline._util.egress import WebAddress as WebAddress
    from trunkline._util.egress import parse_url as parse_url
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
