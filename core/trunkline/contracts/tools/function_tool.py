"""``@trunkline.tool`` turns a function into a tool: its signature is the schema, its docstring the description. This
module does no dispatch.
"""

import inspect
import re
import typing
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from trunkline._util.interruptible import InterruptibleCall
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.messages import Effect, ToolSchema, ToolSpec
from trunkline.contracts.tools.tool import CanonicalCall, Tool, ToolAlias, ToolContext
from trunkline.errors import PluginError, ToolError

BlockPath = Annotated[
    str,
    msgspec.Meta(
        description="A path inside the workspace, relative to it.", extra_json_schema={"format": "block-path"}
    ),
]
"""Annotates a parameter that holds a path in the block's workspace; the path stage checks it."""

MemoryPath = Annotated[str, msgspec.Meta(extra_json_schema={"format": "memory-path"})]
"""Annotates a parameter that holds the path of a file of memory; the gate checks whether to ask a person about it."""

MemoryTree = Annotated[str, msgspec.Meta(extra_json_schema={"format": "memory-tree"})]
"""Annotates a parameter that holds the path of a file of memory, or of a folder including everything that is or was
in it.
"""

NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
DEFAULT_TIMEOUT = 60.0

_ARGUMENT = re.compile(r"^\s{0,8}\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")


