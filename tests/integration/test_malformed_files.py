"""Every file that a person edits and that guards something: with garbage in it the guard refuses, each refusal names
the file and the line, and ``doctor`` reports it.

``GUARD_HOOKS`` is the whole list; a new file of that kind gets its row here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trunkline.cli.checks.runner import run_checks
from trunkline.config import load_config
from trunkline.contracts.memory.chunks import Remember
from trunkline.contracts.memory.subjects import MEMORY_REMEMBER
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.contracts.tools.messages import ListTools
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.errors import TrunklineError
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import call_tool
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio

Refused = Callable[[Platform], Awaitable[str]]


async def a_message(running: Platform) -> str:
    """No message is taken, so no model is given one."""
    with pytest.raises(RemoteFault) as refused:
        await running.send("hello", block="main")
    return refused.value.message


async def a_tool(running: Platform) -> str:
    """No tool may be used."""
    outcome = await call_tool(running.bus, "list_directory", {"path": "."})
    assert outcome.status == "error" and outcome.error_kind in ("unsupported", "permission_denied"), outcome
    return outcome.output


async def a_memory(running: Platform) -> str:
    """Try to store a chunk; return the refusal."""
    request = Remember(content="x", actor="owner", conversation_id="c", block="main")
    with pytest.raises(RemoteFault) as refused:
        await running.bus.call(MEMORY_REMEMBER, request, timeout=30)
    return refused.value.message


async def a_skill(running: Platform) -> str:
    """The skill cannot be used."""
    outcome = await call_tool(running.bus, "use_skill", {"name": "brew"})
    assert outcome.status == "error", outcome
    return outcome.output


def no_tool_called(name: str) -> Refused:
    """Check that the file's tool is missing; only doctor reports the refusal."""

    async def refused(running: Platform) -> str:
        found = await running.bus.call(LIST_TOOLS, ListTools(block="main"), timeout=30)
        assert name not in {spec.name for spec in found.tools or ()}
        return ""

    return refused


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A file below the home, possible mistakes in it with the required messages, the refused requests, the doctor
    check that reports it, and the other files of the case. With empty ``refuses`` nothing starts."""

    file: str
    wrong: Mapping[str, str]
    refuses: tuple[Refused, ...] = ()
    check: str
    also: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)


REMOTE = (
    'name = "laptop"\nkey = "UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"\nblocks = ["main"]\n'
)
TOOL = (
    '{"name": "brew_tea", "description": "Brew.",\n "parameters": {"type": "object"},\n'
    ' "effect": "read", "command": ["/bin/true"]'
)

GUARDS = (
    Guard(
        file="trunkline.toml",
        wrong={"[gateway\n": "line 1", "[gateway]\nprot = 1\n": "line 2", "[gateway]\nhost = 3\n": "line 2"},
        check="config.valid",
    ),
    Guard(
        file="token",
        wrong={"": "token", "short\n": "token"},
        check="gateway.token",
    ),
    Guard(
        file="plugins.toml",
        wrong={"[weather\n": "line 1", "[weather]\nversion = 3\n": "version", "[weather]\nagred = 1\n": "weather"},
        check="plugins.loaded",
    ),
    Guard(
        file="quarantine.json",
        wrong={"{": "line 1", '{"quarantined":\n [{"owner": 3}]}': "line 2", "[]": "line 1"},
        check="plugins.loaded",
    ),
    Guard(
        file="remotes/laptop.toml",
        wrong={f"{REMOTE}enrolled_at = \n": "line 4", f"{REMOTE}blokcs = 3\n": "line 4", f"{REMOTE}": "laptop.toml"},
        check="remotes.files",
        config={"remotes.listen": "127.0.0.1:0"},
    ),
    Guard(
        file="remotes/laptop.toml",
        wrong={f"{REMOTE}enrolled_at = \n": "", f"{REMOTE}blokcs = 3\n": ""},
        refuses=(no_tool_called("laptop__read_file"),),
        check="remotes.files",
    ),
    Guard(
        file="memory/blocks/main/block.toml",
        wrong={
            "model = [\n": "block.toml",
            'enabled = "no"\n': "line 1",
            "goals = []\nenabeld = false\n": "line 2",
            "[memory]\nenabeld = false\n": "line 2",
        },
        refuses=(a_message, a_tool, a_memory),
        check="memory.settings",
    ),
    Guard(
        file="memory/preferences.toml",
        wrong={"model =\n": "line 1", "\nmodel = 3\n": "line 2", "modle = 'x'\n": "line 1"},
        refuses=(a_message,),
        check="memory.settings",
    ),
    Guard(
        file="memory/policies/mine.json",
        wrong={
            "{": "line 1",
            '{"subject": "*",\n "resource": "tool:*", "action": "*", "efect": "deny"}': "line 2",
            '{"subject": "*", "resource": "tool:*", "effect": "deny",\n "conditions":\n {"untill": 1}}': "line 3",
            "not json": "line 1",
        },
        refuses=(a_tool,),
        check="memory.policies",
    ),
    Guard(
        file="mcp.json",
        wrong={
            "{": "line 1",
            '{"mcpServers": {"tea": {"command": "true",\n "alow": []}}}': "tea",
            '{"mcpServers": []}': "mcp.json",
        },
        refuses=(no_tool_called("tea__brew"),),
        check="mcp.servers",
    ),
    Guard(
        file="mcp/main.json",
        wrong={"{\n,": "line 2", '{"mcpServers": {"tea": {"command": 3}}}': "tea"},
        refuses=(no_tool_called("tea__brew"),),
        check="mcp.servers",
    ),
    Guard(
        file="own/brew/tool.json",
        wrong={f"{TOOL},\n": "line 3", f'{TOOL},\n "efects": 1}}': "line 4", f'{TOOL[:-1]}, 3]}}': "tool.json"},
        refuses=(no_tool_called("brew_tea"),),
        check="tools.manifests",
        config={"runtime.tool_sources": ["own"]},
    ),
    Guard(
        file="memory/skills/brew/SKILL.md",
        wrong={"---\nname: [\n---\nBrew.": "line 3", "Brew.": "frontmatter", "---\nname: x\n---\nBrew.": "description"},
        refuses=(a_skill,),
        check="skills.files",
    ),
)  # fmt: skip
"""What a file of each kind may hold by mistake: what is no text of its format, what does not fit, a slip in a name."""

CASES = [(guard, text, said) for guard in GUARDS for text, said in guard.wrong.items()]


def texts(error: BaseException) -> str:
    """Return the texts of an error, and of those nested in it."""
    inner = getattr(error, "exceptions", ())
    hint = error.hint if isinstance(error, TrunklineError) else ""
    return " ".join([str(error), hint, *map(texts, inner)])


async def reported(home: Path, config: Mapping[str, Any]) -> Mapping[str, HealthResult]:
    """Return doctor's findings."""
    found = await run_checks(read=lambda: load_config(home, flags=config))
    return {one.id: one for one in found}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("guard", "text", "said"),
    CASES,
    ids=[f"{guard.file}-{number}" for number, (guard, _, _) in enumerate(CASES)],
)
async def test_a_malformed_guard_file_denies_and_is_reported(
    tmp_path: Path, guard: Guard, text: str, said: str
) -> None:
    """The request is refused with the place of the fault, which doctor reports."""
    for name, content in {**guard.also, guard.file: text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    name = Path(guard.file).name
    config = {key: [str(tmp_path / one) for one in value] if key.endswith("sources") else value
              for key, value in guard.config.items()}  # fmt: skip
    if not guard.refuses:
        with pytest.raises((TrunklineError, BaseExceptionGroup)) as failed:
            async with platform(tmp_path, config=config):
                pass
        received = texts(failed.value)
        assert name in received and said in received, received
        finding = (await reported(tmp_path, config))[guard.check]
        assert finding.status == "error" and name in finding.summary, finding
        return
    async with platform(tmp_path, config={"permissions.approvals": "none", **config}) as running:
        for refused in guard.refuses:
            received = await refused(running)
            assert not received or (name in received or Path(guard.file).parent.name in received), received
            assert not received or said in received, received
        finding = (await reported(tmp_path, config))[guard.check]
        assert finding.status in ("error", "warning") and name in finding.summary, finding
        assert said in finding.summary, finding
