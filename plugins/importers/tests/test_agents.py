"""Workspaces of other agents: each is recognised, placed where it belongs here, and its keys stay where they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.errors import TrunklineError

pytestmark = pytest.mark.anyio

KEY = "sk-proj-" + "a1B2" * 12
Tables = Callable[..., Path]


async def keys_are_absent(place: Any) -> None:
    for path in await place.paths():
        assert KEY not in await place.text(path), path


async def test_an_openclaw_home(place: Any, write: Any) -> None:
    """Instructions, soul, user, memory, notes, skills; the sessions of each agent, with calls and results."""
    write("openclaw.json", {"models": {"apiKey": KEY}})
    write("credentials/oauth.json", {"token": KEY})
    for name, text in {
        "AGENTS.md": "Do.",
        "SOUL.md": "Kind.",
        "USER.md": "Ada.",
        "MEMORY.md": "Tea.",
        "IDENTITY.md": "Claw",
    }.items():
        write(f"workspace/{name}", text)
    write("workspace/memory/2026-01-02.md", "Rain.")
    write("workspace/skills/tea/SKILL.md", "Boil.")
    write("workspace/HEARTBEAT.md", "Every hour.")
    lines = (
        {"type": "session", "id": "s1", "timestamp": "2026-01-02T08:00:00Z"},
        {"type": "message", "id": "1", "timestamp": "2026-01-02T08:00:01Z",
         "message": {"role": "user", "content": [{"type": "text", "text": "Tea?"}]}},
        {"type": "message", "id": "2", "timestamp": "2026-01-02T08:00:02Z",
         "message": {"role": "assistant", "content": [
             {"type": "thinking", "thinking": "."},
             {"type": "toolCall", "id": "c", "name": "boil", "arguments": {"ml": 200}}]}},
        {"type": "message", "id": "3", "timestamp": "2026-01-02T08:00:03Z",
         "message": {"role": "toolResult", "toolCallId": "c", "toolName": "boil",
                     "content": [{"type": "text", "text": "hot"}]}},
        {"type": "compaction", "summary": "x"},
    )  # fmt: skip
    write("agents/main/sessions/s1.jsonl", lines)
    home = write("agents/desk/sessions/s2.jsonl", lines)
    done = await place.bring(home)
    assert done.system == "openclaw"
    assert await place.text("AGENT.md") == "Do." and await place.text("identity/SOUL.md") == "Kind."
    assert await place.text("identity/USER.md") == "Ada." and await place.text("MEMORY.md") == "Tea."
    assert await place.text("blocks/main/monitor.md") == "Claw"
    assert await place.text("documents/openclaw/memory/2026-01-02.md") == "Rain."
    assert await place.text("skills/tea/SKILL.md") == "Boil."
    assert await place.text("imported/openclaw/workspace/HEARTBEAT.md") == "Every hour."
    asked, called, result = await place.said("openclaw-main-s1")
    assert asked.content == "Tea?" and called.tool_calls[0].arguments == {"ml": 200}
    assert (result.role, result.tool_call_id, result.content) == ("tool", "c", "hot")
    assert (await place.store.find_conversation("openclaw-desk-s2")).block == "desk"
    assert {"openclaw.json", "credentials/oauth.json"} <= {gap.what for gap in done.gaps}
    await keys_are_absent(place)
    brought = await place.json("imported/openclaw/brought.json")
    assert brought["files"]["AGENT.md"]["source"] == "workspace/AGENTS.md"
    assert (await place.bring(home)).idle


async def test_an_openclaw_workspace_without_its_state(place: Any, write: Any) -> None:
    """Soul and instructions beside MEMORY.md are enough; with the memory in a folder it is a nanobot's."""
    for name in ("AGENTS.md", "SOUL.md", "USER.md"):
        write(f"claw/{name}", "Kind.")
        write(f"nano/{name}", "Kind.")
    claw = write("claw/MEMORY.md", "Tea.") / "claw"
    nano = write("nano/memory/MEMORY.md", "Tea.") / "nano"
    assert (await place.bring(nano)).system == "nanobot"
    assert (await place.bring(claw)).system == "openclaw"


