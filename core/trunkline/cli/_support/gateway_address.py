"""The addresses of the running gateway: for this machine, and for others."""

import socket
from typing import TYPE_CHECKING

from trunkline.errors import TrunklineError

if TYPE_CHECKING:
    from trunkline.config import Config


def local_address(config: "Config") -> str:
    """Return the address of the running gateway on this machine. Raises TrunklineError when none runs here."""
    from trunkline.home.paths import Home
    from trunkline.home.run_file import read_run_file

    run = read_run_file(Home.of(config))
    if run is None or not run.gateway:
        raise TrunklineError("No gateway runs on this home.", hint="Start it: trunkline up")
    scheme, _, place = run.gateway.partition("://")
    port = place.rpartition(":")[2]
    return run.gateway if place.startswith(("127.", "[")) else f"{scheme}://127.0.0.1:{port}"


def remote_address(config: "Config") -> str:
    """Return the address at which other machines reach the gateway; "" when it listens on this machine only."""
    from trunkline.runtime.http.gateway_certificate import is_loopback

    gateway = config.settings.gateway
    if gateway.allowed_hosts and gateway.tls_certificate is None:
        return f"https://{gateway.allowed_hosts[0]}"
    if is_loopback(gateway.host):
        return ""
    if gateway.allowed_hosts:
        return f"https://{gateway.allowed_hosts[0]}:{local_address(config).rpartition(':')[2]}"
    host = socket.gethostname() if gateway.host in ("0.0.0.0", "::") else gateway.host
    scheme = "https" if gateway.tls_certificate is not None else "http"
    return f"{scheme}://{host}:{local_address(config).rpartition(':')[2]}"
