"""The model middleware that splits a large task into steps, has agents do them, and joins the results (MN-F8, MN-F9).

It answers model calls of the turn in place of a model: the first with the list of the steps, later ones with the calls
of ``agent_run`` that are due, and the last one with the joined results. Everything that it knows is in the messages.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager

from msgspec.structs import replace

import trunkline
from trunkline import ErrorCode, MemoryFile, Message, ToolCall, ToolError, new_id
from trunkline.api.model import (
    AskModel,
    Call,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    Text,
    ToolChoice,
)
from trunkline_router.preferences import FILE as PREFERENCES_FILE
from trunkline_router.preferences import parse_preferences
from trunkline_router.prompts import FILES, PromptName, as_data, prompt
from trunkline_router.step_progress import (
    ASK_TOOL,
    REFUSE_ANSWER,
    RUN_ANSWER,
    RUN_TOOL,
    StepProgress,
    call_id,
    read_progress,
)
from trunkline_router.subtask import HEADING, Subtask, parse_subtasks, steps_in, steps_text, task_text

log = logging.getLogger(__name__)

ASK = "ask"
"""The mode of a turn whose owner approves the steps before they run."""

MODES = ("on", ASK)
"""The modes of a route by which the router marks the turns to split."""

LONGEST = 8_000
"""Characters of a step's result that another step or the final answer is made of."""

FINAL = (ErrorCode.PANIC, ErrorCode.OVER_BUDGET)
"""The codes of failures after which no other request is sent."""


class Orchestrator:
    """Answers the model calls of turns that are split."""

    def __init__(self) -> None:
        self._context: trunkline.LifespanContext | None = None

    @asynccontextmanager
    async def lifespan(self, context: trunkline.LifespanContext) -> AsyncIterator[None]:
        """Keep the connection by which the owner's prompts are read."""
        self._context = context
        try:
            yield
        finally:
            self._context = None

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the next answer of a turn to split, and that of the model in every other turn.

        Raises ModelError only where the model fails that answers in place of the steps, or after panic.
        """
        async with aclosing(self._answer(request, proceed)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    def _answer(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        if not _is_split(request):
            return proceed(request)
        progress = read_progress(request.messages, request.turn)
        if progress.steps and progress.approval == "refused":
            return _said(request, "The steps were not run.")
        if progress.approval == "changed" or not progress.answered:
            return self._split(request, proceed, progress)
        if not progress.steps:
            return proceed(request)
        return _run(request, progress) if progress.ready else self._join(request, proceed, progress)

    async def _split(
        self, request: ModelRequest, proceed: AskModel, progress: StepProgress
    ) -> AsyncIterator[ModelEvent]:
        """Yield the list of the steps, with the calls of the first ones or the question about all. A task of one step
        is answered by the model itself."""
        steps = steps_in(request.partial)
        if not steps and (not request.partial or request.partial.startswith(HEADING)):
            steps = await self._steps(request, proceed, progress)
        if len(steps) < 2:
            async with aclosing(proceed(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
            return
        listed = steps_text(steps)
        route = request.route
        if route is not None and route.mode == ASK:
            question = {"question": f"{listed}\n\nRun these steps?", "options": [RUN_ANSWER, REFUSE_ANSWER]}
            calls = [ToolCall(id=new_id("approve"), name=ASK_TOOL, arguments=question)]
        else:
            planned = StepProgress(progress.task, progress.remarks, True, steps, {}, "none")
            listed = f"{listed}\n\n{_progress_text(planned)}"
            calls = _calls(planned)
        for event in _events(request, listed, calls):
            yield event

    async def _steps(
        self, request: ModelRequest, proceed: AskModel, progress: StepProgress
    ) -> tuple[Subtask, ...]:
        """Ask the model for the steps, without reasoning, and with it if that fails. A model that does not answer
        splits nothing."""
        most = await self._max_steps(request.block)
        changes = [f"The person wants this instead: {progress.change}"] if progress.change else []
        question = await self._prompt(
            "split",
            request,
            most=str(most),
            tools=", ".join(tool.name for tool in request.tools),
            task="\n\n".join([as_data("task", progress.task), *changes]),
        )
        for reasoning in (False, True):
            asked = replace(_question(request, question), reasoning=reasoning, purpose="split")
            try:
                return parse_subtasks(await _text(proceed(asked)), progress.task, most)
            except ModelError as error:
                log.warning("the task of turn %s was not split: %s", request.turn, error)
                if error.code in FINAL:
                    break
        return ()

    async def _join(
        self, request: ModelRequest, proceed: AskModel, progress: StepProgress
    ) -> AsyncIterator[ModelEvent]:
        """Yield the answer of the model that is shown all results; without one, the results. Steps that failed are
        named in any case."""
        failed = _failure_text(progress)
        question = await self._prompt(
            "join",
            request,
            task="\n\n".join((as_data("task", progress.task), *progress.remarks)),
            results="\n\n".join(_result_texts(progress)),
        )
        asked = replace(_question(request, question), partial=request.partial, purpose="join")
        finish: Finish | None = None
        try:
            async with aclosing(proceed(asked)) as events:  # type: ignore[type-var]
                async for event in events:
                    if isinstance(event, Finish):
                        finish = event
                    elif not isinstance(event, Call):
                        yield event
        except ModelError as error:
            if error.code is ErrorCode.PANIC:
                raise
            log.warning("the results of turn %s were not joined: %s", request.turn, error)
        if finish is None:
            yield Text("\n\n".join(_plain_results(progress)))
        if failed:
            yield Text(f"\n\n{failed}")
        yield replace(finish, reason="stop") if finish is not None else Finish(cost=0)

    async def _prompt(self, name: PromptName, request: ModelRequest, **values: str) -> str:
        return prompt(name, await self._files(FILES[name], request.block), **values)

    async def _max_steps(self, block: str) -> int:
        path = f"/{PREFERENCES_FILE}"
        file = (await self._files(path, block)).get(path)
        return parse_preferences(file.content if file is not None else None).max_steps

    async def _files(self, path: str, block: str) -> Mapping[str, MemoryFile]:
        """Return the owner's file of this path, nothing if there is none or memory does not answer."""
        if self._context is None:
            return {}
        try:
            return {path: await self._context.memory(block).read(path)}
        except ToolError:
            return {}


