"""Settings over HTTP: the forms that a client shows, and changes that go into the same file as those of the CLI."""

import tomllib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from trunkline.contracts.audit.subjects import AUDIT
from trunkline.testing.platform import clean_environ

from .conftest import Environment, started_environment, until

pytestmark = pytest.mark.anyio

LOCKED = "TRUNKLINE_PLUGINS__GIT__MEMORY_MB"
KEY = "sk-proj-" + "Zb4" * 16


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    """A platform that was started with a setting in its environment."""
    async with started_environment(environ={**clean_environ(), LOCKED: "600"}) as env:
        yield env


async def sections(env: Environment) -> dict[str, Any]:
    response = await env.http.get("/api/settings")
    assert response.status_code == 200, response.text
    return {one["id"]: one for one in response.json()["sections"]}


async def change(env: Environment, section: str, **values: Any) -> httpx.Response:
    return await env.http.patch(f"/api/settings/{section}", json={"values": values})


def written(env: Environment) -> dict[str, Any]:
    file = env.platform.home.path / "trunkline.toml"
    return tomllib.loads(file.read_text()) if file.exists() else {}


def reason(response: httpx.Response, field: str) -> str:
    """Why a field was refused."""
    body = response.json()
    assert (response.status_code, body["code"]) == (400, "invalid_request"), response.text
    assert body["metadata"]["field"] == f"/values/{field}"
    said: str = body["metadata"]["reason"]
    return said


async def test_mb_f20_each_section_has_a_schema_and_its_values(env: Environment) -> None:
    """MB-F20: a client can make a form of text, numbers, choices, lists and references to secrets."""
    found = await sections(env)
    web = found["plugins.web"]
    fields = web["schema"]["properties"]
    assert web["owner"] == "trunkline-web" and "search engine" in web["schema"]["description"]
    assert fields["search"]["enum"] == ["auto", "brave", "searxng"] and web["values"]["search"] == "auto"
    assert fields["timeout"]["maximum"] == 120 and fields["allow"]["readOnly"]
    assert web["schema"]["$defs"]["Secret"]["required"] == ["env"]
    shell = found["plugins.shell"]["schema"]["properties"]
    assert shell["path"]["items"]["readOnly"], "no path is changed from afar"
    assert found["gateway"]["values"]["default_block"] == "main" and "host" not in found["gateway"]["values"]
    assert set(found["runtime"]["schema"]["properties"]) == {"provider_adapter"}
    assert "bus" not in found and "permissions" not in found
    listed = (await env.http.get("/api/plugins")).json()["plugins"]
    asks = next(one for one in listed if one["owner"] == "trunkline-web")["asks"]
    assert asks["effects"] == ["read"] and "BRAVE_API_KEY" in asks["secrets"]


async def test_a_change_is_written_to_the_file_and_waits_for_a_restart(env: Environment) -> None:
    """Comments stay, the answer says that a restart is needed, and none is once the old value is back."""
    file = env.platform.home.path / "trunkline.toml"
    file.write_text(f"# mine\n{file.read_text() if file.exists() else ''}")
    assert not (await sections(env))["plugins.git"].get("restart_needed", False)
    response = await change(env, "plugins.git", timeout=90, protected_branches=["main", "live"])
    assert response.status_code == 200, response.text
    assert response.json()["restart_needed"] and response.json()["values"]["timeout"] == 90
    assert file.read_text().startswith("# mine")
    assert written(env)["plugins"]["git"] == {"timeout": 90, "protected_branches": ["main", "live"]}
    back = (await change(env, "plugins.git", timeout=None, protected_branches=None)).json()
    assert not back.get("restart_needed", False) and back["values"]["timeout"] == 120.0

    async def recorded() -> bool:
        entry = await env.bus.last(AUDIT)
        return entry is not None and entry.data.event == "settings" and "timeout" in entry.data.why

    await until(recorded)


async def test_a_key_is_a_reference_and_never_a_value(env: Environment) -> None:
    """The name of a variable is written and shown, with whether it is set. A key is refused, and not repeated."""
    shown = (await change(env, "adapters.openai", api_key={"env": "TRUNKLINE_TEST_NO_KEY"})).json()
    assert shown["values"]["api_key"] == {"env": "TRUNKLINE_TEST_NO_KEY"}
    assert shown["secrets"] == {"TRUNKLINE_TEST_NO_KEY": False}
    before = written(env)
    for field, value in (("api_key", KEY), ("api_key", {"env": KEY}), ("model", KEY)):
        refused = await change(env, "adapters.openai", **{field: value})
        assert KEY not in refused.text and reason(refused, field)
    assert KEY not in str(await sections(env)) and written(env) == before
    await change(env, "adapters.openai", api_key=None)


