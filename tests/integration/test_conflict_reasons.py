"""The reason of a conflict: HTTP and OpenAI's API give the owner the same reason as the commands."""

from pathlib import Path

import anyio
import httpx
import pytest

from tests.other_users import GUEST, HEADER, Visitors, share
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("enabled = false\n", "The block 'main' is switched off. Switch it on: trunkline blocks start main"),
        ("enbled = false\n", "blocks/main/block.toml, line 1: Object contains unknown field `enbled`"),
        ("\nenabled = flase\n", "blocks/main/block.toml: Invalid value (at line 2"),
    ],
)
async def test_only_the_owner_sees_why_a_block_accepts_no_messages(
    tmp_path: Path, text: str, why: str
) -> None:
    """The reason is the file and its line, or that the block was disabled. A visitor reads the code's sentence."""
    fixed = FIXED_SENTENCES[ErrorCode.CONFLICT]
    block = tmp_path / "memory" / "blocks" / "main" / "block.toml"
    block.parent.mkdir(parents=True)
    block.write_text(text)
    said = {"role": "user", "content": "hello"}
    async with (
        platform(tmp_path, workers=("gateway", "memory"), plugins=[Visitors(GUEST)]) as running,
        httpx.AsyncClient(base_url=running.url, timeout=60) as http,
    ):
        await share(running.bus)
        await anyio.sleep(0.5)  # until memory has seen the file

        async def asked(headers: dict[str, str]) -> tuple[httpx.Response, httpx.Response]:
            chat = {"model": "main", "messages": [said]}
            return (
                await http.post("/conversations/messages", json={"content": "hello"}, headers=headers),
                await http.post("/v1/chat/completions", json=chat, headers=headers),
            )

        own, chat = await asked({"authorization": f"Bearer {running.token}"})
        assert own.status_code == chat.status_code == 409
        assert own.json()["message"] == fixed and why in own.json()["metadata"]["reason"]
        assert (
            chat.json()["error"]["message"].startswith(f"{fixed} ") and why in chat.json()["error"]["message"]
        )
        for answer in await asked({HEADER: GUEST.id}):
            assert answer.status_code == 409 and fixed in answer.text and "main" not in answer.text