async def test_a_workspace_that_changed_on_both_sides(place: Any, write: Any) -> None:
    """Changes of the source are imported, local changes stay, and for a conflict the other version is stored beside
    the file."""
    write("SOUL.md", "1")
    write("IDENTITY.md", "1")
    write("USER.md", "1")
    home = write("AGENTS.md", "1")
    await place.bring(home)
    root = place.base / "memory"
    (root / "identity/SOUL.md").write_text("mine")
    (root / "identity/USER.md").write_text("mine")
    write("SOUL.md", "2")
    write("AGENTS.md", "2")
    done = await place.bring(home)
    assert await place.text("identity/SOUL.md") == "mine" and await place.text("identity/USER.md") == "mine"
    assert await place.text("AGENT.md") == "2"
    assert await place.text("imported/openclaw/conflicts/identity/SOUL.md") == "2"
    assert [one.path for one in done.conflicts] == ["identity/SOUL.md"]
    assert (await place.bring(home)).conflicts == ()


async def test_a_hermes_home(place: Any, write: Any, tables: Tables) -> None:
    """Soul, curated memories, skills, and the sessions of its database."""
    write("config.yaml", f"key: {KEY}")
    write(".env", f"OPENAI_API_KEY={KEY}")
    write("SOUL.md", "Swift.")
    write("memories/MEMORY.md", "one\n§\ntwo")
    write("memories/USER.md", "Ada.")
    write(
        "sessions/session_old.json",
        {"session_start": "2026-01-01T00:00:00", "messages": [{"role": "user", "content": "old"}]},
    )
    call = {"id": "c", "function": {"name": "run", "arguments": '{"n": 1}'}}
    home = tables(
        "state.db",
        """CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, title TEXT, started_at REAL);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
        tool_calls TEXT, tool_name TEXT, timestamp REAL);""",
        sessions=[("s", "cli", "Run", 1_767_225_600.0)],
        messages=[
            (1, "s", "user", "Run!", None, None, None, 1_767_225_600.0),
            (2, "s", "assistant", "", None, json.dumps([call]), None, 1_767_225_601.0),
            (3, "s", "tool", "ran", "c", None, "run", 1_767_225_602.0),
        ],
    )  # fmt: skip
    done = await place.bring(home)
    assert done.system == "hermes" and await place.text("MEMORY.md") == "one\n---\ntwo\n"
    said = await place.said("hermes-s")
    assert [one.role for one in said] == ["user", "assistant", "tool"]
    assert said[1].tool_calls[0].arguments == {"n": 1} and said[2].name == "run"
    assert [one.content for one in await place.said("hermes-old")] == ["old"]
    assert {".env", "config.yaml"} <= {gap.what for gap in done.gaps}
    await keys_are_absent(place)


async def test_a_nanobot_home(place: Any, write: Any) -> None:
    """Its workspace and its sessions, whose first line is about the session."""
    write("config.json", {"providers": {"openrouter": {"apiKey": KEY}}})
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "memory/MEMORY.md", "memory/HISTORY.md"):
        write(f"workspace/{name}", name)
    home = write(
        "sessions/telegram_1.jsonl",
        (
            {"_type": "metadata", "key": "telegram:1", "created_at": "2026-01-01T10:00:00"},
            {"role": "user", "content": "Hi", "timestamp": "2026-01-01T10:00:01"},
            {"role": "assistant", "content": "Hello", "timestamp": "2026-01-01T10:00:02"},
        ),
    )
    done = await place.bring(home)
    assert done.system == "nanobot" and await place.text("MEMORY.md") == "memory/MEMORY.md"
    assert [one.content for one in await place.said("nanobot-telegram_1")] == ["Hi", "Hello"]
    assert await place.text("documents/nanobot/memory/HISTORY.md") == "memory/HISTORY.md"
    await keys_are_absent(place)


