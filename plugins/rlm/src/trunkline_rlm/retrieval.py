"""Retrieval: a model writes code, the code reads memory and asks models, which may write code in their turn.
One at a time, down to a depth, within one budget."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trunkline import Completer, CompletionError, Message, Sandbox, new_id
from trunkline_rlm import prompt
from trunkline_rlm.budget import Budget, BudgetExhaustedError
from trunkline_rlm.memory_functions import MemoryFunctions, check_texts
from trunkline_rlm.repl.process import ReplLimits
from trunkline_rlm.repl.session import (
    CodeTimeoutError,
    HostFunctionError,
    ProcessBrokenError,
    ReplSession,
    SandboxViolation,
)

PURPOSE = "repl"
"""The purpose under which a ledger groups these calls."""

OFFLINE = "offline"
"""The adapter that answers without a model."""

NO_MODEL = "No model is configured that could write code. Search memory with recall or memory_search."

QueryContext = list[str] | Mapping[str, Any]
"""The context of a nested question: ids of chunks, or a dictionary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalLimits:
    """``iterations`` for one question, ``depth`` of nested ones, ``limits`` of the code, the ``model`` to ask."""

    iterations: int = 10
    depth: int = 5
    limits: ReplLimits = field(default_factory=ReplLimits)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """``answer`` is what ``FINAL`` was given; None too when it was not called, and then ``ended`` says why.

    ``iterations`` counts the replies of the outermost model.
    """

    answer: Any
    iterations: int
    ended: str = ""


class Retrieval:
    """A retrieval with its nested questions. ``depth`` is the current nesting; 0 outside of ``answer``."""

    def __init__(
        self,
        model: Completer,
        library: MemoryFunctions,
        budget: Budget,
        bounds: RetrievalLimits,
        report: Callable[[str], None],
        sandbox: Sandbox,
    ) -> None:
        self.depth = 0
        self._model = model
        self._library = library
        self._budget = budget
        self._bounds = bounds
        self._report = report
        self._sandbox = sandbox
        self._iteration = 0

    async def answer(self, query: str, context: QueryContext | None = None) -> RetrievalResult:
        """Let a model find the answer.

        Raises:
            CompletionError: the model did not answer.
            ToolError: no code can be run, because there is no sandbox.
        """
        try:
            return await self._answer_within_budget(query, context)
        except BudgetExhaustedError as spent:
            return RetrievalResult(None, self._iteration, str(spent))

    async def _answer_within_budget(self, query: str, context: QueryContext | None) -> RetrievalResult:
        """``answer``; raises BudgetExhaustedError when the budget does not reach for it."""
        bounds, given = self._bounds, await self._resolve_context(context)
        messages = [
            _message("system", prompt.SYSTEM),
            _message("user", prompt.first_message(query, bounds.iterations, context=given is not None)),
        ]
        functions = {**self._library.functions, "llm_query": self.llm_query}
        async with ReplSession(self._sandbox, functions, bounds.limits) as session:
            variables = {} if given is None else {"context": given}
            for iteration in range(1, bounds.iterations + 1):
                self._report_progress(f"asking the model ({iteration} of {bounds.iterations})")
                reply = await self._complete(messages)
                self._iteration = self._iteration if self.depth else iteration
                self._report_progress(f"running its code ({iteration} of {bounds.iterations})")
                text = await _run_code(session, prompt.extract_code(reply), variables)
                if session.is_complete:
                    return RetrievalResult(session.result, iteration)
                messages.append(_message("assistant", reply))
                messages.append(_message("user", prompt.next_message(text, bounds.iterations - iteration)))
        return RetrievalResult(
            None, bounds.iterations, f"No answer was given within {bounds.iterations} replies."
        )

    async def llm_query(self, prompt: str, context: Any = None) -> Any:
        """A model's answer; with a context that of a nested retrieval. Given to code as ``llm_query``."""
        if not isinstance(prompt, str) or not prompt.strip():
            raise HostFunctionError("TypeError", "llm_query(prompt, context=None): the prompt is a text")
        with self._nested():
            try:
                if context is None:
                    return await self._complete([_message("user", prompt)])
                return (await self._answer_within_budget(prompt, context)).answer
            except BudgetExhaustedError as spent:
                raise HostFunctionError("RuntimeError", f"{spent} Call FINAL with what you have.") from spent
            except CompletionError as error:
                return f"Error: {error}"

    @contextmanager
    def _nested(self) -> Iterator[None]:
        if self.depth >= self._bounds.depth:
            raise HostFunctionError(
                "RecursionError",
                f"questions may be nested {self._bounds.depth} deep, and these are nested deeper",
            )
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    async def _complete(self, messages: Sequence[Message]) -> str:
        """Return the model's reply. Raises CompletionError, and BudgetExhaustedError before a call that exceeds the
        budget."""
        most = self._budget.reserve_call()
        try:
            done = await self._model.complete(
                messages, purpose=PURPOSE, model=self._bounds.model, max_cost=most
            )
        except CompletionError as error:
            if error.code == "over_budget":
                raise BudgetExhaustedError(str(error)) from error
            raise
        self._budget.settle(done)
        if done.adapter == OFFLINE:
            raise CompletionError("engine_unavailable", NO_MODEL)
        return done.text

    async def _resolve_context(self, context: QueryContext | None) -> Any:
        """Return the value of ``context`` in a nested session."""
        if context is None or isinstance(context, Mapping):
            return context
        found = [await self._library.read_chunk(each) for each in check_texts(context, "the context")]
        return [chunk for chunk in found if chunk is not None]

    def _report_progress(self, what: str) -> None:
        nested = f"depth {self.depth}: " if self.depth else ""
        self._report(f"{nested}{what}, {self._budget.cost / 1e6:.4f} USD so far")


async def _run_code(session: ReplSession, code: str, variables: dict[str, Any]) -> str:
    """Run code and return the report for the model. ``variables`` are set before it, and again in a new process."""
    try:
        return prompt.format_result(await session.run(code, None if session.has_process else variables))
    except SandboxViolation as violation:
        return f"Not run: {violation}"
    except (CodeTimeoutError, ProcessBrokenError) as error:
        return f"{error} Its variables are lost; start again."


def _message(role: Any, text: str) -> Message:
    return Message(id=new_id("msg"), role=role, content=text)