@pytest.mark.parametrize(
    ("section", "field", "value", "said"),
    [
        ("plugins.git", "timeout", "soon", "must be a number, not text"),
        ("plugins.git", "timeout", 0, "must be a number >= 1"),
        ("plugins.web", "search", "gopher", "cannot be 'gopher'"),
        ("adapters.openai", "base_url", "nowhere", "not a web address"),
        ("adapters.openai", "base_url", "https://thief.example/v1", "Keys are sent to this address"),
        ("adapters.openai", "base_url", "http://127.0.0.1@thief.example", "Keys are sent to this address"),
        ("adapters.openai", "base_url", "http://127.0.0.1\\.thief.example", "Keys are sent to this address"),
        ("adapters.openai", "base_url", "http://localhost.thief.example", "Keys are sent to this address"),
        ("adapters.bedrock", "endpoint_url", "https://thief.example", "Keys are sent to this address"),
        ("adapters.engine", "url", "https://thief.example", "Keys are sent to this address"),
        ("plugins.web", "brave_url", "https://thief.example", "Keys are sent to this address"),
        ("adapters.openai", "api_key", {"env": "TWO\nLINES"}, "must be text matching"),
        ("adapters.openai", "api_key", {"env": ""}, "must be text matching"),
        ("runtime", "provider_adapter", "nobody", "no model adapter of this name"),
        ("telemetry", "log_level", "loud", "cannot be 'loud'"),
        ("plugins.git", "colour", "red", "no such setting"),
        ("gateway", "host", "0.0.0.0", "no such setting"),
        ("runtime", "tool_sources", ["/tmp"], "no such setting"),
        ("plugins.git", "isolation", "none", "no such setting"),
        ("plugins.web", "allow", ["127.0.0.1"], "changed in trunkline.toml"),
        ("plugins.sandbox", "readable_paths", ["/"], "changed in trunkline.toml"),
        ("plugins.budget", "blocks", {"main": {}}, "changed in trunkline.toml"),
    ],
)
async def test_a_refused_value_names_its_field_and_changes_nothing(
    env: Environment, section: str, field: str, value: Any, said: str
) -> None:
    """The same checks as at a start, and none of what opens the machine."""
    before = written(env)
    assert said in reason(await change(env, section, **{field: value}), field)
    assert written(env) == before


async def test_an_address_of_this_machine_or_without_a_key_is_changed(env: Environment) -> None:
    """A model server of this machine, and a search engine that gets no key. An address that stands in the file stays
    with the other fields of a form."""
    assert (await change(env, "adapters.openai", base_url="http://127.0.0.1:11434/v1")).status_code == 200
    assert (await change(env, "plugins.web", searxng_url="https://search.example.org")).status_code == 200
    file = env.platform.home.path / "trunkline.toml"
    file.write_text(file.read_text().replace("http://127.0.0.1:11434/v1", "https://models.example.org/v1"))
    kept = await change(env, "adapters.openai", base_url="https://models.example.org/v1", model="m")
    assert kept.status_code == 200, kept.text
    await change(env, "adapters.openai", base_url=None, model=None)
    await change(env, "plugins.web", searxng_url=None)


async def test_what_the_environment_sets_is_locked(env: Environment) -> None:
    """A change of the file would have no effect, so it is refused with the name of the variable."""
    shown = (await sections(env))["plugins.git"]
    assert shown["values"]["memory_mb"] == 600
    assert shown["locked"] == {"memory_mb": LOCKED}
    assert LOCKED in reason(await change(env, "plugins.git", memory_mb=700), "memory_mb")


async def test_an_unknown_section_or_a_broken_file_changes_nothing(env: Environment) -> None:
    """404 for the section; 409 while the file has a problem of its own, which is left as it is."""
    assert (await change(env, "bus", url="nats://elsewhere")).status_code == 404
    file = env.platform.home.path / "trunkline.toml"
    before = file.read_text() if file.exists() else ""
    file.write_text(f"{before}\n[gateway\n")
    broken = await change(env, "plugins.git", timeout=90)
    assert broken.status_code == 409 and "doctor" in broken.json()["metadata"]["reason"]
    assert str(env.platform.home.path) not in broken.text and file.read_text().endswith("[gateway\n")
    file.write_text(before)