async def test_a_memoryblock_workspace(place: Any, write: Any) -> None:
    """Blocks with identity, memory, settings, chats and logs; the founder; no permission comes along."""
    write("auth.json", {"openai": {"apiKey": KEY}})
    write("founder.md", "Ada.")
    write("blocks/garden/monitor.md", "Fern")
    write("blocks/garden/memory.md", "Peas.")
    write("blocks/garden/pulse.json", {"status": "SLEEPING", "instructions": [{"id": "x", "type": "cron"}]})
    write(
        "blocks/garden/config.json",
        {"description": "Grows", "goals": ["peas"], "monitorName": "Fern", "permissions": {"allowShell": True},
         "adapter": {"provider": "openai", "model": "gpt"}},
    )  # fmt: skip
    write("blocks/garden/chat.json", [{"role": "user", "content": "Hi", "timestamp": "2026-01-01T00:00:00Z"}])
    home = write(
        "blocks/garden/logs/garden-cli-1.txt",
        "[2026-01-01 10:00:00] [CHANNEL:cli] [FROM:user] Water?\n[2026-01-01 10:00:05] [CHANNEL:cli] "
        "[FROM:monitor:Fern] [EMOJI:x] Yes.\nTwo litres.\n",
    )
    done = await place.bring(home)
    assert done.system == "memoryblock" and await place.text("identity/USER.md") == "Ada."
    assert await place.text("blocks/garden/monitor.md") == "Fern"
    settings = await place.text("blocks/garden/block.toml")
    assert 'monitor_name = "Fern"' in settings and "tools" not in settings and "allow" not in settings.lower()
    said = await place.said("memoryblock-garden-garden-cli-1")
    assert [(one.role, one.content) for one in said] == [
        ("user", "Water?"),
        ("assistant", "Yes.\nTwo litres."),
    ]
    assert [one.content for one in await place.said("memoryblock-garden-web")] == ["Hi"]
    assert "imported/memoryblock/blocks/garden/pulse.json" in await place.paths()
    reasons = [gap.why for gap in done.gaps]
    assert "permissions.allowShell = true was not imported" in reasons
    assert "adapter.model = gpt was not imported" in reasons
    await keys_are_absent(place)


async def test_a_mnemoai_home(place: Any, write: Any) -> None:
    """Curated memory in our form, conversations, profile, strategies and episodes by model."""
    write("config/config.yaml", f"API_KEY: {KEY}")
    write("MEMORY.md", "a\n§\nb")
    write(
        "ada/profiles/ada.json",
        {"interaction_count": 7, "verbosity": 0.2, "top_domains": [{"name": "python", "score": 0.5}]},
    )
    write(
        "ada/conversations/conversation_20260102_030405.json",
        {"messages": [
            {"role": "user", "content": [{"text": "Fix it"}]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "t", "name": "fs_read", "input": {"path": "a"}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "code"}]}}]},
        ]},
    )  # fmt: skip
    entry = {
        "context": "edit",
        "strategy": "Read before editing",
        "outcome": "failure",
        "confidence": 0.9,
        "tools": ["file_edit"],
    }
    write("ada/models/claude-x/playbook/playbook.json", [entry])
    write("ada/rag_store_1.faiss", b"\0\1")
    home = write(
        "ada/models/claude-x/episodic_memory/metadata.json",
        {
            "documents": [
                {
                    "text": "Task: fix a bug\nTools used: fs_read, file_edit\nOutcome: success: fixed",
                    "timestamp": 1_767_225_600,
                }
            ]
        },
    )
    done = await place.bring(home)
    assert done.system == "mnemoai" and await place.text("MEMORY.md") == "a\n---\nb\n"
    said = await place.said("mnemoai-conversation_20260102_030405")
    assert [one.role for one in said] == ["user", "assistant", "tool"] and said[0].created_at.day == 2
    assert (await place.json("profile.json"))["interaction_count"] == 7
    paths = await place.paths()
    (strategy,) = [path for path in paths if path.startswith("models/claude-x/playbook/")]
    assert (await place.json(strategy))["section"] == "pitfalls"
    (episode,) = [path for path in paths if path.startswith("models/claude-x/episodes/2026-01-01/")]
    assert (await place.json(episode))["tools"] == ["fs_read", "file_edit"]
    await keys_are_absent(place)


