"""No text that a model may send as a tool's arguments makes a worker die or a call hang: from the wire to the tool."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import trunkline
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.testing.platform import TurnAnswer, platform
from trunkline.testing.script import CallTools, Reply, Say, ScriptedCall, ScriptedRequest, answer
from trunkline.testing.scripted_provider import ScriptedProvider

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FITTING = st.fixed_dictionaries(
    {"text": st.text(max_size=20)},
    optional={
        "count": st.integers(-5, 5), "tags": st.lists(st.text(max_size=3), max_size=3), "ratio": st.floats(),
        "table": st.dictionaries(st.text(max_size=3), JSON, max_size=2), "else": JSON,
    },
)  # fmt: skip
WRONG = st.dictionaries(st.sampled_from(["text", "count", "tags", "ratio", "table", "Text", ""]), JSON)
WHOLE = (FITTING | WRONG).map(json.dumps)
CUT = st.tuples(WHOLE, st.integers(0, 40)).map(lambda drawn: drawn[0][: drawn[1]])
LONGER = st.tuples(WHOLE, st.text(max_size=10)).map("".join)
ODD = st.sampled_from(
    [
        "", " ", "null", "[]", '"text"', "text=x", "{}{}", '{"text": "a", "text": "b"}', '{"text": NaN}',
        '{"text": "x", "ratio": NaN}', '{"text": "x", "ratio": -Infinity}', '{"text": "x", "ratio": 1e999}',
        '{"text": "\\ud800"}', '{"\\udfff": 1}', '{"text": "x", "table": {"\\ud800": "\\udc00\\ud800"}}',
        '{"text": "\\u0000"}', '{"text": "x", "count": 1' + "0" * 400 + "}", '{"text": "x", "count": -0.0}',
        '{"text": ' + "9" * 5000 + "}", '{"text": "x", "__class__": {}, "context": 1}', "\x00\x1b[2J", "\ufeff{}",
    ]
)  # fmt: skip
DEEP = st.integers(1, 3_000).map(
    lambda depth: '{"text": "x", "table": ' + '{"a":' * depth + "1" + "}" * depth + "}"
)
HUGE = st.integers(100_000, 400_000).map(lambda size: json.dumps({"text": "x" * size}))
TEXTS = st.one_of(WHOLE, WHOLE, CUT, LONGER, ODD, ODD, st.text(), DEEP, HUGE)


class Noting:
    """A tool with a parameter of every sort, and the recorded arguments."""

    def __init__(self) -> None:
        self.noted = 0

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        def note(
            text: str, count: int = 1, tags: list[str] = [], ratio: float = 0.0, table: dict[str, Any] = {}  # noqa: B006
        ) -> str:  # fmt: skip
            """Note it."""
            self.noted += 1
            return text

        return [note]


@pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module inside strategies"
)  # it runs beside a platform
def test_no_arguments_kill_a_worker_or_hang_a_call(tmp_path: Path) -> None:
    """Broken JSON, wrong types, too many, huge, deep, not a number, keys twice, lone surrogates: each call ends,
    with the tool's result or an error that it was not run; the turn continues, and no worker was restarted."""
    sent: list[str] = []

    def script(request: ScriptedRequest) -> Reply:
        if request.asked or request.program != "note them":
            return answer(Say("done"))
        return answer(CallTools(tuple(ScriptedCall("note", text) for text in sent)))

    noting = Noting()
    with ScriptedProvider(script) as provider, start_blocking_portal() as portal:
        config = {
            "runtime.provider_adapter": "openai", "adapters.openai.base_url": provider.url,
            "adapters.openai.model": "scripted",
        }  # fmt: skip
        opened = platform(tmp_path, plugins=[noting], config=config)
        with portal.wrap_async_context_manager(opened) as running:

            @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
            @given(st.lists(TEXTS, min_size=1, max_size=6))
            @example(['{"text": "x", "table": ' + "[" * 100_000, '{"a":' * 100_000, "[" * 100_000])
            @example(['{"text": "\\ud800"}', '{"\\udfff": 1}', '{"text": "x", "ratio": NaN}'])
            @example([json.dumps({"text": "x" * 2_000_000})])
            def each(texts: list[str]) -> None:
                sent[:], before = texts, noting.noted
                reported: TurnAnswer = portal.call(partial(running.say, "note them"))
                results = [event for event in reported.events if isinstance(event, ToolEnded)]
                assert reported.ended.code is None and reported.text.endswith("done")
                assert len(results) == len(texts)
                assert sum(not result.error for result in results) == noting.noted - before
                assert all("not run" in result.output for result in results if result.error), results

            each()
            assert running.instance.restarts == {}
