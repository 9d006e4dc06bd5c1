"""Finds model servers with OpenAI's protocol at their default addresses on this machine, and lists their models.

Only ``trunkline init`` searches, after announcing it. Uses only the standard library.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

PROBE_TIMEOUT = 2.0
"""Seconds that a server on this machine may take to answer."""

LARGEST = 1_000_000
"""Largest number of bytes that are read of a list of models."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server. ``models`` are the names of the models that it offers."""

    name: str
    url: str
    models: tuple[str, ...] = ()


def default_servers(environ: Mapping[str, str] = os.environ) -> tuple[ModelServer, ...]:
    """Return the default addresses of the known servers on this machine. ``OLLAMA_HOST`` changes that of Ollama."""
    return (
        ModelServer("Ollama", f"http://{_ollama(environ)}/v1"),
        ModelServer("LM Studio", "http://127.0.0.1:1234/v1"),
        ModelServer("vLLM", "http://127.0.0.1:8000/v1"),
    )


def _ollama(environ: Mapping[str, str]) -> str:
    """Return host and port of ``OLLAMA_HOST`` if it is this machine, otherwise the default."""
    given = environ.get("OLLAMA_HOST", "")
    try:
        found = urlsplit(given if "://" in given else f"//{given}")
        host, port = found.hostname or "", found.port or 11434
    except ValueError:
        host, port = "", 11434
    return f"127.0.0.1:{port}" if host in (*LOOPBACK, "0.0.0.0", "") else "127.0.0.1:11434"


def probe_servers(servers: Iterable[ModelServer]) -> list[ModelServer]:
    """Return the servers that answer, with their models."""
    with ThreadPoolExecutor() as threads:
        return [found for found in threads.map(_offer, servers) if found is not None]


def _offer(server: ModelServer) -> ModelServer | None:
    try:
        return ModelServer(server.name, server.url, list_models(server.url))
    except (OSError, ValueError):
        return None


def list_models(url: str, key: str = "", seconds: float = PROBE_TIMEOUT) -> tuple[str, ...]:
    """Return the models that the server at an address offers.

    Raises:
        OSError: nothing answers there, or the server refuses the request.
        ValueError: the address is not valid, or the answer is not a list of models.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    asked = urllib.request.Request(f"{url.rstrip('/')}/models", headers=headers)
    with _opener(url).open(asked, timeout=seconds) as answer:
        document = json.loads(answer.read(LARGEST))
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise ValueError("it answers, but without a list of models")
    return tuple(str(one["id"]) for one in document["data"] if isinstance(one, dict) and one.get("id"))


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect, which could send the key to another host, and uses no proxy for this
    machine.
    """
    local = urlsplit(url).hostname in LOOPBACK
    return urllib.request.build_opener(_NoRedirect, *([urllib.request.ProxyHandler({})] if local else []))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None
