"""Decides whether the gateway speaks TLS, and refuses plain HTTP in a network."""

import ipaddress

from trunkline.config.settings import GatewaySettings
from trunkline.errors import ConfigError
from trunkline.runtime.http.server_certificate import ServerCertificate


def gateway_certificate(settings: GatewaySettings) -> ServerCertificate | None:
    """Return the certificate of the gateway; None for plain HTTP.

    Raises:
        ConfigError: the files cannot be used, one of the two is missing, or the gateway would listen in a network
            without TLS.
    """
    if settings.tls_certificate is not None and settings.tls_key is not None:
        return ServerCertificate.read(settings.tls_certificate, settings.tls_key)
    if settings.tls_certificate is not None or settings.tls_key is not None:
        raise ConfigError(
            "Only one of gateway.tls_certificate and gateway.tls_key is set.",
            hint="Set both. A certificate is of no use without its key.",
        )
    if not is_loopback(settings.host) and not settings.behind_proxy:
        raise ConfigError(
            f"The gateway would listen on {settings.host} without TLS, so whoever shares the network could read along.",
            hint="Make a certificate: trunkline certificate. Or listen on 127.0.0.1. Behind a proxy with TLS, set "
            "gateway.behind_proxy = true.",
        )
    return None


def is_loopback(host: str) -> bool:
    """Report whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
