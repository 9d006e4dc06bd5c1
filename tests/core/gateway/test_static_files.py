"""The files of a web app at ``/``: open, but nothing beside them, and never in place of a route."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import trunkline
from trunkline.api.gateway import HttpRoute, StaticSite

from .conftest import Environment, started_environment

pytestmark = pytest.mark.anyio

PAGE = "<!doctype html><title>App</title>"
SECRET = "a secret beside the site"

FILES = {
    "index.html": PAGE,
    "about/index.html": PAGE,
    "assets/app-1a2b.js": "start()",
    "data.json": SECRET,
    ".hidden.txt": SECRET,
    ".git/config.txt": SECRET,
    "a file.txt": SECRET,
    "conversations/messages.html": SECRET,
    "v1/models/main.txt": SECRET,
    "api/new.txt": PAGE,
    "api/blocks/main.html": SECRET,
    "x/Pages/own.html": SECRET,
}


class Pages:
    """A plugin with a site, some of whose files have the paths of routes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @trunkline.hookimpl
    def trunkline_static_sites(self) -> list[StaticSite]:
        return [StaticSite(self.folder)]

    @trunkline.hookimpl
    def trunkline_http_routes(self) -> list[HttpRoute]:
        return [HttpRoute("/own.html", ("POST",), lambda request: request)]

    name = "pages"


def make_site(folder: Path) -> Path:
    site = folder / "site"
    for name, text in FILES.items():
        file = site / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "secret.txt").write_text(SECRET)
    (site / "link.txt").symlink_to(folder / "secret.txt")
    (site / "links").symlink_to(folder)
    (site / "assets/app-1a2b.js.gz").write_bytes(gzip.compress(b"start()"))
    return site


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Environment]:
    pages = Pages(make_site(tmp_path_factory.mktemp("pages")))
    async with started_environment(pages, without=("web_app",)) as env:
        yield env


@pytest.fixture
async def visitor(env: Environment) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a credential."""
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as client:
        yield client


async def test_the_page_is_open_under_a_strict_policy(visitor: httpx.AsyncClient) -> None:
    """``/`` is the page. It may run no inline script, load nothing from elsewhere, and be in no frame."""
    page = await visitor.get("/")
    assert (page.status_code, page.text) == (200, PAGE)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["x-content-type-options"] == "nosniff"
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert (await visitor.head("/")).headers["content-length"] == str(len(PAGE))
    assert (await visitor.get("/about/index.html")).text == PAGE


async def test_files_are_cached_by_their_content(visitor: httpx.AsyncClient) -> None:
    """Below ``assets`` a file never changes; every other file is compared by its tag. Both may be compressed."""
    script = await visitor.get("/assets/app-1a2b.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert (script.text, script.headers["content-encoding"]) == ("start()", "gzip")
    assert "immutable" in script.headers["cache-control"]
    plain = await visitor.get("/assets/app-1a2b.js", headers={"accept-encoding": "identity"})
    assert plain.text == "start()" and "content-encoding" not in plain.headers
    tag = (await visitor.get("/")).headers["etag"]
    assert (await visitor.get("/", headers={"if-none-match": tag})).status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/index.html", "/data.json", "/.hidden.txt", "/.git/config.txt", "/a%20file.txt", "/link.txt",
        "/links/secret.txt", "/assets/", "/assets", "/nowhere", "/../secret.txt", "/%2e%2e/secret.txt",
        "/assets/..%2f..%2fsecret.txt", "//secret.txt", "/assets/app-1a2b.js.gz", "/assets\\..\\..\\secret.txt",
    ],
)  # fmt: skip
async def test_nothing_beside_the_files_is_open(visitor: httpx.AsyncClient, path: str) -> None:
    """Links, hidden files, files of unknown types, folders and paths out of the folder need a credential, and with one
    they do not exist."""
    request = visitor.build_request("GET", "/")
    request.url = request.url.copy_with(raw_path=path.encode())
    refused = await visitor.send(request)
    assert refused.status_code == 401
    assert SECRET not in refused.text


@pytest.mark.parametrize(
    "path",
    ["/v1/models/main.txt", "/api/blocks/main.html", "/x/Pages/own.html", "/conversations/messages.html"],
)
async def test_no_file_stands_in_for_a_route(env: Environment, visitor: httpx.AsyncClient, path: str) -> None:
    """A file in a folder of routes, of ours or of a plugin, is not served."""
    assert (await visitor.get(path)).status_code == 401
    assert SECRET not in (await env.http.get(path)).text


async def test_routes_need_a_credential_beside_the_site(env: Environment, visitor: httpx.AsyncClient) -> None:
    """The site opens no route, and its own paths take no other method."""
    for path in ("/conversations", "/api/blocks", "/openapi.json", "/x/Pages/own.html", "/metrics"):
        assert (await visitor.get(path)).status_code == 401
    assert (await visitor.post("/", json={})).status_code == 405
    assert (await visitor.post("/conversations/messages", json={"content": "hi"})).status_code == 401
    assert (await visitor.get("/", headers={"host": "evil.example"})).status_code == 403
    assert env.monitor.seen == []


async def test_without_a_site_the_root_needs_a_credential() -> None:
    """An installation without the web app has no page at ``/``."""
    async with started_environment(without=("web_app",)) as env:
        async with httpx.AsyncClient(base_url=env.url, timeout=60) as client:
            assert (await client.get("/")).status_code == 401
        assert (await env.http.get("/")).status_code == 404


async def test_a_folder_that_is_not_there_opens_nothing(tmp_path: Path) -> None:
    """A site without files changes nothing else."""
    async with started_environment(Pages(tmp_path / "gone"), without=("web_app",)) as env:
        async with httpx.AsyncClient(base_url=env.url, timeout=60) as client:
            assert (await client.get("/")).status_code == 401
        assert (await env.http.get("/conversations")).status_code == 200