async def test_imported_learned_items_are_readable_by_the_learner(place: Any, write: Any) -> None:
    """Strategies, episodes and the profile of mnemoai can be read as our learner's own."""
    learning = pytest.importorskip("trunkline_learning.playbook", reason="the learner is not installed")
    import msgspec

    from trunkline_learning.episodes import Episode
    from trunkline_learning.profile import Profile

    write("ada/models/m/playbook/p.json", [{"strategy": "Test", "confidence": 2}])
    write("ada/models/m/episodic_memory/e.json", [{"text": "Task: x\nTools used: none\nOutcome: done"}])
    home = write("ada/profiles/p.json", {"tool_patterns": {"search": {"grep": {"success": 1, "total": 2}}}})
    await place.bring(home)
    for path in await place.paths():
        kind = {"playbook": learning.Strategy, "episodes": Episode}.get(
            path.split("/")[2] if path.count("/") > 2 else ""
        )
        kind = Profile if path == "profile.json" else kind
        if kind is not None:
            assert msgspec.json.decode(await place.text(path), type=kind)


async def test_an_rlm_brain_in_both_layouts(place: Any, write: Any) -> None:
    """Types, tags and made links; links by type too; archived chunks stay archived; indexes are left."""
    first = {
        "id": "chunk-2026-01-02-0000abcd", "content": "Ada prefers tea", "tokens": 4, "type": "preference",
        "tags": ["tea"],
        "metadata": {"created_at": "2026-01-02T00:00:00Z", "access_count": 5, "confidence": 0.9},
        "links": [{"target_id": "chunk-001", "type": "supports", "strength": 0.8},
                  {"target_id": "chunk-001", "type": "context_of", "strength": 1.0}],
    }  # fmt: skip
    write("memory/2026-01-02/chunk-2026-01-02-0000abcd.json", first)
    write(
        "memory/2026-01-02/chunk-001.json",
        {
            "content": "Tea is hot",
            "type": "fact",
            "created_at": "2026-01-02",
            "links": {"contradicts": ["chunk-2026-01-02-0000abcd"]},
        },
    )
    write("memory/2026-01-02/index.json", {"chunks": []})
    write("memory/tags/tea.json", ["x"])
    write(
        "archive/chunk-2025-12-31-0000beef.json",
        {
            "id": "chunk-2025-12-31-0000beef",
            "content": "gone",
            "metadata": {"created": "2025-12-31T00:00:00"},
        },
    )
    home = write("memory/2026-01-02/chunk-bad.json", "{")
    done = await place.bring(home)
    assert done.system == "rlm-mem"
    tea = await place.json("chunks/2026-01-02/chunk-2026-01-02-0000abcd.json")
    assert (tea["type"], tea["tags"], tea["metadata"]["confidence"]) == ("preference", ["tea"], 0.9)
    (link,) = tea["links"]
    other = await place.json(f"chunks/2026-01-02/{link['target_id']}.json")
    assert other["content"] == "Tea is hot" and other["links"][0]["target_id"] == tea["id"]
    assert "chunks/archive/2025-12-31/chunk-2025-12-31-0000beef.json" in await place.paths()
    assert {gap.what for gap in done.gaps} == {"memory/2026-01-02/chunk-bad.json"}
    from trunkline.contracts.memory.chunk_files import decode_chunk

    for path in await place.paths():
        if path.startswith("chunks/"):
            assert not isinstance(decode_chunk(path, (await place.text(path)).encode()), str), path
    assert (await place.bring(home)).idle


async def test_rlm_layers_are_imported_as_layers(place: Any, write: Any) -> None:
    """A project is a block, an agent's private layer stays private; invalid lines are reported."""
    record = {
        "id": "r1",
        "created_at": "2026-01-02T00:00:00Z",
        "scope": "project_agent",
        "entry_type": "note",
        "content": "x",
        "agent_id": "bob",
    }
    write("project/.agents/memory/agents/bob/memory.jsonl", (record, {"id": "r2"}))
    home = write("home/.agents/memory/global/memory.jsonl", ({**record, "id": "r3", "scope": "user_global"},))
    done = await place.bring(home)
    paths = await place.paths()
    assert len([path for path in paths if path.startswith("blocks/main/agents/bob/chunks/2026-01-02/")]) == 1
    assert len([path for path in paths if path.startswith("chunks/2026-01-02/")]) == 1
    assert any("1 of its lines" in gap.why for gap in done.gaps)


