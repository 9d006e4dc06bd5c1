"""SWAP-1 to SWAP-3: providers, models and tools are swapped by configuration, by memory and by files."""

import textwrap
from pathlib import Path

import anyio
import pytest

from trunkline.testing.platform import platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.workers.monitor.block_profile import FRESH_SECONDS

from .client import Client, Reply
from .conftest import OpenPlatform, client_of

pytestmark = pytest.mark.anyio

TALK = (
    'say:I write that down. ;; call:write_file {"path": "notes.md", "content": "tomatoes"} ;; '
    'call:read_file {"path": "notes.md"} ;; say:It is written.'
)
SHAPE = ["text-delta", "tool-call", "tool-result", "tool-call", "tool-result", "text-delta", "done"]

ACME = """
import trunkline
from trunkline.testing.scripted_model import ScriptedModel

@trunkline.hookimpl
def trunkline_models():
    return [ScriptedModel(name="acme")]
"""


async def talk(client: Client) -> Reply:
    """Hold the scripted conversation, which looks the same for every provider."""
    reply = await client.say(TALK)
    assert reply.names == SHAPE, reply
    assert "tomatoes" in reply.results()[1]
    return reply


async def test_SWAP_1_FS_4_configuration_alone_replaces_the_provider(
    home: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same conversation with a tool call passes with each of three adapters' settings, and so does the next message
    of one that another adapter began. What changes is ``trunkline.toml`` and the variable with the key."""
    (sources / "acme.py").write_text(ACME)
    with ScriptedProvider() as alpha, ScriptedProvider() as beta:
        settings = {
            "alpha": f'provider_adapter = "openai"\n[adapters.openai]\nbase_url = "{alpha.url}"\nmodel = "a-1"\n'
            'api = "chat"\napi_key = { env = "ALPHA_KEY" }\n',
            "beta": f'provider_adapter = "openai"\n[adapters.openai]\nbase_url = "{beta.url}"\nmodel = "b-1"\n'
            'api = "responses"\napi_key = { env = "BETA_KEY" }\n',
            "acme": 'provider_adapter = "acme"\n',
        }
        replies: dict[str, Reply] = {}
        for name, text in settings.items():
            configure(home, f'[runtime]\ntool_sources = ["{sources}"]\n{text}')
            monkeypatch.setenv(f"{name.upper()}_KEY", f"key-of-{name}")
            async with platform(home) as running, client_of(running.url, running.token) as client:
                replies[name] = await talk(client)
                older = await client.say("say:and on", replies["alpha"].conversation)
                assert older.text == "and on"
                assert older.conversation == replies["alpha"].conversation
        assert {reply.text for reply in replies.values()} == {replies["alpha"].text}
        assert alpha.answer_requests[0].body["model"] == "a-1" and alpha.answer_requests[0].path.endswith(
            "/chat/completions"
        )
        assert beta.answer_requests[0].body["model"] == "b-1" and beta.answer_requests[0].path.endswith(
            "/responses"
        )
        for server, key in ((alpha, "key-of-alpha"), (beta, "key-of-beta")):
            assert {request.headers["authorization"] for request in server.answer_requests} == {
                f"Bearer {key}"
            }
        assert len(alpha.answer_requests) == 4 and len(beta.answer_requests) == 4


async def test_SWAP_2_a_preference_in_memory_replaces_the_model(open_platform: OpenPlatform) -> None:
    """The next message uses the model in the preferences, without a restart: at once after a write by the agent's
    tool, and within seconds after an edit by a person."""
    async with open_platform() as running:
        text = 'call:memory_write {"path": "/preferences.toml", "content": "model = \\"openai/large\\"\\n"} ;; say:done'
        reply = await running.client.say(text)
        await running.client.say("say:next", reply.conversation)
        preferences = running.platform.home.memory / "preferences.toml"
        assert preferences.read_text() == 'model = "openai/large"\n'
        preferences.write_text('model = "openai/larger"\n')
        await anyio.sleep(FRESH_SECONDS)
        await running.client.say("say:next again", reply.conversation)
        asked = [request.body["model"] for request in running.provider.answer_requests]
        assert asked == ["scripted", "scripted", "large", "larger"]


def configure(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "trunkline.toml").write_text(text)


def dice(word: str) -> str:
    return textwrap.dedent(f'''
        import trunkline

        @trunkline.tool(effect="read")
        def roll(sides: int = 6) -> str:
            """Roll a die."""
            return f"{word} on {{sides}} sides"

        @trunkline.hookimpl
        def trunkline_tools():
            return [roll]
    ''')


async def test_SWAP_3_a_tool_is_added_and_removed_without_a_restart(
    open_platform: OpenPlatform, sources: Path
) -> None:
    """A file dropped into ``tool_sources`` is offered to the model and used by the next message; a changed file is
    used as it is now; once it is removed the tool is gone from the definitions, and calling it is no failure."""
    async with open_platform(
        {"runtime.tool_sources": [str(sources)], "monitor.discovery_threshold": 1_000}
    ) as running:
        begun = await running.client.say("say:hello")
        assert "roll" not in running.offered()

        (sources / "dice.py").write_text(dice("four"))
        await anyio.sleep(FRESH_SECONDS)
        rolled = await running.client.say('call:roll {"sides": 12} ;; quote', begun.conversation)
        assert rolled.results() == ["four on 12 sides"] and "four on 12 sides" in rolled.text
        assert "roll" in running.offered()

        (sources / "dice.py").write_text(dice("five, as always,"))
        again = await running.client.say("call:roll {} ;; quote", begun.conversation)
        assert again.results() == ["five, as always, on 6 sides"]

        (sources / "dice.py").unlink()
        await anyio.sleep(FRESH_SECONDS)
        gone = await running.client.say("call:roll {} ;; say:never mind", begun.conversation)
        assert gone.results()[0].startswith("error: ") and gone.text == "never mind" and gone.code is None
        assert "roll" not in running.offered()


async def test_SWAP_3_a_broken_file_affects_only_itself(open_platform: OpenPlatform, sources: Path) -> None:
    """A file that cannot be loaded, added during a conversation, removes no other tool."""
    async with open_platform(
        {"runtime.tool_sources": [str(sources)], "monitor.discovery_threshold": 1_000}
    ) as running:
        (sources / "good.py").write_text(dice("six"))
        (sources / "broken.py").write_text("raise RuntimeError('no such device')")
        reply = await running.client.say("call:roll {} ;; quote")
        assert reply.results() == ["six on 6 sides"] and reply.code is None
