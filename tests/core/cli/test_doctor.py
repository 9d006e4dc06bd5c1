"""``trunkline doctor``: stable ids, faults, hints, an exit status."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.ports import free_port
from tests.support.processes import process_platform
from trunkline.testing.scripted_provider import ScriptedProvider

Run = Callable[..., "subprocess.CompletedProcess[str]"]

IDS = [
    "python.version", "config.valid", "home.writable", "home.permissions", "disk.space", "bus.reachable",
    "bus.server_version", "workers.alive", "memory.store", "memory.history", "memory.lock", "gateway.port",
    "gateway.address", "gateway.token", "plugins.loaded", "adapter.configured", "adapter.reachable",
    "channels.accounts", "models.circuits", "turns.limits", "panic.released", "sandbox.available", "documents.formats",
]  # fmt: skip


def examined(
    run: Run, *arguments: str, env: dict[str, str] | None = None
) -> tuple[int, dict[str, dict[str, str]]]:
    """Return the exit status and the checks by their ids. Another program on this machine may use the usual port."""
    port = {"TRUNKLINE_GATEWAY__PORT": str(free_port())}
    done = run("doctor", "--json", *arguments, env={**port, **(env or {})})
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, {one["id"]: one for one in json.loads(done.stdout)["checks"]}


def test_doctor_passes_and_does_not_change_a_fresh_installation(trunkline: Run, home: Path) -> None:
    """All checks run, none fails, and looking makes nothing."""
    status, found = examined(trunkline)
    assert status == 0, [one for one in found.values() if one["status"] == "error"]
    assert [name for name in found if name in IDS] == IDS
    assert found["adapter.reachable"]["status"] == "skipped", "nothing goes out unless --online is given"
    assert "--online" in found["adapter.reachable"]["summary"]
    assert not home.exists()


def test_only_adapters_that_may_answer_are_asked(trunkline: Run) -> None:
    """An installed adapter for a server of one's own, which does not run, is no fault unless it is configured."""
    nobody = {"OLLAMA_HOST": "127.0.0.1:9"}
    _, found = examined(trunkline, "--online", env=nobody)
    assert (found["adapter.reachable"]["status"], found["adapters.ollama"]["status"]) == ("ok", "ok")
    _, found = examined(
        trunkline, "--online", env={**nobody, "TRUNKLINE_ADAPTERS__OLLAMA__MODEL": "qwen3:8b"}
    )
    assert "ollama failed (unavailable)" in found["adapter.reachable"]["summary"]
    assert "ollama serve" in found["adapters.ollama"]["hint"]


def test_a_fallback_that_its_vendor_does_not_list_is_found(trunkline: Run, home: Path) -> None:
    """The vendor is asked for its list only with --online. A vendor that does not answer is judged by another check."""
    home.mkdir()
    fallbacks = '"*" = ["openai/scripted", "openai/scriptd"]\n"openai" = ["ollama/qwen3"]'
    (home / "trunkline.toml").write_text(f"[plugins.failover.fallbacks]\n{fallbacks}\n")
    with ScriptedProvider() as provider:
        env = {"TRUNKLINE_ADAPTERS__OPENAI__BASE_URL": provider.url, "OLLAMA_HOST": "127.0.0.1:9"}
        assert examined(trunkline, env=env)[1]["plugins.models"]["status"] == "skipped"
        assert not provider.requests
        found = examined(trunkline, "--online", env=env)[1]["plugins.models"]
    assert found["status"] == "warning" and "trunkline models" in found["hint"]
    assert found["summary"] == (
        "plugins.failover.fallbacks.* names 'openai/scriptd', which its vendor does not list"
    )


def test_during_panic_doctor_reports_only_panic(trunkline: Run) -> None:
    """No program can start then, which is no fault of the sandbox, so doctor suggests no installation."""
    assert trunkline("panic").returncode == 0
    status, found = examined(trunkline)
    assert status == 1 and "--release" in found["panic.released"]["hint"]
    assert found["sandbox.available"]["status"] == "skipped"


