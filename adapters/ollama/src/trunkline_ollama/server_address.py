"""The address of the Ollama server, as the vendor's own clients read it from ``OLLAMA_HOST``. Pure functions."""

from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:11434"
CLOUD_HOST = "ollama.com"

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERY_INTERFACE = ("0.0.0.0", "::")
"""Addresses on which a server listens and to which no client connects: ``OLLAMA_HOST`` configures the server too."""

PORTS = {"http": 80, "https": 443}
"""The port of an address that begins with the scheme. Any other address has Ollama's own port, 11434."""


def parse_host(host: str) -> str:
    """Return the base URL of a value of ``OLLAMA_HOST``, such as ``nas:8080`` or ``https://models.example``.

    Raises:
        ValueError: the value is no address.
    """
    scheme, separator, rest = host.strip().rpartition("://")
    parts = urlsplit(f"//{rest.strip()}")
    name = parts.hostname or "127.0.0.1"
    if any(character.isspace() for character in rest) or scheme not in ("", *PORTS):
        raise ValueError("not an address")
    if name in EVERY_INTERFACE:
        name = "127.0.0.1"
    port = parts.port or (PORTS[scheme] if separator else 11434)
    shown = f"[{name}]" if ":" in name else name
    path = parts.path.strip("/")
    return f"{scheme or 'http'}://{shown}:{port}{f'/{path}' if path else ''}"


def is_loopback(url: str) -> bool:
    """Report whether the address is this machine's own."""
    return urlsplit(url).hostname in LOOPBACK


def is_cloud(url: str) -> bool:
    """Report whether the address is the vendor's own service, over an encrypted connection."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "https" and (host == CLOUD_HOST or host.endswith(f".{CLOUD_HOST}"))
