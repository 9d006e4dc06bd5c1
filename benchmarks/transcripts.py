"""``python -m benchmarks.transcripts``: checks every request that leaves for a model by the vendor's own rules.

A real platform, whose workers are processes, and OpenAI's official client in front of it. The model is scripted, behind
an endpoint that speaks Chat Completions or Responses and refuses whatever OpenAI refuses: a call without its result, a
result without its call, ids that are there twice, arguments that are no JSON
(``trunkline.testing.vendor_apis.openai_rules``). Each way in which a transcript comes to be odd is gone through. The
table says how many requests left and what was wrong with them; the command fails if anything was. ``--json`` prints
the same for programs.
"""

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import anyio
from openai import AsyncOpenAI, BadRequestError

from benchmarks.figures import progress, table
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import ForkTurn
from trunkline.testing.scripted_provider import ScriptedProvider

PROTOCOLS = ("chat", "responses")
WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
LOOK = 'list_directory {"path": "."}'
WRITE = 'call:write_file {"path": "a.md", "content": "x"} ;; say:done'
MIXED = f"parallel:{LOOK} weather {{}} ;; say:done"


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """What left in one scenario over one protocol."""

    protocol: str
    scenario: str
    requests: int
    messages: int
    faults: tuple[str, ...]


class TranscriptStage:
    """The platform and a client of it, which keeps its transcript."""

    def __init__(self, running: ProcessPlatform, client: AsyncOpenAI) -> None:
        self.running = running
        self._client = client
        self._messages: list[Any] = []
        self._conversation = ""

    def begin(self) -> None:
        """Forget the chat before."""
        self._messages, self._conversation = [], ""

    async def expect_refusal(self, *said: Any) -> None:
        """Say something that the gateway must refuse; the chat is as it was."""
        kept = list(self._messages)
        try:
            await self.ask(*said, header=True)
        except BadRequestError:
            self._messages[:] = kept
        else:
            raise AssertionError(f"this was taken: {said}")

    async def ask(self, *said: Any, header: bool = False) -> list[str]:
        """Say something and return the ids of the client's calls in the answer."""
        self._messages += [{"role": "user", "content": one} if isinstance(one, str) else one for one in said]
        headers = {"X-Conversation-ID": self._conversation} if header else {}
        raw = await self._client.chat.completions.with_raw_response.create(
            model="main", messages=self._messages, tools=[WEATHER], extra_headers=headers
        )
        self._conversation = raw.headers["x-conversation-id"]
        message = raw.parse().choices[0].message
        self._messages.append(message.model_dump(exclude_none=True))
        return [call.id for call in message.tool_calls or ()]


def result(id: str) -> dict[str, str]:
    """What the client's tool brought."""
    return {"role": "tool", "tool_call_id": id, "content": "rain"}


async def tools_of_both(stage: TranscriptStage) -> None:
    """Ours and the client's in one answer, which goes on by the transcript."""
    [id] = await stage.ask(MIXED)
    await stage.ask(result(id))
    await stage.ask("say:thanks")


async def unanswered(stage: TranscriptStage) -> None:
    """The client never answers a call, by the transcript and by the header."""
    for header in (False, True):
        await stage.ask(MIXED)
        await stage.ask("say:never mind", header=header)
        await stage.ask("say:well", header=header)


async def late_and_twice(stage: TranscriptStage) -> None:
    """A result comes after other words, twice, and one of no call: each is refused, and the chat goes on."""
    [id] = await stage.ask("call:weather {} ;; say:done")
    await stage.ask("say:wait", header=True)
    for results in ([result(id)], [result(id), result(id)], [result("call_of_nobody")]):
        await stage.expect_refusal(*results, "say:now")
    await stage.ask("say:now", header=True)


async def broken_arguments(stage: TranscriptStage) -> None:
    """The model writes what is no JSON, and the client sends it back."""
    [id] = await stage.ask('badcall:weather {"town": ;; say:done')
    await stage.ask(result(id))


async def decided(stage: TranscriptStage) -> None:
    """A call of ours is denied, the next allowed."""
    for allow in (False, True):
        accepted = await stage.running.send(WRITE)
        await _decide(stage.running, accepted.turn, allow)
        answer = await stage.running.answer(accepted)
        await stage.running.say("say:well", conversation=answer.accepted.conversation)