class FunctionTool(Tool):
    """A tool made from a function. ``function`` is the function itself, which tests may call."""

    def __init__(
        self,
        function: Callable[..., Any],
        spec: ToolSpec,
        arguments: type[msgspec.Struct],
        context: str | None,
    ) -> None:
        self.function = function
        self.spec = spec
        self._arguments = arguments
        self._context = context
        self._preview: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<tool {self.spec.name} ({self.spec.effect})>"

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Check the arguments and run the function; a synchronous function runs in a thread.

        Raises:
            ToolError: the arguments do not fit the schema, or the function raised it.
        """
        return _as_text(await _called(self.function, self._given(context, arguments)))

    def previewer(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function that describes a call for the person who is asked about it. The function takes the tool's
        parameters and returns a preview. Use as a decorator. Raises nothing.
        """
        self._preview = function
        return function

    def alias(self, function: Callable[..., CanonicalCall]) -> Callable[..., CanonicalCall]:
        """Register the function's name as an alias by which models call this tool, or another one. The function's
        signature is the schema of such a call, and it returns the canonical call. Use as a decorator.

        Raises:
            PluginError: the function cannot be an alias; the message says why.
        """
        self.aliases = (*self.aliases, _alias(function))
        return function

    async def preview(self, context: ToolContext, arguments: dict[str, Any]) -> ApprovalDetail | None:
        """Return the preview of the ``previewer``; None without one. Raises what the function raises, and ToolError if
        the arguments do not fit the schema.
        """
        if self._preview is None:
            return None
        shown: ApprovalDetail = await _called(self._preview, self._given(context, arguments))
        return shown

    def _given(self, context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
        given = _values(self.spec.name, self._arguments, arguments)
        if self._context:
            given[self._context] = context
        return given


def _values(name: str, kind: type[msgspec.Struct], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, with the defaults of those left out."""
    try:
        values = msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise ToolError(
            f"The arguments of {name} are not right: {error}.", kind="invalid_arguments"
        ) from error
    return {field: getattr(values, field) for field in kind.__struct_fields__}


def _alias(function: Callable[..., CanonicalCall]) -> ToolAlias:
    name = function.__name__
    description, described = _documentation(function)
    fields, _ = _parameters(function, name, described)
    kind = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)

    def means(arguments: dict[str, Any]) -> CanonicalCall:
        return function(**_values(name, kind, arguments))

    return ToolAlias(ToolSchema(name=name, description=description, parameters=_schema(kind, name)), means)


async def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function and return its result; a synchronous function runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    strand = InterruptibleCall()
    contained = partial(strand.run, partial(_contained, function, arguments))
    try:
        return await anyio.to_thread.run_sync(contained, abandon_on_cancel=True)
    finally:
        strand.interrupt()  # an abandoned call must not continue to use the processor


def tool(
    *,
    effect: Effect,
    name: str | None = None,
    idempotent: bool = False,
    timeout: float | None = None,
    network: bool | tuple[str, ...] = False,
    argv: str = "",
    unbound_params: tuple[str, ...] = (),
    read_only: bool = False,
    in_plan_mode: bool | Literal["ends"] = False,
    administers: bool = False,
    delegates: bool = False,
    untrusted_output: bool = False,
    derived: bool = False,
    always_send: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]:
    """Turn a function into a tool.

    The first paragraph of the docstring is the description; lines ``name: text`` under ``Args:`` describe the
    parameters. A parameter annotated ``ToolContext`` receives the context and is not part of the schema. Parameters
    annotated ``BlockPath``, ``MemoryPath`` or ``MemoryTree``, or with a list of these, hold paths, which are checked.

    Args:
        effect: Whether the call is safe to repeat after a crash. ``read`` is, as it changes nothing; ``write``,
            ``send`` and ``exec`` are only with ``idempotent``.
        name: The tool's name; by default the function's.
        idempotent: A second run with the same arguments leaves the same state as one run.
        timeout: Seconds after which the call is cancelled; 60 by default.
        network: True if the tool reaches other hosts. Names of parameters instead of True mean that these hold
            addresses: each host is then a separate resource (``external:HOST``), and a person is asked about hosts
            that the model chose.
        argv: The parameter that holds the argument vector of a program. A program that only reads needs no approval.
        unbound_params: Parameters whose values a lasting approval does not fix, such as a file's content. The
            approval fixes the values of all others.
        read_only: The tool's programs only read, for all arguments, so they run in a sandbox where nothing can be
            changed.
        in_plan_mode: True if the agent may use the tool in plan mode; if the tool has paths, then only on plan files.
            ``"ends"`` also lets the tool end plan mode (``context.planning.end()``); a person is asked about each
            such call.
        administers: The tool changes who may enter, what they may do, or what runs in the owner's name
            (``context.administration``). Whatever the policies permit, the owner is asked about each such call,
            and nobody else can approve it.
        delegates: The tool only gives tasks to agents (``context.agents``), so it needs no approval of its own: each
            call of those agents is checked. It must be ``idempotent``.
        untrusted_output: The result comes from a file, a page, memory or a program, so the model receives it marked
            as data that contains no instructions.
        derived: The result repeats what memory holds, so no search of memory returns it as evidence.
        always_send: A model that is not sent all tools should still be sent this one, because it is needed every day.

    Raises:
        PluginError: the function cannot be a tool; the message says why.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        made = _made(function, name or function.__name__, effect, idempotent, timeout)
        urls = network if isinstance(network, tuple) else ()
        for named in (*urls, *unbound_params, *filter(None, (argv,))):
            there = named in made.spec.parameters["properties"]
            _refuse_unless(there, made.spec.name, f"an option names {named!r}, which is no parameter", "")
        made.spec = replace(
            made.spec,
            network=bool(network),
            urls=urls,
            argv=argv,
            unbound_params=unbound_params,
            read_only=read_only,
            in_plan_mode=bool(in_plan_mode),
            ends_planning=in_plan_mode == "ends",
            administers=administers,
            delegates=delegates,
            untrusted_output=untrusted_output,
            derived=derived,
            category="always-send" if always_send else "discoverable",
        )
        return made

    return decorate


def _made(
    function: Callable[..., Any],
    name: str,
    effect: Effect,
    idempotent: bool,
    timeout: float | None,
) -> FunctionTool:
    description, described = _documentation(function)
    _refuse_unless(
        NAME.match(name), name, "its name may have letters, digits, _ and -, 64 at most", "Give name=..."
    )
    _refuse_unless(
        effect in typing.get_args(Effect), name, f"{effect!r} is no effect", "Say read, write, send or exec."
    )
    _refuse_unless(
        description, name, "it has no docstring", "The model chooses tools by it: say what it does."
    )
    fields, context = _parameters(function, name, described)
    arguments = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    schema = _schema(arguments, name)
    held = partial(_holding, schema["properties"])
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=schema,
        effect=effect,
        idempotent=idempotent,
        timeout=DEFAULT_TIMEOUT if timeout is None else timeout,
        paths=held("block-path"),
        memory_paths=held("memory-path"),
        memory_trees=held("memory-tree"),
    )
    return FunctionTool(function, spec, arguments, context)


def _parameters(
    function: Callable[..., Any], name: str, described: dict[str, str]
) -> tuple[list[tuple[str, Any, Any] | tuple[str, Any]], str | None]:
    """Return the schema's fields, and the name of the parameter that receives the context."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
    context = None
    for parameter in inspect.signature(function).parameters.values():
        kind = hints.get(parameter.name)
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        _refuse_unless(named, name, f"{parameter} cannot be given by name", "Use named parameters only.")
        _refuse_unless(
            kind is not None, name, f"{parameter.name} has no type", "Annotate it: the schema needs it."
        )
        if kind is ToolContext:
            context = parameter.name
            continue
        if text := described.get(parameter.name):
            kind = Annotated[kind, msgspec.Meta(description=text)]
        bare = parameter.default is parameter.empty
        fields.append((parameter.name, kind) if bare else (parameter.name, kind, parameter.default))
    return fields, context


def _schema(arguments: type[msgspec.Struct], name: str) -> dict[str, Any]:
    try:
        (_,), parts = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise PluginError(f"{name} cannot be a tool: {error}", hint="Use types that JSON has.") from error
    own = parts.pop(arguments.__name__)
    schema = {"type": "object", "properties": own["properties"], "required": own["required"]}
    schema["additionalProperties"] = False
    return schema | ({"$defs": parts} if parts else {})


def _holding(properties: dict[str, Any], format: str) -> tuple[str, ...]:
    """Return the parameters whose value is, or may be, a text of this format or a list of such texts."""
    return tuple(
        name
        for name, part in properties.items()
        if any(
            one.get("format") == format
            for option in (part, *part.get("anyOf", ()))
            for one in (option, option.get("items", {}))
        )
    )


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the docstring's first paragraph, and the texts of ``Args:`` by parameter."""
    text = inspect.getdoc(function) or ""
    first = " ".join(text.split("\n\n")[0].split())
    described: dict[str, str] = {}
    _, _, section = text.partition("\nArgs:\n")
    last = ""
    for line in section.splitlines():
        if not line.strip() or not line.startswith(" "):
            break
        if found := _ARGUMENT.match(line):
            last = found.group(1)
            described[last] = found.group(2).strip()
        elif last:
            described[last] += " " + line.strip()
    return first, described


def _refuse_unless(fits: object, name: str, why: str, cure: str) -> None:
    if not fits:
        raise PluginError(f"{name} cannot be a tool: {why}.", hint=cure)


def _contained(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Run a function in a thread. Convert a GeneratorExit, which would end every coroutine up the stack, to
    RuntimeError.
    """
    try:
        return function(**arguments)
    except GeneratorExit as error:
        raise RuntimeError(f"{function.__name__} raised GeneratorExit") from error


def _as_text(result: object) -> str:
    if isinstance(result, str):
        return result
    return "Done." if result is None else msgspec.json.encode(result).decode()
