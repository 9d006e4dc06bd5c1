"""``trunkline auth``, ``pair`` and ``open``: who may enter, by commands of the owner's terminal."""

import json
from pathlib import Path

import httpx
import pytest

from tests.software_authenticator import Passkey
from trunkline.contracts.auth.client import AuthClient
from trunkline.testing.platform import Platform

from .conftest import Cli, Run

pytestmark = pytest.mark.anyio


async def me(running: Platform, token: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
        return await http.get("/api/me", headers={"authorization": f"Bearer {token}"})


async def test_a_collaborator_is_added_and_shut_out_by_commands(running: Platform, cli: Cli) -> None:
    """Create, share, issue a token, check, suspend and revoke; the token's text is printed once and nowhere else."""
    assert "Created anna" in await cli("auth", "create", "anna", "--name", "Anna Berg")
    assert "anna may chat in main" in await cli("auth", "share", "main", "anna")
    token = (await cli("auth", "tokens", "create", "anna", "--days", "7")).strip()
    assert token.startswith("tl_")
    assert (await me(running, token)).json()["display_name"] == "Anna Berg"
    for shown in (
        ("tokens",),
        ("tokens", "list", "--json"),
        ("export",),
        ("audit", "--json"),
        ("list", "--json"),
    ):
        text = await cli("auth", *shown)
        assert token not in text and "mac" not in json.dumps(text)
    assert (await cli("auth", "check", "anna", "chat", "block:main")).startswith("Yes")
    await cli("auth", "check", "anna", "approve", "block:main", status=1)
    await cli("auth", "share", "main", "anna", "--may", "approve")
    (row,) = (await cli("auth", "shared", "main")).splitlines()[1:]
    assert row.split()[:3] == ["main", "anna", "approve"]
    (shared,) = json.loads(await cli("auth", "shared", "--json"))["policies"]
    assert (shared["resource"], shared["subject"]) == ("block:main", "anna")
    assert (await cli("auth", "check", "anna", "approve", "block:main")).startswith("Yes")
    assert "not shared" in await cli("auth", "unshare", "main", "anna")
    await cli("auth", "check", "anna", "read", "block:main", status=1)
    assert json.loads(await cli("auth", "shared", "--json")) == {"policies": [], "unreadable": []}
    await cli("auth", "suspend", "anna")
    assert (await me(running, token)).status_code == 401
    await cli("auth", "activate", "anna")
    id = json.loads(await cli("auth", "tokens", "list", "--identity", "anna", "--json"))["tokens"][0]["id"]
    assert "Revoked" in await cli("auth", "tokens", "revoke", id)
    assert (await me(running, token)).status_code == 401
    assert "needs a terminal" in await cli("auth", "revoke", "anna", status=1)
    await cli("auth", "revoke", "anna", "--yes")
    events = [json.loads(line)["status"] for line in (await cli("auth", "audit", "--json")).splitlines()]
    assert {"identity_created", "access_granted", "token_issued", "token_revoked", "identity_changed"} <= {
        *events
    }


async def test_unknown_blocks_and_identities_are_refused(running: Platform, cli: Cli) -> None:
    """A block or an identity that does not exist is refused, and so is a share with somebody who was revoked."""
    await cli("auth", "create", "emma")
    assert "There is no block gardn" in await cli("auth", "share", "gardn", "emma", status=1)
    assert "There is no identity 'ema'" in await cli("auth", "share", "main", "ema", status=1)
    assert "There is no identity 'ema'" in await cli("auth", "tokens", "list", "--identity", "ema", status=1)
    assert "no access tokens" in await cli("auth", "tokens", "list", "--identity", "emma")
    await cli("auth", "revoke", "emma", "--yes")
    assert "was revoked" in await cli("auth", "share", "main", "emma", status=1)
    assert json.loads(await cli("auth", "export"))["policies"] == []


async def test_a_passkey_is_listed_and_removed_by_commands(running: Platform, cli: Cli) -> None:
    """The list shows no key; what the passkey opened ends with it."""
    url = running.url.replace("127.0.0.1", "localhost")
    passkey = Passkey(url)
    assert "There are no passkeys." in await cli("auth", "passkeys", "list")
    async with httpx.AsyncClient(base_url=url, timeout=60, headers={"origin": url}) as page:
        code = (await AuthClient(running.bus).start_pairing()).code
        await page.post("/api/pair", json={"code": code, "as": "cookie"})
        options = (await page.post("/api/passkeys/options")).json()["public_key"]
        made = await page.post("/api/passkeys", json={**passkey.register(options), "label": "laptop"})
        options = (await page.post("/api/passkeys/sign-in/options")).json()["public_key"]
        assert (await page.post("/api/passkeys/sign-in", json=passkey.sign_in(options))).status_code == 200
        id = made.json()["id"]
        shown = await cli("auth", "passkeys", "list", "--identity", "owner")
        assert id in shown and "laptop" in shown and "localhost" in shown
        for exported in (("passkeys", "list", "--json"), ("export",)):
            (shown_passkey,) = json.loads(await cli("auth", *exported))["passkeys"]
            assert shown_passkey["id"] == id and not {"public_key", "credential", "mac"} & set(shown_passkey)
        assert "ended sessions: 1" in await cli("auth", "passkeys", "remove", id)
        assert (await page.get("/api/me")).status_code == 401
    assert "There is no passkey" in await cli("auth", "passkeys", "remove", id, status=1)


async def test_the_terminal_recovers_from_lost_tokens(running: Platform, cli: Cli) -> None:
    """PA-F23: with every token ended by another key, the commands still work: they need none."""
    token = (await cli("auth", "tokens", "create", "owner", "--scope", "owner")).strip()
    assert "1 access tokens ended" in await cli("auth", "rotate-key", "--yes")
    assert (await me(running, token)).status_code == 401
    fresh = (await cli("auth", "tokens", "create", "owner", "--scope", "owner")).strip()
    assert (await me(running, fresh)).json()["scope"] == "owner"
    assert "owner" in await cli("auth", "whoami")


async def test_pair_prints_a_code_that_signs_in(running: Platform, cli: Cli) -> None:
    """The code works once; a phone needs an address, so without one the command says how to get one."""
    shown = await cli("pair")
    assert f"{running.url}/pair" in shown
    code = shown.split()[1]
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
        first = await http.post("/api/pair", json={"code": code})
        assert first.status_code == 200
        assert (await http.post("/api/pair", json={"code": code})).status_code == 401
    code = json.loads(await cli("pair", "--scope", "read", "--json"))["code"]
    assert await cli("pair", "--cancel") == "1 code ended.\n"
    assert json.loads(await cli("pair", "--cancel", "--json")) == {"ended": 0}
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
        assert (await http.post("/api/pair", json={"code": code})).status_code == 401


async def test_open_leads_to_a_page_without_a_token(running: Platform, cli: Cli, home: Path) -> None:
    """The link has a one-time code in its fragment, which no server and no log sees, and never a token."""
    link = (await cli("open", "--print")).strip()
    address, code = link.split("#")
    assert address == f"{running.url}/pair"
    assert running.token not in link
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
        answer = await http.post("/api/pair", json={"code": code, "as": "cookie"})
        assert answer.status_code == 200
        assert (await http.get("/api/me")).json()["kind"] == "session"


async def test_open_needs_a_running_gateway(cli: Cli) -> None:
    """Nothing is started for it: the page would be gone with the command."""
    assert "No gateway runs" in await cli("open", "--print", status=1)


def test_the_browser_gets_a_page_that_only_its_owner_reads(tmp_path: Path) -> None:
    """Other users see the arguments of a browser, so the link is in a private file; the next command removes it."""
    from trunkline.cli.open import _page

    first = _page(tmp_path, "http://127.0.0.1:1/pair#code")
    assert first.stat().st_mode & 0o777 == 0o600
    assert "pair#code" in first.read_text()
    assert not first.exists() or _page(tmp_path, "x").exists()
    assert not first.exists()


def test_commands_without_a_platform_start_one(trunkline: Run) -> None:
    """The owner's terminal needs no running platform to see who may enter."""
    done = trunkline("auth", "list")
    assert done.returncode == 0, done.stderr
    assert "owner" in done.stdout
