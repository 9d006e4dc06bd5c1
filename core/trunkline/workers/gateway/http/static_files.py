"""The files of a web app at ``/``: found when the gateway starts, served without a credential.

The list of files decides what is open. A path outside it needs a credential as before, whatever lies in the folder.
"""

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.gateway.access import StaticSite
from trunkline.plugins.ownership import OwnedItem
from trunkline.workers.gateway.http.scoped_route import ScopedRoute, ScopedWebSocketRoute

log = logging.getLogger(__name__)

MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""The types of files that are served. There is none for data, because nothing that is open contains data."""

FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
INDEX = "index.html"

SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
}
"""A page may load nothing from elsewhere and run no inline script, and no other page may contain it."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that is served at ``path``, with its compressed form if there is one."""

    path: str
    file: Path
    compressed: Path | None
    immutable: bool

    async def respond(self, request: Request) -> Response:
        """Send the file. A file that was removed since the start is not found."""
        packed = self.compressed is not None and "gzip" in request.headers.get("accept-encoding", "")
        source = self.compressed if packed and self.compressed is not None else self.file
        try:
            content = await anyio.Path(source).read_bytes()
        except OSError:
            return Response(status_code=404)
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {
            **SECURITY_HEADERS,
            "cache-control": "public, max-age=31536000, immutable" if self.immutable else "no-cache",
            "etag": tag,
            **({"vary": "accept-encoding"} if self.compressed is not None else {}),
        }
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        packing = {"content-encoding": "gzip"} if packed else {}
        return Response(content, headers={**headers, **packing}, media_type=MEDIA_TYPES[self.file.suffix])


def site_routes(
    site: OwnedItem[StaticSite] | None, routes: Sequence[ScopedRoute | ScopedWebSocketRoute]
) -> tuple[ScopedRoute, ...]:
    """Return a route for each file of the site; none without a site. A file in a folder of ``routes``, such as
    ``/api``, is not served, so that no file stands in for a route, of this version or the next."""
    if site is None:
        return ()
    taken = {"x", *(_top(route.path) for route in routes)}
    found = []
    for file in _files(site.item):
        if _top(file.path) in taken:
            log.error("%s: the file %s is not served: the path belongs to routes", site.owner, file.path)
        else:
            found.append(ScopedRoute(file.path, file.respond, methods=["GET"], scope=None))
    if not any(route.path == "/" for route in found):
        log.error("%s: there is no page at /: %s has no %s", site.owner, site.item.folder, INDEX)
    return tuple(found)


def _top(path: str) -> str:
    """Return the first part of a path."""
    return path.split("/")[1]


def _files(site: StaticSite) -> Iterator[StaticFile]:
    """Yield the files that may be served, in the order of their names."""
    for file in sorted(_regular_files(site.folder)):
        name = file.relative_to(site.folder).as_posix()
        packed = file.with_name(f"{file.name}.gz")
        yield StaticFile(
            path="/" if name == INDEX else f"/{name}",
            file=file,
            compressed=packed if packed.is_file() and not packed.is_symlink() else None,
            immutable=name.startswith(f"{site.immutable}/"),
        )


def _regular_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that are no links, are not hidden and have a known type."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or not FILE_NAME.fullmatch(entry.name):
            continue
        if entry.is_dir():
            yield from _regular_files(entry)
        elif entry.suffix in MEDIA_TYPES and entry.is_file():
            yield entry
