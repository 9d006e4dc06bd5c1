"""Running a tool by a message: ``/tool NAME key=value key="two words" json={...}``, independently of the
model. Pure.

The command replaces the model's answer: it makes a call, which is dispatched like any other, and shows the
result. So it costs no tokens, works without a model, and leaves a call with its result for the next model
call.

Only the message that begins a turn can be a command, and only when a person wrote it, or wrote or approved the
schedule that sends it: never a text from a tool, a file, a transcript, a webhook or a steering message.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from trunkline._util.nlp.tool_names import suggest_tool
from trunkline._util.result_format import format_result
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.tools.messages import ToolSchema, ToolSpec
from trunkline.contracts.turns.journal_messages import ModelCallFinished
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.workers.monitor.model_call import json_safe_call
from trunkline.workers.monitor.steps import Step
from trunkline_bus import key_of

COMMAND = "/tool"
LIST = "`/tool` lists the tools."

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The form of tool names that providers accept: a call by another name would make the transcript unusable."""

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'')
_BARE = re.compile(r"\S+")
_KEY = re.compile(r"\s*([A-Za-z_][\w.-]*)=")
_TICKS = re.compile(r"`+")

AnyTool = ToolSpec | ToolSchema


SHOWN = 80
"""Characters of unreadable input that are shown."""


COMMANDING_TRIGGERS = ("message", "schedule")
"""The causes of a turn whose message may be a command: a person wrote it, or the owner approved it in a schedule."""


class CommandError(Exception):
    """The command cannot be run. The text states the reason and the correct form for the person."""


def find_command(request: TurnRequested, name: str = COMMAND) -> str | None:
    """Return the text after the command ``name`` in the message that began the turn; None when the message is not a
    person's command of this name."""
    written_by_person = request.message.role == "user" and (request.fork is None or request.fork.says)
    if not written_by_person or request.trigger not in COMMANDING_TRIGGERS:
        return None
    first, _, rest = request.message.content.strip().replace("\n", " ", 1).partition(" ")
    return rest.strip() if first == name else None


def answer_command(
    command: str,
    turn: str,
    steps: Sequence[Step],
    tools: Sequence[AnyTool],
    barred: frozenset[str] = frozenset(),
) -> ModelCallFinished:
    """Return the replacement of the model's answer after these steps: the call, or the text that people are
    shown.

    ``tools`` are all tools, ``barred`` the names of those that the block may not use.
    """
    number = len(steps)
    if steps:
        return _text_answer(number, "\n\n".join(_results(steps[-1], tools, barred)))
    if not command:
        return _text_answer(number, format_listing(tools, barred))
    try:
        name, arguments = parse_command(command, tools, barred)
    except CommandError as error:
        return _text_answer(number, str(error))
    call = json_safe_call(ToolCall(id=f"call_{key_of(turn, COMMAND)}", name=name, arguments=arguments))
    return ModelCallFinished(step=number, tool_calls=(call,), finish_reason="tool_calls", commanded=True)


def format_listing(tools: Sequence[AnyTool], barred: frozenset[str] = frozenset()) -> str:
    """Return the list of tools that can be run, with their parameters, and the names of those that the block
    may not use."""
    permitted = [tool for tool in tools if tool.name not in barred]
    if not permitted:
        return "No tools are offered here."
    lines = (f"- `{_usage(tool)}`: {tool.description.partition(chr(10))[0]}" for tool in permitted)
    listing = "Tools that I can run for you with `/tool NAME key=value`:\n\n" + "\n".join(lines)
    if not barred:
        return listing
    names = ", ".join(f"`{tool.name}`" for tool in tools if tool.name in barred)
    return f"{listing}\n\nThis block may not use: {names}. Run one to read why, and how to permit it."


def parse_command(
    command: str, tools: Sequence[AnyTool], barred: frozenset[str] = frozenset()
) -> tuple[str, dict[str, Any]]:
    """Return the tool's name and its arguments. The tools worker refuses unknown names with a suggestion.

    Raises:
      CommandError: the name is not a possible tool name, or the arguments cannot be read.
    """
    name, _, rest = command.replace("\n", " ", 1).partition(" ")
    if _NAME.fullmatch(name) is None:
        suggestion = _nearest_tool(name[:SHOWN], tools, barred)
        hint = f" Did you mean `{suggestion.name}`?" if suggestion else ""
        raise CommandError(f"There is no tool {name[:SHOWN]!r}.{hint} {LIST}")
    tool = _named(name, tools) or ToolSchema(name=name, description="", parameters={})
    return name, _arguments(rest, tool)


