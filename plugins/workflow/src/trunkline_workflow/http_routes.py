"""``/x/trunkline-workflow``: workflows and their runs over HTTP.

Whoever may read a block sees them; the owner alone begins runs and installs proposals. Steps are decided, and runs are
cancelled, by the gateway's routes of approvals and turns.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trunkline import ErrorCode, LifespanContext, TrunklineError
from trunkline.api.bus import Refusal
from trunkline.api.gateway import HttpRoute, TokenScope
from trunkline.api.schedule import SCHEDULE_CHANNEL
from trunkline_workflow.definition import (
    Definition,
    DefinitionError,
    WorkflowStep,
    parse_definition,
    text_hash,
)
from trunkline_workflow.graph import edges
from trunkline_workflow.records import RunRecord
from trunkline_workflow.run_log import log_rows
from trunkline_workflow.runs import Runs, RunView, check_inputs

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

T = TypeVar("T", bound=msgspec.Struct)

SHOWN_RUNS = 20
"""The number of runs that a list has. The state of each is computed from its journal."""


class RunInputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that begins a run: the inputs by their names."""

    inputs: dict[str, Any] = {}


class ShownText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that installs a proposal: the hash of the text that the owner was shown."""

    sha256: str


class WorkflowRoutes:
    """Answers requests while the gateway runs."""

    def __init__(self) -> None:
        self._context: LifespanContext | None = None

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Use the gateway's connection while it is open."""
        self._context = context
        try:
            yield
        finally:
            self._context = None

    def routes(self) -> Iterable[HttpRoute]:
        """Return the routes."""
        block, read = "/blocks/{block}", TokenScope.READ
        return [
            HttpRoute(f"{block}/workflows", ("GET",), self.show, scope=read, by_block=True),
            HttpRoute(f"{block}/workflows/{{name}}/run", ("POST",), self.begin, by_block=True),
            HttpRoute(f"{block}/proposals/{{name}}/install", ("POST",), self.install, by_block=True),
            HttpRoute(f"{block}/runs", ("GET",), self.list_runs, scope=read, by_block=True),
            HttpRoute(f"{block}/runs/{{run}}", ("GET",), self.show_run, scope=read, by_block=True),
        ]

    async def show(self, request: "Request") -> "Response":
        """``GET /x/trunkline-workflow/blocks/{block}/workflows``: the workflows and the proposals of the block's
        agent, each with its text, its steps, and what is wrong with it."""
        files = self._runs(request).files
        found = [_workflow(name, await files.text(name)) for name in await files.names()]
        proposed = [_workflow(name, await files.proposal(name)) for name in await files.proposals()]
        return _json({"workflows": found, "proposals": proposed})

    async def begin(self, request: "Request") -> "Response":
        """``POST .../workflows/{name}/run`` with ``{"inputs": {...}}``: begins a run, and returns it. 409 if the file
        is no workflow, or the inputs do not fit."""
        body, runs = await _body(request, RunInputs), self._runs(request)
        text = await runs.files.text(request.path_params["name"])
        definition = _parsed(text)
        try:
            check_inputs(definition, body.inputs)
        except TrunklineError as error:
            raise Refusal(ErrorCode.CONFLICT, error.sentence) from error
        return _json(await _run(runs, await runs.begin(definition, body.inputs)))

    async def install(self, request: "Request") -> "Response":
        """``POST .../proposals/{name}/install`` with ``{"sha256": HASH}`` of the text that the owner was shown. 409 if
        the proposal has another text by now, or is no workflow."""
        body, runs = await _body(request, ShownText), self._runs(request)
        text = await runs.files.proposal(request.path_params["name"])
        definition = _parsed(text)
        if definition.name != request.path_params["name"]:
            raise Refusal(
                ErrorCode.CONFLICT, f"The proposal calls itself {definition.name}, unlike its file."
            )
        if definition.sha256 != body.sha256:
            raise Refusal(ErrorCode.CONFLICT, "The proposal was changed since it was shown. Read it again.")
        await runs.files.install(definition.name, definition.text, proposed=True)
        return _json(_workflow(definition.name, definition.text))

    async def list_runs(self, request: "Request") -> "Response":
        """``GET /x/trunkline-workflow/blocks/{block}/runs``: the newest runs."""
        runs = self._runs(request)
        return _json({"runs": [await _run(runs, record) for record in (await runs.list())[:SHOWN_RUNS]]})

    async def show_run(self, request: "Request") -> "Response":
        """``GET /x/trunkline-workflow/blocks/{block}/runs/{run}``: a run with its steps and its calls."""
        runs, id = self._runs(request), request.path_params["run"]
        record = next((one for one in await runs.list() if one.start.run == id), None)
        if record is None:
            raise Refusal(ErrorCode.NOT_FOUND, "There is no such run.")
        definition = _parsed(record.start.definition)
        view = await runs.view(record)
        return _json(
            {
                **_summary(view),
                **_definition(definition),
                "visits": view.frozen["steps"],
                "log": log_rows(view),
            }
        )

    def _runs(self, request: "Request") -> Runs:
        if self._context is None:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, "The gateway is starting or stopping.")
        # A gateway process may call the gateway under this name only, where NATS has accounts.
        return Runs(self._context.bus, request.path_params["block"], SCHEDULE_CHANNEL)


