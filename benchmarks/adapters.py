"""``python -m benchmarks.adapters``: what an adapter adds to the vendor's SDK for each token, and what each SDK weighs.

The server is a process of its own. Each round reads one answer with the bare SDK and one with the adapter, in turn; the
processor time of this process counts, so neither the server nor other programs do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import httpx

from benchmarks import deployments, machine
from benchmarks.figures import progress, table
from trunkline import Message, Secret
from trunkline.api.model import ModelAdapter, ModelRequest, Text
from trunkline.config.editor import write_settings
from trunkline.testing.scripted_provider import provider_process
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.settings import AnthropicSettings
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.settings import BedrockSettings
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.settings import GeminiSettings
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.settings import OllamaSettings
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import OpenAISettings

KEY = Secret(env="A_KEY")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
BASE = {"gateway.port": 0, "monitor.engine_port": 0, "channels.enabled": [], "telemetry.log_level": "warning"}

Figures = dict[str, dict[str, float]]
Pieces = Callable[[str], AsyncIterator[str]]


def adapters(url: str) -> dict[str, ModelAdapter]:
    """An adapter of each vendor for the server at this address."""
    openai = {"base_url": f"{url}/v1", "api_key": KEY, "model": "gpt-5.5"}
    return {
        "OpenAI, Responses": OpenAIAdapter(OpenAISettings(**openai, api="responses")),
        "OpenAI, Chat Completions": OpenAIAdapter(OpenAISettings(**openai, api="chat")),
        "Anthropic": AnthropicAdapter(
            AnthropicSettings(base_url=url, api_key=KEY, model="claude-sonnet-4-6")
        ),
        "Gemini": GeminiAdapter(GeminiSettings(base_url=url, api_key=KEY, model="gemini-3.8-flash")),
        "Ollama": OllamaAdapter(OllamaSettings(base_url=url, model="scripted")),
        "Bedrock": BedrockAdapter(BedrockSettings(endpoint_url=url, region="us-east-1", model=CLAUDE)),
    }


def sdks(url: str) -> dict[str, Pieces]:
    """The text of an answer by each vendor's own SDK, as its documentation shows it."""
    import anthropic
    import boto3
    import ollama
    import openai
    from google import genai

    key = os.environ["A_KEY"]
    of_openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    of_anthropic = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
    of_gemini = genai.Client(api_key=key, http_options={"base_url": url}).aio
    of_ollama = ollama.AsyncClient(url)
    of_bedrock = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url)

    async def responses(text: str) -> AsyncIterator[str]:
        async for event in await of_openai.responses.create(model="gpt-5.5", input=text, stream=True):
            if event.type == "response.output_text.delta":
                yield event.delta

    async def chat(text: str) -> AsyncIterator[str]:
        said: Any = [{"role": "user", "content": text}]
        async for chunk in await of_openai.chat.completions.create(
            model="gpt-5.5", messages=said, stream=True
        ):
            for choice in chunk.choices:
                yield choice.delta.content or ""

    async def messages(text: str) -> AsyncIterator[str]:
        said: Any = [{"role": "user", "content": text}]
        async for event in await of_anthropic.messages.create(
            model="claude-sonnet-4-6", messages=said, max_tokens=20_000, stream=True
        ):
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                yield event.delta.text

    async def content(text: str) -> AsyncIterator[str]:
        async for chunk in await of_gemini.models.generate_content_stream(
            model="gemini-3.8-flash", contents=text
        ):
            yield chunk.text or ""

    async def lines(text: str) -> AsyncIterator[str]:
        said = [{"role": "user", "content": text}]
        async for part in await of_ollama.chat(model="scripted", messages=said, stream=True):
            yield part.message.content or ""

    async def converse(text: str) -> AsyncIterator[str]:
        said: Any = [{"role": "user", "content": [{"text": text}]}]
        for event in of_bedrock.converse_stream(modelId=CLAUDE, messages=said)["stream"]:
            yield event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")

    return {
        "OpenAI, Responses": responses, "OpenAI, Chat Completions": chat, "Anthropic": messages, "Gemini": content,
        "Ollama": lines, "Bedrock": converse,
    }  # fmt: skip


async def by_adapter(adapter: ModelAdapter, text: str) -> int:
    """Read an answer with the adapter, and return the number of its pieces."""
    request = ModelRequest(messages=(Message(id="1", role="user", content=text),), max_tokens=20_000)
    count = 0
    async with aclosing(adapter.stream(request)) as events:  # type: ignore[type-var]
        async for event in events:
            count += isinstance(event, Text)
    return count


async def by_sdk(pieces: Pieces, text: str) -> int:
    """Read an answer with the SDK, and return the number of its pieces."""
    return sum([1 async for piece in pieces(text) if piece])


async def timed(read: Callable[[], Awaitable[int]], tokens: int) -> float:
    """Return the microseconds of processor time for each token of one answer."""
    began = time.process_time()
    count = await read()
    assert count >= tokens, f"{count} of {tokens} tokens arrived"
    return (time.process_time() - began) / tokens * 1e6


