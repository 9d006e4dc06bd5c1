"""FS-2, FS-6 and FS-8: capability is added and removed by configuration and files; memory is unchanged."""

import json
import shutil
import textwrap
from pathlib import Path

import httpx
import pytest

from trunkline._util.untrusted_text import unwrap_tool_result

from .client import Reply
from .conftest import ConformancePlatform, OpenPlatform, client_of
from .processes import git

pytestmark = pytest.mark.anyio

SIMILAR = textwrap.dedent('''
    """A search of another kind, with an index of its own that can be thrown away."""
    import json

    import trunkline


    class Similar:
        def __init__(self, settings):
            self._index = settings.home / "cache" / "similar.json"

        @property
        def tool(self):
            @trunkline.tool(effect="read")
            async def memory_similar(context: trunkline.ToolContext, query: str) -> list[str]:
                """Find texts that share the most letters with a query."""
                if not self._index.exists():
                    files = [entry.path for entry in await context.memory.list("", recursive=True)
                             if entry.path.endswith(".md")]
                    texts = {path: (await context.memory.read(path)).content for path in files}
                    self._index.write_text(json.dumps(texts))
                texts = json.loads(self._index.read_text())
                return sorted(texts, key=lambda path: -len(set(query) & set(texts[path])))[:1]
            return memory_similar


    @trunkline.hookimpl
    def trunkline_tools(settings):
        return [Similar(settings).tool]
''')


def looked_up(reply: Reply) -> list[str]:
    hits = json.loads(unwrap_tool_result(reply.results()[0]))["hits"]
    return [f"{hit['path']}:{hit['line']}:{hit['content']}" for hit in hits]


async def test_FS_6_memory_evolves_by_addition(open_platform: OpenPlatform, sources: Path) -> None:
    """A second search with an index of its own joins the first, whose answers stay the same. Without any index, its own
    or the built-in one, nothing is lost; without the plugin the system runs as before."""
    search = 'call:memory_search {"query": "tomatoes"} ;; say:ok'
    tools = {"runtime.tool_sources": [str(sources)], "monitor.discovery_threshold": 1_000}
    async with open_platform(tools) as running:
        for name, text in (("garden", "Tomatoes want sun."), ("zoo", "Zebras jazz quickly.")):
            request = json.dumps({"path": f"{name}.md", "content": text})
            assert (await running.client.say(f"call:memory_write {request} ;; say:ok")).code is None
        before = looked_up(await running.client.say(search))
        assert before and "Tomatoes want sun." in before[0]

        (sources / "similar.py").write_text(SIMILAR)
        added = await running.client.say('call:memory_similar {"query": "zebra jazz"} ;; say:ok')
        assert "zoo.md" in added.results()[0], added.results()
        assert looked_up(await running.client.say(search))[0] == before[0]
        history = git(running.platform.home.memory, "log", "--format=%H", "--", "blocks/main/garden.md")
        cache = running.platform.home.cache
    assert (cache / "similar.json").exists()
    shutil.rmtree(cache)
    (sources / "similar.py").unlink()
    async with open_platform(tools) as running:
        found = looked_up(await running.client.say(search))
        assert found[0] == before[0]
        assert "memory_similar" not in running.offered()
        assert (
            git(running.platform.home.memory, "log", "--format=%H", "--", "blocks/main/garden.md") == history
        )


HOUSE = textwrap.dedent('''
    """A lamp: something outside."""
    import trunkline

    @trunkline.tool(effect="send")
    def lamp(on: bool) -> str:
        """Switch the lamp."""
        return "The lamp is on." if on else "The lamp is off."

    @trunkline.hookimpl
    def trunkline_tools():
        return [lamp]
''')


async def test_FS_8_scope_grows_and_shrinks_by_configuration(
    open_platform: OpenPlatform, sources: Path
) -> None:
    """From a library (memory alone) to the file system to a tool that acts outside, and back: what changes is the
    configuration, and one conversation goes through all of it."""
    library = {"plugins.disabled": ["trunkline-files"]}
    outside = {"runtime.tool_sources": [str(sources)]}
    (sources / "lamp.py").write_text(HOUSE)
    conversation: str | None = None

    async def can(running: ConformancePlatform, program: str) -> bool:
        nonlocal conversation
        reply = await running.client.say(f"{program} ;; say:ok", conversation)
        conversation = reply.conversation
        assert reply.text == "ok"
        return not reply.results()[0].startswith("error: ")

    write, switch = 'call:write_file {"path": "a.md", "content": "b"}', 'call:lamp {"on": true}'
    remember = 'call:memory_write {"path": "a.md", "content": "b"}'
    for config, expected in (
        (library, [True, False, False]),
        ({}, [True, True, False]),
        (outside, [True, True, True]),
        ({}, [True, True, False]),
        (library, [True, False, False]),
    ):
        async with open_platform(config) as running:
            assert [await can(running, program) for program in (remember, write, switch)] == expected
    async with open_platform() as running:
        assert conversation and len((await running.client.whole(conversation)).messages) == 5 * 3 * 4


async def test_FS_2_a_provider_a_tool_and_a_client_are_added(
    open_platform: OpenPlatform, sources: Path
) -> None:
    """Each is a file or a program beside the core; the memory root gains nothing that a person could not read, and no
    dependency: it is the same tree of text under git."""
    (sources / "lamp.py").write_text(HOUSE)
    (sources / "acme.py").write_text(
        "import trunkline\nfrom trunkline.testing.scripted_model import ScriptedModel\n\n"
        "@trunkline.hookimpl\ndef trunkline_models():\n    return [ScriptedModel(name='acme')]\n"
    )
    config = {"runtime.tool_sources": [str(sources)], "runtime.provider_adapter": "acme"}
    async with (
        open_platform(config) as running,
        client_of(running.platform.url, running.platform.token) as client,
    ):
        reply = await client.say('call:lamp {"on": true} ;; quote')
        assert "The lamp is on." in reply.text and running.provider.answer_requests == []
        memory = running.platform.home.memory
        names = git(memory, "ls-tree", "-r", "--name-only", "HEAD").split()
        assert "AGENT.md" in names
        for name in names:
            assert "\0" not in (memory / name).read_text(encoding="utf-8")


async def test_FS_2_a_client_in_ten_lines(open_platform: OpenPlatform) -> None:
    """A client needs an HTTP library and the contract; nothing of it is known to the core."""
    async with open_platform() as running:
        headers = {"x-api-key": running.platform.token, "user-agent": "ten-lines/1"}
        async with httpx.AsyncClient(base_url=running.platform.url, headers=headers, timeout=60) as http:
            said = (await http.post("/conversations/messages", json={"content": "say:hello"})).text
        data = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: ")]
        assert "".join(one.get("content", "") for one in data) == "hello"