async def cancelled(stage: TranscriptStage) -> None:
    """The turn is ended while a call waits for a person."""
    accepted = await stage.running.send(WRITE)
    await _waits(stage.running, accepted.turn)
    await stage.running.gateway.cancel(accepted.turn)
    await stage.running.answer(accepted)
    await stage.running.say("say:well", conversation=accepted.conversation)


async def taken_over(stage: TranscriptStage) -> None:
    """The monitor is killed after calls, while the answer comes."""
    accepted = await stage.running.send(f"call:{LOOK} ;; slow:40:50")
    async for event in stage.running.gateway.watch(accepted.conversation, accepted.turn):
        if type(event).__name__ == "TextDelta":
            break
    stage.running.kill("monitor")
    await stage.running.restart("monitor")
    await stage.running.answer(accepted)
    await stage.running.say("say:well", conversation=accepted.conversation)


async def forked(stage: TranscriptStage) -> None:
    """A turn is asked again from its middle, and an answer once more by the client."""
    answer = await stage.running.say(f"call:{LOOK} ;; call:{LOOK} ;; say:done")
    request = ForkTurn(turn=answer.accepted.turn, step=1)
    await stage.running.answer(await stage.running.gateway.fork(request))
    await stage.ask(MIXED)
    kept = list(stage._messages)
    for words in ("say:one", "say:two"):
        stage._messages[:] = kept
        await stage.ask(words)


async def _waits(running: ProcessPlatform, turn: str) -> Any:
    with anyio.fail_after(60):
        while True:
            for approval in await running.gateway.waiting():
                if approval.turn == turn:
                    return approval
            await anyio.sleep(0.05)


async def _decide(running: ProcessPlatform, turn: str, allow: bool) -> None:
    one = await _waits(running, turn)
    await running.gateway.decide(one.turn, one.call, one.call_hash, allow=allow)


SCENARIOS: dict[str, Callable[[TranscriptStage], Awaitable[None]]] = {
    "tools of both": tools_of_both,
    "never answered": unanswered,
    "late, twice, of no call": late_and_twice,
    "arguments that are no JSON": broken_arguments,
    "denied and allowed": decided,
    "cancelled": cancelled,
    "taken over after a kill": taken_over,
    "forked and asked again": forked,
}


async def run_scenarios(protocol: str) -> list[ScenarioResult]:
    """All scenarios over one protocol."""
    rows = []
    async with ScriptedProvider().serving() as provider:
        config = {
            **provider.settings,
            "adapters.openai.api": protocol,
            "permissions.approvals": "some",
        }
        async with (
            process_platform(config=config) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token) as client,
        ):
            stage = TranscriptStage(running, client)
            for name, play in SCENARIOS.items():
                progress(f"{protocol}: {name}")
                provider.forget()
                stage.begin()
                await play(stage)
                sent = [
                    one.body.get("messages") or one.body.get("input") or ()
                    for one in provider.answer_requests
                ]
                faults = tuple(provider.faults)
                provider.faults.clear()
                rows.append(ScenarioResult(protocol, name, len(sent), sum(map(len, sent)), faults))
    progress("")
    return rows


def report(rows: Sequence[ScenarioResult]) -> str:
    """The table, and each fault."""
    head = ("protocol", "scenario", "requests", "messages", "refused")
    lines = [(row.protocol, row.scenario, row.requests, row.messages, len(row.faults)) for row in rows]
    requests, messages = sum(row.requests for row in rows), sum(row.messages for row in rows)
    total = ("both", "all", requests, messages, sum(len(row.faults) for row in rows))
    faults = [f"{row.protocol}, {row.scenario}: {fault}" for row in rows for fault in row.faults]
    return "\n".join([table(head, [*lines, total]), *faults])


def main() -> int:
    """Print the table; 1 if the vendor would have refused any request."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transcripts", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [row for protocol in PROTOCOLS for row in anyio.run(run_scenarios, protocol)]
    sys.stdout.write((json.dumps([asdict(row) for row in rows]) if options.json else report(rows)) + "\n")
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    sys.exit(main())
