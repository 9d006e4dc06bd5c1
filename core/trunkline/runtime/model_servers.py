"""Finds model servers with OpenAI's protocol at their default addresses on this machine, and lists their models.

Only ``trunkline init`` and the first steps of the web app search, after announcing it. Uses only the standard library.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

PROBE_TIMEOUT = 2.0
"""Seconds that a server on this machine may take to answer."""

LARGEST = 1_000_000
"""Largest number of bytes that are read of a list of models."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server. ``url`` is its address for OpenAI's protocol, ``models`` are the names of the models that it
    offers. ``adapter`` is the adapter for its native API, "" if there is none.
    """

    name: str
    url: str
    models: tuple[str, ...] = ()
    adapter: str = ""


def default_servers(environ: Mapping[str, str] = os.environ) -> tuple[ModelServer, ...]:
    """Return the default addresses of the known servers on this machine. ``OLLAMA_HOST`` changes that of Ollama."""
    return (
        ModelServer("Ollama", f"http://{_ollama(environ)}/v1", adapter="ollama"),
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
        return replace(server, models=_list_models(server.url))
    except (OSError, ValueError):
        return None


def _list_models(url: str) -> tuple[str, ...]:
    """Return the models that the server at an address offers.

    Raises:
        OSError: nothing answers there, or the server refuses the request.
        ValueError: the answer is not a list of models.
    """
    asked = urllib.request.Request(f"{url.rstrip('/')}/models")
    with _opener().open(asked, timeout=PROBE_TIMEOUT) as answer:
        document = json.loads(answer.read(LARGEST))
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise ValueError("it answers, but without a list of models")
    return tuple(str(one["id"]) for one in document["data"] if isinstance(one, dict) and one.get("id"))


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect and uses no proxy, so that only this machine is asked."""
    return urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None