def _text_answer(step: int, text: str) -> ModelCallFinished:
    return ModelCallFinished(step=step, text=text, commanded=True)


def _results(step: Step, tools: Sequence[AnyTool], barred: frozenset[str]) -> Iterable[str]:
    """Yield the results of the calls for people, without the marks and JSON that are meant for models.

    For an unknown name the tools worker suggests only reading tools to a model. Other tools are suggested to
    the person here.
    """
    for action in step.actions:
        name, outcome = action.call.name, action.outcome
        if outcome is None:
            continue
        text = format_result(unwrap_tool_result(outcome.output))
        fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
        shown = f"{name} {'failed' if outcome.kind else 'says'}:\n\n{fence}\n{text}\n{fence}"
        if _named(name, tools) or not outcome.kind:
            yield shown
            continue
        suggestion = _nearest_tool(name, tools, barred)
        hint = f"Did you mean `{suggestion.name}`? " if suggestion and _effect(suggestion) != "read" else ""
        yield f"{shown}\n\n{hint}{LIST}"


def _nearest_tool(name: str, tools: Sequence[AnyTool], barred: frozenset[str]) -> AnyTool | None:
    """Return the tool whose name is closest to an unknown name, or None."""
    known = {other: tool for tool in tools if tool.name not in barred for other in _names(tool)}
    suggestion = suggest_tool(name, {other: _effect(tool) for other, tool in known.items()})
    return known[suggestion] if suggestion is not None else None


def _effect(tool: AnyTool) -> str:
    """Return the effect of a tool. A client's tool declares none and may do anything."""
    return tool.effect if isinstance(tool, ToolSpec) else "exec"


def _named(name: str, tools: Sequence[AnyTool]) -> AnyTool | None:
    return next((tool for tool in tools if name in _names(tool)), None)


def _names(tool: AnyTool) -> tuple[str, ...]:
    return (tool.name, *tool.aliases) if isinstance(tool, ToolSpec) else (tool.name,)


def _arguments(text: str, tool: AnyTool) -> dict[str, Any]:
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    position, text = 0, text.strip()
    while position < len(text):
        key = _KEY.match(text, position)
        if key is None:
            unread = text[position : position + SHOWN]
            raise CommandError(f"I cannot read {unread!r}. The form is: `/tool {_usage(tool)}`")
        value, position = _value(text, key.end(), properties.get(key[1], {}))
        if key[1] == "json" and "json" not in properties and isinstance(value, dict):
            arguments.update(value)
        else:
            arguments[key[1]] = value
    return arguments


def _value(text: str, start: int, schema: dict[str, Any]) -> tuple[Any, int]:
    """Return one value and its end: a quoted text, JSON in brackets, or a bare word."""
    if quoted := _QUOTED.match(text, start):
        single = quoted[2] is not None
        return (quoted[2] if single else _unescaped(quoted[1])), quoted.end()
    if text[start : start + 1] in ("{", "["):
        try:
            return json.JSONDecoder().raw_decode(text, start)
        except ValueError as error:
            raise CommandError(
                f"The JSON at {text[start : start + SHOWN]!r} cannot be read: {error}."
            ) from None
        except RecursionError:
            raise CommandError(f"The JSON at {text[start : start + SHOWN]!r} is nested too deep.") from None
    bare = _BARE.match(text, start)
    word, end = (bare[0], bare.end()) if bare else ("", start)
    return _parse_word(word, schema), end


def _unescaped(text: str) -> str:
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text)


def _parse_word(word: str, schema: dict[str, Any]) -> Any:
    """Return a bare word as the type of the parameter: the JSON value of the word, or the word itself for a text
    parameter and for a word that is not JSON."""
    if schema.get("type") in ("string", None) and not schema.get("anyOf"):
        return word
    try:
        return json.loads(word)
    except ValueError:
        return word


def _usage(tool: AnyTool) -> str:
    required = tool.parameters.get("required", ())
    names = tool.parameters.get("properties", {})
    return " ".join([tool.name, *(f"{key}=…" if key in required else f"[{key}=…]" for key in names)])