def test_a_wrong_setting_is_an_error_and_the_rest_is_skipped(trunkline: Run) -> None:
    """Without a usable configuration, doctor still answers."""
    status, found = examined(trunkline, env={"TRUNKLINE_GATEWAY__PROT": "1"})
    assert status == 1
    assert "gateway.prot" in found["config.valid"]["summary"] and "port" in found["config.valid"]["hint"]
    assert found["bus.reachable"]["status"] == "skipped"


@pytest.mark.anyio
async def test_a_port_used_by_our_gateway_is_not_a_problem(tmp_path: Path) -> None:
    """With workers in separate processes, the process on the port is our gateway."""
    async with process_platform(
        tmp_path / "home", config={"gateway.port": free_port()}, workers=("gateway", "memory")
    ) as running:
        done = await anyio.run_process(
            [sys.executable, "-m", "trunkline.cli.main", "doctor", "--json"],
            env=dict(running.environ),
            check=False,
        )
        pid = running.processes["gateway"].pid
    found = {one["id"]: one for one in json.loads(done.stdout)["checks"]}
    assert found["gateway.port"]["status"] == "ok" and str(pid) in found["gateway.port"]["summary"], found


def test_a_taken_port_is_found(trunkline: Run) -> None:
    """The check says which port, and the hint which setting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        status, found = examined(trunkline, env={"TRUNKLINE_GATEWAY__PORT": port})
    assert status == 1
    assert port in found["gateway.port"]["summary"] and "gateway.port" in found["gateway.port"]["hint"]


def test_a_token_that_others_can_read_is_found(trunkline: Run, home: Path) -> None:
    """The hint is the command that fixes it; the token is not shown."""
    home.mkdir()
    (home / "token").write_text("swordfish")
    (home / "token").chmod(0o644)
    status, found = examined(trunkline)
    assert status == 1 and found["gateway.token"]["hint"] == f"Run: chmod 600 {home / 'token'}"
    assert "swordfish" not in str(found)


def test_an_unreachable_server_is_found(trunkline: Run) -> None:
    """The address is named."""
    status, found = examined(trunkline, env={"TRUNKLINE_BUS__URL": "nats://127.0.0.1:4"})
    assert status == 1 and "127.0.0.1:4" in found["bus.reachable"]["summary"]


def test_an_unreadable_history_is_found(trunkline: Run, home: Path) -> None:
    """A memory root whose repository is broken is an error."""
    (home / "memory" / ".git").mkdir(parents=True)
    (home / "memory" / ".git" / "HEAD").write_text("nonsense")
    status, found = examined(trunkline)
    assert status == 1 and found["memory.history"]["status"] == "error"


@pytest.mark.parametrize(("setting", "word"), [("nobody", "nobody"), ("offline", "offline")])
def test_the_adapter_must_be_installed(trunkline: Run, setting: str, word: str) -> None:
    """An adapter that is not there is an error that names those that are."""
    status, found = examined(trunkline, env={"TRUNKLINE_RUNTIME__PROVIDER_ADAPTER": setting})
    assert word in found["adapter.configured"]["summary"]
    assert status == (1 if setting == "nobody" else 0)


PLUGIN = '''
import anyio
import trunkline

async def hangs():
    await anyio.sleep_forever()

async def breaks():
    raise RuntimeError("kaputt")

async def warns():
    return trunkline.HealthResult("warning", "The battery is low.", hint="Plug it in.")

@trunkline.hookimpl
def trunkline_health_checks():
    return [trunkline.HealthCheck("laptop.hangs", hangs), trunkline.HealthCheck("laptop.breaks", breaks),
            trunkline.HealthCheck("laptop.battery", warns), trunkline.HealthCheck("laptop.cloud", breaks, online=True)]
'''  # fmt: skip


def test_checks_of_plugins_are_independent(trunkline: Run, tmp_path: Path) -> None:
    """A check that hangs and one that raises are separate errors; the third is reported."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "laptop.py").write_text(PLUGIN)
    status, found = examined(trunkline, env={"TRUNKLINE_RUNTIME__TOOL_SOURCES": str(folder)})
    assert status == 1
    assert "did not end in" in found["laptop.hangs"]["summary"]
    assert "kaputt" in found["laptop.breaks"]["summary"]
    assert (found["laptop.battery"]["status"], found["laptop.battery"]["hint"]) == ("warning", "Plug it in.")
    assert "laptop" in found["laptop.battery"]["owner"]
    assert found["laptop.cloud"]["status"] == "skipped", "DEPLOY-4: nothing goes out unless --online is given"


