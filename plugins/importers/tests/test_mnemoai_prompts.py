"""mnemoai's prompts.yaml becomes the files of memory that replace prompts here (MN-F8)."""

from typing import Any

import pytest

from trunkline_router.prompts import FILES

pytestmark = pytest.mark.anyio

PROMPTS = """\
SYSTEM_PROMPT: |
  You are kind.
ROUTING_PROMPT: "Choose a word for {message}."
ORCHESTRATOR_PROMPT: |
  Split it.
AGGREGATOR_PROMPT: Join it.
SUMMARY_TASK_PROMPT: Be short.
OTHER: {a: b}
"""


async def test_MN_F8_prompts_become_files_that_replace_ours(place: Any, write: Any) -> None:
    """Those with an equivalent are imported, the others named. A second import changes nothing."""
    write("config/config.yaml", "x: y")
    write("MEMORY.md", "a")
    home = write("config/prompts.yaml", PROMPTS)
    done = await place.bring(home)
    assert await place.text("AGENT.md") == "You are kind.\n"
    texts = {name: await place.text(path.lstrip("/")) for name, path in FILES.items()}
    assert texts == {"route": "Choose a word for {message}.\n", "split": "Split it.\n", "join": "Join it.\n"}
    refused = {gap.what for gap in done.gaps if "was not imported" in gap.why}
    assert refused == {"config/prompts.yaml: SUMMARY_TASK_PROMPT", "config/prompts.yaml: OTHER"}
    before = {path: await place.text(path) for path in await place.paths()}
    await place.bring(home)
    assert {path: await place.text(path) for path in await place.paths()} == before


@pytest.mark.parametrize("content", ["[", "- a", "&a [*a, *a]", "\x00"])
async def test_a_damaged_prompts_file_ends_no_import(place: Any, write: Any, content: str) -> None:
    """It is reported."""
    write("config/config.yaml", "x: y")
    write("MEMORY.md", "a")
    done = await place.bring(write("config/prompts.yaml", content))
    assert any(gap.what == "config/prompts.yaml" and "YAML" in gap.why for gap in done.gaps)
