"""Clients in Python that are written for OpenAI: LangChain, Pydantic AI, Instructor, llm and aider.

Each one is the released package, in an environment of its own. It uses both APIs of OpenAI where it can.
"""

import json
import os
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import anyio
import pytest

from tests.clients.conftest import Served
from tests.clients.environments import Missing, environment

pytestmark = pytest.mark.anyio

PROGRAMS = Path(__file__).parent / "programs"

OBJECT = {"sea": "calm", "waves": 3}
LOOKED = ["I look.", 1, "weather said: rain in Ulm"]


async def installed(name: str) -> Path:
    """Return the folder ``bin`` of an environment. Skips the test if it cannot be had."""
    try:
        return await anyio.to_thread.run_sync(environment, name)
    except Missing as missing:
        pytest.skip(str(missing))


async def results(served: Served, name: str, program: str) -> dict[str, Any]:
    """Run a program in an environment, and return the result of each of its cases."""
    python = await installed(name) / "python"
    environ = {**os.environ, **served.environ}
    done = await anyio.run_process(
        [str(python), str(PROGRAMS / program)], env=environ, stdout=PIPE, stderr=None
    )
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
async def langchain(served: Served) -> dict[str, Any]:
    return await results(served, "frameworks", "langchain_client.py")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("answer", ["Hello there.", True, "stop"]),
        ("answer_by_responses", ["Hello there.", True, "completed"]),
        ("stream", ["word-12", True, 12]),
        ("stream_by_responses", ["word-12", True, 12]),
        ("tools", LOOKED),
        ("tools_by_responses", LOOKED),
        ("tools_by_responses_with_server_state", LOOKED),
        ("tools_in_a_stream", [["weather", {"town": "Ulm"}]]),
        ("structured_output_by_schema", OBJECT),
        ("structured_output_by_schema_and_responses", OBJECT),
        ("structured_output_by_call", OBJECT),
        ("structured_output_by_mode", OBJECT),
        ("vectors", [True, True, False]),
        ("pictures", [True, True]),
    ],
)
async def test_langchain(langchain: dict[str, Any], case: str, result: Any) -> None:
    """``ChatOpenAI`` finds text, usage, reasons, calls of tools and objects in answers and streams of both APIs.
    ``OpenAIEmbeddings`` gets vectors."""
    assert langchain[case] == result


@pytest.fixture(scope="module")
async def pydantic_ai(served: Served) -> dict[str, Any]:
    return await results(served, "frameworks", "pydantic_ai_client.py")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("answer", ["Hello there.", True]),
        ("history", ["user", "assistant", "user"]),
        ("stream", ["word-12", True]),
        ("tools", "weather said: rain in Ulm"),
        ("tools_in_parallel", "weather said: rain in Ulm\nweather said: rain in Bonn"),
        ("picture", True),
        ("output_by_call", OBJECT),
        ("output_by_schema", OBJECT),
        ("output_by_prompt", OBJECT),
    ],
)
async def test_pydantic_ai(pydantic_ai: dict[str, Any], case: str, result: Any) -> None:
    """An agent of Pydantic AI gets the same from both APIs."""
    assert pydantic_ai[case] == {"chat": result, "responses": result}


@pytest.fixture(scope="module")
async def instructor(served: Served) -> dict[str, Any]:
    return await results(served, "instructor", "instructor_client.py")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("by_tools", OBJECT),
        ("by_strict_tools", OBJECT),
        ("by_json_mode", OBJECT),
        ("by_schema", OBJECT),
        ("by_tools_of_responses", OBJECT),
        ("partial", OBJECT),
        ("several", [OBJECT, {"sea": "rough", "waves": 9}]),
    ],
)
async def test_instructor(instructor: dict[str, Any], case: str, result: Any) -> None:
    """Instructor gets its objects in each of its modes for OpenAI."""
    assert instructor[case] == result


LLM_MODEL = """- model_name: main
  api_base: {url}
  api_key_name: here
  supports_tools: true
  supports_schema: true
  {more}
"""


@pytest.mark.parametrize("model", ["chat", "responses"])
async def test_llm(served: Served, tmp_path: Path, model: str) -> None:
    """The command ``llm`` streams an answer, continues a conversation, runs tools, and gets an object, on both APIs."""
    program = await installed("frameworks") / "llm"
    url, key = served.environ["CLIENT_URL"], served.environ["CLIENT_KEY"]
    kinds = ("model_id: chat", "model_id: responses\n  responses: true")
    models = [LLM_MODEL.format(url=url, more=more) for more in kinds]
    (tmp_path / "extra-openai-models.yaml").write_text("".join(models))
    (tmp_path / "keys.json").write_text(json.dumps({"here": key}))
    (tmp_path / "tools.py").write_text('def weather(town: str) -> str:\n    return f"rain in {town}"\n')

    async def llm(*words: str) -> str:
        environ = {**os.environ, "LLM_USER_PATH": str(tmp_path)}
        done = await anyio.run_process(
            [str(program), "-m", model, *words], env=environ, stderr=STDOUT, check=False
        )
        return done.stdout.decode().strip()

    assert await llm("say:Hello there.") == "Hello there."
    assert (await llm("-c", "roles")).split() == ["system", "user", "assistant", "user"]
    tool = 'say:I look. ;; call:weather {"town": "Ulm"} ;; quote'
    assert await llm("--functions", str(tmp_path / "tools.py"), tool) == "I look. weather said: rain in Ulm"
    assert json.loads(await llm("--schema", "sea, waves int", f"say:{json.dumps(OBJECT)}")) == OBJECT


AIDER_OPTIONS = (
    *("--yes-always", "--no-git", "--no-check-update", "--analytics-disable", "--no-show-release-notes"),
    *("--no-show-model-warnings", "--no-pretty", "--no-detect-urls", "--edit-format", "diff"),
)


async def test_aider(served: Served, tmp_path: Path) -> None:
    """aider applies the edit that a block writes to a file."""
    program = await installed("aider") / "aider"
    prices = tmp_path / ".aider/caches/model_prices_and_context_window.json"  # which it would fetch
    prices.parent.mkdir(parents=True)
    prices.write_text(
        json.dumps({"openai/main": {"max_input_tokens": 100_000, "litellm_provider": "openai"}})
    )
    file = tmp_path / "greeting.py"
    file.write_text('print("hello")\n')
    given = {"HOME": str(tmp_path), "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
    given |= {"OPENAI_API_BASE": served.environ["CLIENT_URL"], "OPENAI_API_KEY": served.environ["CLIENT_KEY"]}
    done = await anyio.run_process(
        [str(program), "--model", "openai/main", *AIDER_OPTIONS, "--message", "Say good morning.", file.name],
        env={**os.environ, **given}, cwd=tmp_path, stderr=STDOUT, check=False,
    )  # fmt: skip
    assert file.read_text() == 'print("good morning")\n', done.stdout.decode()