async def overhead(url: str, tokens: int, rounds: int) -> list[dict[str, Any]]:
    """Return the microseconds for each token with the SDK and with the adapter, and their ratio, by vendor."""
    text = f"slow:{tokens}:0"
    rows = []
    bare = sdks(url)
    for name, adapter in adapters(url).items():
        progress(name)
        await by_adapter(adapter, "slow:20:0")
        await by_sdk(bare[name], "slow:20:0")
        taken: dict[str, list[float]] = {"sdk": [], "adapter": []}
        for _ in range(rounds):
            taken["sdk"].append(await timed(lambda: by_sdk(bare[name], text), tokens))  # noqa: B023 - awaited here
            taken["adapter"].append(await timed(lambda: by_adapter(adapter, text), tokens))  # noqa: B023
        await adapter.aclose()
        sdk, ours = statistics.median(taken["sdk"]), statistics.median(taken["adapter"])
        rows.append({"vendor": name, "sdk": sdk, "adapter": ours, "ratio": ours / sdk})
    return rows


def imported(code: str) -> dict[str, float]:
    """Return seconds of processor time and resident MiB of a Python process that runs the code."""
    script = (
        f"import time, resource\n{code}\nimport os\n"
        "size = int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')\n"
        "print(time.process_time(), size / 2**20)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, size = map(float, ran.stdout.split())
    return {"seconds": seconds, "resident": size}


def platform_with(settings: dict[str, Any]) -> dict[str, float]:
    """Return CPU seconds to ready, and resident MiB when ready and after the first answer, with these settings."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        home = Path(folder)
        write_settings(home / "trunkline.toml", {**BASE, **settings})
        process = deployments.start_trunkline(home)
        try:
            address = deployments.wait_until_ready(process)
            ready, size = machine.cpu_seconds(process.pid), machine.resident_mib(process.pid)
            token = (home / "token").read_text().strip()
            body = {"model": "main", "messages": [{"role": "user", "content": "say:Good morning."}]}
            headers = {"Authorization": f"Bearer {token}"}
            httpx.post(
                f"{address}/v1/chat/completions", json=body, headers=headers, timeout=60
            ).raise_for_status()
            return {"ready": ready, "resident": size, "answered": machine.resident_mib(process.pid)}
        finally:
            process.terminate()
            process.wait()


def weights(url: str) -> Figures:
    """Return what a platform weighs without an adapter that asks a vendor, and with each."""
    key = {"env": "A_KEY"}
    sections: dict[str, dict[str, Any]] = {
        "offline": {},
        "openai": {"base_url": f"{url}/v1", "model": "scripted"},
        "anthropic": {"base_url": url, "model": "claude-sonnet-4-6", "api_key": key},
        "gemini": {"base_url": url, "model": "gemini-3.8-flash", "api_key": key},
        "ollama": {"base_url": url, "model": "scripted"},
        "bedrock": {"endpoint_url": url, "region": "us-east-1", "model": CLAUDE},
    }
    found = {}
    for name, section in sections.items():
        progress(f"a platform with {name}")
        settings = {f"adapters.{name}.{key}": value for key, value in section.items()}
        found[name] = platform_with({"runtime.provider_adapter": name, **settings})
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters", description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", type=int, default=3_000, help="tokens of an answer (3000)")
    parser.add_argument("--rounds", type=int, default=9, help="answers of each way to take the median of (9)")
    parser.add_argument("--quick", action="store_true", help="one short round, and no platforms")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    os.environ |= {"A_KEY": "sk-bench", "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    tokens, rounds = (50, 1) if given.quick else (given.tokens, given.rounds)
    with provider_process() as base:
        url = base.removesuffix("/v1")
        rows = anyio.run(overhead, url, tokens, rounds)
        sizes = {} if given.quick else weights(url)
    imports = {"python": imported(""), "import trunkline": imported("import trunkline")}
    progress("")
    found = {"tokens": rows, "import": imports, "platform": sizes}
    if given.json:
        print(json.dumps({"machine": machine.describe_machine(), **found}))
    else:
        print(machine.describe_machine(), *tables(rows, imports, sizes), sep="\n\n")


def tables(rows: list[dict[str, Any]], imports: Figures, sizes: Figures) -> list[str]:
    """The figures as Markdown."""
    head = ["vendor", "SDK, µs for each token", "adapter, µs for each token", "ratio"]
    overheads = [[r["vendor"], f"{r['sdk']:.0f}", f"{r['adapter']:.0f}", f"{r['ratio']:.2f}"] for r in rows]
    started = [[name, f"{f['seconds']:.2f}", f"{f['resident']:.0f}"] for name, f in imports.items()]
    weighed = [[name, *(f"{value:.1f}" for value in found.values())] for name, found in sizes.items()]
    platform = ["platform with", "CPU s to ready", "MiB when ready", "MiB after the first answer"]
    return [
        table(head, overheads),
        table(["", "CPU s", "resident MiB"], started),
        table(platform, weighed),
    ]


if __name__ == "__main__":
    main()