def test_files_that_are_too_large_for_history_or_search_are_found(trunkline: Run, home: Path) -> None:
    """Both are reported: files left out of history, and files of which only the beginning is searched."""
    (home / "memory/notes").mkdir(parents=True)
    (home / "memory/notes/long.md").write_bytes(b"x" * (5 << 20))
    with (home / "memory/notes/huge.bin").open("wb") as file:
        file.truncate(101 << 20)
    said = examined(trunkline)[1]["memory.files"]
    assert said["status"] == "warning"
    assert "Not in history, because they are larger than 100 MiB: notes/huge.bin." in said["summary"]
    assert "Only their first 4 MiB are searched: notes/long.md." in said["summary"]
    subprocess.run(["git", "init", "-q", home / "memory"], check=True, timeout=60)
    (home / "memory/grown.log").write_text("torn")
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["add", "grown.log"], [*identity, "commit", "-qm", "By me"]):
        subprocess.run(["git", "-C", home / "memory", *command], check=True, timeout=60)
    (home / "memory/notes/huge.bin").rename(home / "memory/grown.log")
    said = examined(trunkline)[1]["memory.files"]
    assert (
        "In history only in a version from before they grew larger than 100 MiB: grown.log."
        in said["summary"]
    )
    for name in ("notes/long.md", "grown.log"):
        (home / "memory" / name).unlink()
    assert examined(trunkline)[1]["memory.files"]["status"] == "ok"


def test_an_invalid_edit_of_a_memory_file_is_found(trunkline: Run, home: Path) -> None:
    """The owner edits preferences and a block's settings by hand, so doctor must report mistakes."""
    (home / "memory/blocks/garden").mkdir(parents=True)
    (home / "memory/preferences.toml").write_text("model = 3")
    (home / "memory/blocks/garden/block.toml").write_text('tools = "all')
    status, found = examined(trunkline)
    said = found["memory.settings"]
    assert (status, said["status"]) == (1, "error")
    assert (
        "preferences.toml, line 1: Expected `str | null`" in said["summary"]
        and "garden/block.toml" in said["summary"]
    )
    (home / "memory/preferences.toml").write_text(
        "[learning]\non = true\n[lerning]\non = true\n[moon]\nphase = 1\n"
    )
    (home / "memory/blocks/garden/block.toml").unlink()
    said = examined(trunkline)[1]["memory.settings"]
    assert (
        said["status"] == "warning"
        and "line 3: nothing reads [lerning]. Did you mean [learning]?" in said["summary"]
    )
    assert "line 5: nothing reads [moon]." in said["summary"] and "[learning]." not in said["summary"]
    (home / "memory/preferences.toml").unlink()
    (home / "memory/blocks/garden/block.toml").write_text('description = "Beans"')
    found = examined(trunkline)[1]
    assert (found["memory.settings"]["status"], found["memory.tool_names"]["status"]) == ("ok", "ok")
    (home / "memory/blocks/garden/block.toml").write_text('tools = ["list_directory", "glob_search"]')
    (home / "memory/policies").mkdir()
    rule = {
        "subject": "*",
        "resource": "tool:native:trunkline-files:fs_read",
        "action": "*",
        "effect": "deny",
    }
    (home / "memory/policies/no.json").write_text(json.dumps(rule))
    said = examined(trunkline)[1]["memory.tool_names"]
    assert said["status"] == "warning" and "fs_read is an alias of" in said["summary"]
    assert "glob_search is an alias of find_files" in said["summary"] and "read_file" in said["summary"]


def test_the_text_output_matches_the_json(trunkline: Run) -> None:
    """A line a check, and an arrow before what to do."""
    done = trunkline("doctor", env={"TRUNKLINE_RUNTIME__PROVIDER_ADAPTER": "nobody"})
    assert done.returncode == 1
    line = next(line for line in done.stdout.splitlines() if "adapter.configured" in line)
    assert line.startswith("ERROR") and "nobody" in line
    assert "-> Set runtime.provider_adapter" in done.stdout