def _parsed(text: str | None) -> Definition:
    if text is None:
        raise Refusal(ErrorCode.NOT_FOUND, "There is no such workflow.")
    try:
        return parse_definition(text)
    except DefinitionError as error:
        raise Refusal(ErrorCode.CONFLICT, str(error)) from error


def _workflow(name: str, text: str | None) -> dict[str, Any]:
    """Return a workflow as data. A text that is no workflow has problems and no steps."""
    text = text or ""
    facts: dict[str, Any] = {"name": name, "text": text, "sha256": text_hash(text)}
    try:
        definition = parse_definition(text)
    except DefinitionError as error:
        problems = [str(problem) for problem in error.problems]
        return {**facts, "description": "", "inputs": {}, "steps": [], "problems": problems}
    return {**facts, **_definition(definition), "inputs": definition.inputs, "problems": []}


def _definition(definition: Definition) -> dict[str, Any]:
    return {"description": definition.description, "steps": [_step(step) for step in definition.steps]}


def _step(step: WorkflowStep) -> dict[str, Any]:
    return {
        "id": step.id,
        "name": step.name,
        "type": step.type,
        "action": step.action,
        "edges": [{"on": label, "to": target, "end": end} for label, target, end in edges(step)],
    }


async def _run(runs: Runs, record: RunRecord) -> dict[str, Any]:
    """Return a run as data. One whose definition this release cannot read does not hide the others."""
    try:
        return _summary(await runs.view(record))
    except DefinitionError as error:
        facts = {"status": "failed", "step": "", "states": {}, "is_edited": False, "detail": str(error)}
        return {**_record(record), **facts}


def _record(record: RunRecord) -> dict[str, Any]:
    return {
        "run": record.start.run,
        "workflow": record.start.workflow,
        "started_at": record.started_at,
        "conversation": record.conversation,
        "turn": record.turn,
        "continues": record.continues,
    }


def _summary(view: RunView) -> dict[str, Any]:
    return {
        **_record(view.record),
        "status": view.status,
        "step": view.state.current_step,
        "states": view.state.step_states,
        "is_edited": view.is_edited,
        "detail": _detail(view),
    }


def _detail(view: RunView) -> str:
    """Return why a run failed, without the vendor's text, which is for the owner alone."""
    finished = view.journal.finished
    if finished is not None and finished.code is not None:
        return f"The turn ended with {finished.code}."
    return view.detail


async def _body(request: "Request", kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.body() or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"The body is not as expected: {error}.") from error


def _json(body: Any) -> "Response":
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)
