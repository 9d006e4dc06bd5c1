"""Fill a platform, open its pages, print what each was given."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx

import trunkline
from benchmarks.figures import progress, table
from benchmarks.lighthouse import __doc__ as purpose
from benchmarks.lighthouse.package_cache import NODE, installed
from benchmarks.machine import describe_machine
from trunkline.api.model import Call
from trunkline.contracts.memory.chunks import MEMORY_REMEMBER, Remember
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

FULL = 100

PAGES: Mapping[str, str] = {
    "chat": "#/chat",
    "conversation": "#/chat/{conversation}",
    "approvals": "#/approvals",
    "blocks": "#/blocks",
    "schedules": "#/schedules",
    "workflows": "#/workflows",
    "memory": "#/memory",
    "file": "#/memory/notes%2Fbeans.md",
    "remembered": "#/memory/%3Achunks",
    "activity": "#/activity",
    "thoughts": "#/activity/thoughts",
    "state": "#/activity/state",
    "spend": "#/activity/spend",
    "agents": "#/activity/agents",
    "background tasks": "#/activity/tasks",
    "platform": "#/activity/platform",
    "check-up": "#/activity/doctor",
    "audit": "#/activity/audit",
    "dead letters": "#/activity/letters",
    "trace": "#/activity/trace/{turn}",
    "first steps": "#/setup",
    "account": "#/account",
    "settings": "#/settings",
    "form": "#/settings/plugins.web",
}
"""The address of each page. Those who are not signed in see the same one everywhere."""

SIGN_IN = "sign in"

ANSWER = """A [link](https://example.com), `code`, and

```python
x = 1  # one
```

> quoted

| a |
|---|
| b |"""

WRITE = trunkline.ToolCall(id="call_1", name="write_file", arguments={"path": "beans.md", "content": "Sow."})

CHROMIUM_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


class WriterPlugin:
    """A plugin with a model that answers, and then wants to write."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        """The only model."""
        return [ScriptedModel([ANSWER, [Call(WRITE)]])]


@dataclass(frozen=True)
class PageScore:
    """What Lighthouse gave a page, and what it found wrong."""

    page: str
    score: int
    faults: tuple[str, ...]


async def measure(only: str) -> list[PageScore]:
    """Give the page of this name a score, or all pages if it is empty."""
    lighthouse = installed()
    config = {"runtime.provider_adapter": "scripted", "permissions.approvals": "some"}
    async with platform(plugins=[WriterPlugin()], config=config) as running:
        places = await _filled(running)
        pages = {name: address.format(**places) for name, address in PAGES.items()} | {SIGN_IN: ""}
        scores = []
        for name, address in pages.items():
            if only in ("", name):
                progress(name)
                token = "" if name == SIGN_IN else running.token
                report = await anyio.to_thread.run_sync(
                    _report, lighthouse, f"{running.url}/{address}", token
                )
                scores.append(_score(name, report))
        progress("")
    return scores


async def _filled(running: Platform) -> dict[str, str]:
    """Put something on every page. Returns the parts of addresses."""
    first = await running.say("How do I grow beans?")
    accepted = await running.send("Note it.", conversation=first.accepted.conversation)
    remembered = Remember(
        content="Beans like warm soil.", actor="benchmark", conversation_id=accepted.conversation
    )
    await running.bus.call(MEMORY_REMEMBER, remembered)
    async with httpx.AsyncClient(base_url=running.url, headers=_signed(running.token)) as client:
        body = {"path": "notes/beans.md", "content": "# Beans\n\nSow in mid-May.\n"}
        (await client.put("/api/memory/file", json=body)).raise_for_status()
        with anyio.fail_after(60):
            await _asked(client)
    return {"conversation": accepted.conversation, "turn": first.accepted.turn}


async def _asked(client: httpx.AsyncClient) -> None:
    """Wait until a call waits for its approval."""
    while True:
        if (await client.get("/api/approvals")).json()["approvals"]:
            return
        await anyio.sleep(0.1)


def _report(lighthouse: Path, url: str, token: str) -> Mapping[str, Any]:
    """The report of a page. The token goes through a file, because every program can see the arguments of others."""
    with tempfile.TemporaryDirectory() as folder:
        headers = Path(folder, "headers.json")
        headers.write_text(json.dumps(_signed(token)))
        argv = [
            NODE, lighthouse, url, "--quiet", "--no-enable-error-reporting", "--only-categories=accessibility",
            "--throttling-method=provided", "--max-wait-for-load=10000", "--output=json", f"--extra-headers={headers}",
            f"--chrome-path={shutil.which('chromium')}", f"--chrome-flags={' '.join(CHROMIUM_FLAGS)}",
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode:
        raise SystemExit(f"Lighthouse did not open {url}: {done.stderr.strip()[-2000:]}")
    report: Mapping[str, Any] = json.loads(done.stdout)
    return report


def _signed(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def _score(page: str, report: Mapping[str, Any]) -> PageScore:
    audits = report["audits"].values()
    faults = tuple(audit["title"] for audit in audits if audit["score"] is not None and audit["score"] < 1)
    return PageScore(page, round((report["categories"]["accessibility"]["score"] or 0) * FULL), faults)


def main() -> None:
    """Measure, print, and end with 1 if a page has less than 100."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lighthouse", description=purpose)
    parser.add_argument("--page", choices=(*PAGES, SIGN_IN), default="", help="measure one page only")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    given = parser.parse_args()

    scores = anyio.run(measure, given.page)
    if given.json:
        print(json.dumps({one.page: one.score for one in scores}))
    else:
        print(describe_machine())
        print(
            table(
                ("page", "accessibility", "faults"), [(o.page, o.score, "; ".join(o.faults)) for o in scores]
            )
        )
    sys.exit(any(one.score < FULL for one in scores))


if __name__ == "__main__":
    main()