async def test_a_crevnclaw_home(place: Any, write: Any, tables: Tables) -> None:
    """Directives, conversations by session, facts as chunks, the ledger as a table; no vectors, no keys."""
    write("config.json", {"providers": [{"type": "openai", "apiKey": KEY}]})
    write("identity/SOUL.md", "Crab.")
    write("identity/AGENTS.md", "Pinch.")
    home = tables(
        "memory/crevnclaw.db",
        """CREATE TABLE vectors (id TEXT, embedding BLOB, content TEXT, metadata TEXT);
        CREATE TABLE conversations (id TEXT, session_id TEXT, role TEXT, content TEXT, metadata TEXT, created_at TEXT);
        CREATE TABLE ledger (id TEXT, cost_usd REAL, created_at TEXT);""",
        vectors=[
            (
                "v",
                b"\0" * 16,
                "Ada lives in Lisbon",
                '{"timestamp": "2026-01-02T00:00:00Z", "confidence": 0.8}',
            )
        ],
        conversations=[
            ("1", "s", "user", "Hi", "{}", "2026-01-02T00:00:00Z"),
            ("2", "s", "assistant", "Ho", None, "2026-01-02T00:00:01Z"),
        ],
        ledger=[("l", 0.01, "2026-01-02")],
    )
    done = await place.bring(home)
    assert done.system == "crevnclaw" and await place.text("AGENT.md") == "Pinch."
    assert [one.content for one in await place.said("crevnclaw-s")] == ["Hi", "Ho"]
    (fact,) = [path for path in await place.paths() if path.startswith("chunks/2026-01-02/")]
    assert (await place.json(fact))["content"] == "Ada lives in Lisbon"
    assert "0.01" in await place.text("imported/crevnclaw/ledger.csv")
    await keys_are_absent(place)


async def test_links_and_unsupported_files_are_not_imported(place: Any, write: Any, tmp_path: Path) -> None:
    """A link in a workspace is not followed; binary files, large ones and invalid names are reported."""
    (tmp_path / "secret.txt").write_text("outside")
    write("SOUL.md", "s")
    write("IDENTITY.md", "i")
    home = write("AGENTS.md", "a")
    (home / "USER.md").symlink_to(tmp_path / "secret.txt")
    (home / "away").symlink_to(tmp_path)
    write("picture.png", b"\x89PNG\0\xff")
    write("big.txt", "x" * 5_000_000)
    write("notes/~odd.txt", "odd")
    write("skills/x/.g\u0131t/config", "odd")
    write("skills/x/\uff0egit/config", "odd")
    write("settings.ini", f"api_key = {KEY}")
    write("router.cfg", "export PGPASSWORD=swordfish")
    write("session.dat", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK")
    done = await place.bring(home)
    assert "outside" not in "".join([await place.text(path) for path in await place.paths()])
    reported = {gap.what for gap in done.gaps}
    assert "skills/x/\uff0egit/config" in reported
    assert {
        "picture.png",
        "big.txt",
        "notes/~odd.txt",
        "settings.ini",
        "router.cfg",
        "session.dat",
    } <= reported
    assert not [path for path in await place.paths() if path.endswith((".cfg", ".dat"))]
    await keys_are_absent(place)


async def test_a_broken_file_stops_only_its_own_import(place: Any, write: Any) -> None:
    """Noise in the place of a database, invalid JSON, and invalid lines are reported, and the rest is imported."""
    write("memories/MEMORY.md", "m")
    write("sessions/session_a.json", "{")
    write("sessions/session_b.jsonl", '{"role": "user", "content": "hi"}\n{"role\n')
    home = write("state.db", b"SQLite format 3\0" + b"\xff" * 4096)
    done = await place.bring(home)
    reported = {gap.what: gap.why for gap in done.gaps}
    assert (
        "not a readable database" in reported["state.db"] and "no JSON" in reported["sessions/session_a.json"]
    )
    assert "1 of its lines" in reported["sessions/session_b.jsonl"]
    assert await place.text("MEMORY.md") == "m" and [one.content for one in await place.said("hermes-b")] == [
        "hi"
    ]


async def test_a_folder_of_no_known_system_is_refused(place: Any, write: Any) -> None:
    """With the names that --from knows."""
    home = write("hello.txt", "hello")
    with pytest.raises(TrunklineError, match="not recognised"):
        await place.bring(home)
    with pytest.raises(TrunklineError, match="Nothing here imports from 'abacus'"):
        await place.bring(home, kind="abacus")