def _is_split(request: ModelRequest) -> bool:
    """Report whether the router marked the turn, and an agent can be run."""
    route = request.route
    if route is None or route.mode not in MODES or request.operation != "chat" or request.purpose != "turn":
        return False
    return bool({RUN_TOOL, "load_tools"} & {tool.name for tool in request.tools})


def _run(request: ModelRequest, progress: StepProgress) -> AsyncIterator[ModelEvent]:
    """Yield the calls of the steps that are due."""
    return _later(_events(request, _progress_text(progress), _calls(progress)))


def _said(request: ModelRequest, text: str) -> AsyncIterator[ModelEvent]:
    return _later(_events(request, text, []))


def _progress_text(progress: StepProgress) -> str:
    """Return the line of progress of each step that is due (MN-F9)."""
    count = len(progress.steps)
    return "\n".join(f"[Step {step.number}/{count}: {step.description}]" for step in progress.ready) + "\n"


def _calls(progress: StepProgress) -> list[ToolCall]:
    results = {
        number: as_data("result", ("It failed: " if one.failed else "") + one.text[:LONGEST])
        for number, one in progress.results.items()
    }
    return [
        ToolCall(
            id=call_id(step),
            name=RUN_TOOL,
            arguments={"task": task_text(step, len(progress.steps), results, progress.remarks)},
        )
        for step in progress.ready
    ]


def _events(request: ModelRequest, text: str, calls: list[ToolCall]) -> Iterator[ModelEvent]:
    """Yield an answer without a model's cost. Text that readers have already is not repeated."""
    if request.partial and not text.startswith(request.partial):
        text = f"\n\n{text}"
    yield Text(text.removeprefix(request.partial))
    for call in calls:
        yield Call(call)
    yield Finish(reason="tool_calls" if calls else "stop", cost=0)


async def _later(events: Iterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    for event in events:
        yield event


def _question(request: ModelRequest, text: str) -> ModelRequest:
    """Return the request with this question in place of the conversation, and with the agent's instructions."""
    system = tuple(message for message in request.messages if message.role == "system")
    question = Message(id=new_id("msg"), role="user", content=text, turn=request.turn)
    return replace(
        request,
        messages=(*system, question),
        tools=(),
        tool_choice=ToolChoice(),
        response_format=None,
        partial="",
        route=None,
    )


async def _text(answer: AsyncIterator[ModelEvent]) -> str:
    text = ""
    async with aclosing(answer) as events:  # type: ignore[type-var]
        async for event in events:
            text += event.text if isinstance(event, Text) else ""
    return text


def _result_texts(progress: StepProgress) -> Iterator[str]:
    for step in progress.steps:
        result = progress.results[step.number]
        kind = "failed" if result.failed else "result"
        yield f"Step {step.number}: {step.description}\n" + as_data(kind, result.text[:LONGEST])


def _plain_results(progress: StepProgress) -> Iterator[str]:
    for step in progress.steps:
        result = progress.results[step.number]
        if not result.failed:
            yield f"{step.number}. {step.description}\n\n{result.text}"


def _failure_text(progress: StepProgress) -> str:
    """Return the sentences that name the steps which failed, "" if none did (MN-T4)."""
    return "\n".join(
        f"Step {step.number} failed ({step.description}): {progress.results[step.number].text.strip()}"
        for step in progress.failures
    )
