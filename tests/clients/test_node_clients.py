"""Clients in Node that are written for OpenAI: the official package, and the Vercel AI SDK with two providers."""

import json
import os
import shutil
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import pytest

from tests.clients.conftest import Served
from tests.clients.environments import NODE, Missing, node, node_modules

pytestmark = pytest.mark.anyio

OBJECT = {"sea": "calm", "waves": 3}
LOOKED = "weather said: rain in Ulm"


async def results(served: Served, folder: Path, program: str) -> dict[str, Any]:
    """Run a program in a folder with the packages, and return the result of each of its cases. Skips the test if they
    cannot be had."""
    try:
        packages = await anyio.to_thread.run_sync(node_modules)
    except Missing as missing:
        pytest.skip(str(missing))
    (folder / "node_modules").symlink_to(packages)
    for file in NODE.glob("*.mjs"):
        shutil.copy(file, folder)
    environ = {**os.environ, **served.environ}
    done = await anyio.run_process(
        [str(node()), str(folder / program)], env=environ, stdout=PIPE, stderr=None
    )
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
async def official(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return await results(served, tmp_path_factory.mktemp("openai"), "openai_client.mjs")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("chat", ["Hello there.", "stop", True]),
        ("chatStream", ["word-12", True, 12]),
        ("chatTools", LOOKED),
        ("chatToolsInAStream", LOOKED),
        ("chatParse", OBJECT),
        ("response", ["Hello there.", "completed", True]),
        ("responseChain", ["system", "user", "assistant", "user"]),
        ("responseStream", ["response.created", "response.completed", "word-12"]),
        ("responseTools", LOOKED),
        ("responseParse", OBJECT),
        ("background", ["queued", "completed", "word-12"]),
        ("backgroundResumed", [True, "response.completed", "word-30"]),
        ("backgroundCancelled", "cancelled"),
        ("socket", ["system", "user", "assistant", "user"]),
        ("models", ["main"]),
        ("files", ["beans", True]),
        ("embeddings", ["number", "number"]),
        ("unknownModel", ["NotFoundError", 404, "model_not_found", "model"]),
        ("wrongField", ["BadRequestError", 400, "invalid_request", "input[0].content[0].image_url"]),
        ("wrongKey", ["AuthenticationError", 401, "invalid_api_key", None]),
    ],
)
async def test_openai(official: dict[str, Any], case: str, result: Any) -> None:
    """The package ``openai`` finds answers, streams, calls, objects, responses in the background and errors on both
    APIs as it does at OpenAI."""
    assert official[case] == result


@pytest.fixture(scope="module")
async def ai_sdk(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return await results(served, tmp_path_factory.mktemp("ai"), "ai_sdk_client.mjs")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("text", ["Hello there.", "stop", True]),
        ("stream", ["word-12", True, 12]),
        ("picture", True),
        ("tools", [LOOKED, 2]),
        ("toolsInAStream", f"I look.{LOOKED}"),
        ("object", OBJECT),
        ("objectInAStream", OBJECT),
        ("chosenTool", [["weather", {"town": "Ulm"}]]),
    ],
)
async def test_the_ai_sdk(ai_sdk: dict[str, Any], case: str, result: Any) -> None:
    """The AI SDK gets the same from the Responses API, from chat completions, and as from any compatible server."""
    assert ai_sdk[case] == {"responses": result, "chat": result, "compatible": result}


async def test_vectors_and_speech_of_the_ai_sdk(ai_sdk: dict[str, Any]) -> None:
    """The AI SDK gets vectors by both providers, and audio."""
    assert ai_sdk["vectors"] == [True, True]
    assert ai_sdk["speech"] == ["audio/mpeg", "hello"]
