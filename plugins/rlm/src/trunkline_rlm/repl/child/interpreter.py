"""Runs code in one namespace that lasts as long as the process: statements, and the value of a last expression."""

import ast
import builtins
import codecs
import importlib
import io
import sys
import types
from collections.abc import Callable
from typing import Any

from trunkline_rlm.repl.child import host_pipes
from trunkline_rlm.repl.child.code_check import MODULES, NAMES, CodeViolation, check_code

NAME = "<code>"
MODULE = "session"
SHOWN = 20_000
"""The most characters that are shown of a value's ``repr``."""

EXTRA_MODULES = ("__future__", "_strptime", "collections.abc")
"""Modules that code does not name, or that others load for it only when they are used."""

ENCODINGS = ("ascii", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
"""Encodings that are loaded before the process is confined; UTF-8 is always loaded."""

PIECE = 60_000
"""Characters of output that travel together."""

PREFIXES: dict[type[BaseException], str] = {
    SyntaxError: "Syntax error",
    ZeroDivisionError: "Zero division error",
    NameError: "Name error",
    AttributeError: "Attribute error",
    MemoryError: "Memory error",
    RecursionError: "Recursion error",
    ImportError: "Import error",
}
"""Prefixes of error texts by exception; all other exceptions are runtime errors."""

FAULTS: dict[str, type[Exception]] = {
    each.__name__: each for each in (MemoryError, RecursionError, RuntimeError, TypeError, ValueError)
}
"""Exceptions that a host function may raise in the child."""


class HostOutput(io.TextIOBase):
    """Send the code's output to the host, up to ``most`` characters in all."""

    def __init__(self, most: int) -> None:
        self._room = most
        self._waiting: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        """Take text in. Raises MemoryError when it is too much."""
        if len(text) > self._room:
            self._room = 0
            raise MemoryError("too much output")
        self._room -= len(text)
        self._waiting.append(text)
        self._size += len(text)
        if self._size > PIECE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what waits."""
        text = "".join(self._waiting)
        self._waiting, self._size = [], 0
        for start in range(0, len(text), PIECE):
            host_pipes.send("out", text[start : start + PIECE])


class Interpreter:
    """The namespace, with functions that the host answers."""

    def __init__(self, functions: list[str], most_output: int) -> None:
        self._modules = {name: importlib.import_module(name) for name in MODULES}
        self._modules |= {name: importlib.import_module(name) for name in EXTRA_MODULES}
        for encoding in ENCODINGS:
            codecs.lookup(encoding)
        self._output = HostOutput(most_output)
        sys.stdout = sys.stderr = self._output
        self._space = self._initial_namespace(functions)
        self._given = set(self._space)

    def run(self, code: str, variables: dict[str, Any], *, checked: bool) -> None:
        """Run code and tell what came of it. Never raises."""
        self._space.update(variables)
        self._space["__builtins__"] = self._builtins
        try:
            value = self._run(code, checked)
            self._send_value(value)
        except CodeViolation as violation:
            self._send_done(None, "", str(violation), violation=True)
        except BaseException as error:  # nothing that code raises ends the session
            self._send_done(None, "", _format_error(error), violation=False)

    def _run(self, code: str, checked: bool) -> Any:
        tree = ast.parse(code, NAME)
        if checked:
            check_code(tree)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, NAME, "exec"), self._space)  # in a process that can do nothing but compute
        if last is None:
            return None
        return eval(compile(ast.Expression(last.value), NAME, "eval"), self._space)  # type: ignore[attr-defined]

    def _send_value(self, value: Any) -> None:
        """The value as it is if JSON has a form for it, and how it is shown."""
        shown = "" if value is None else repr(value)[:SHOWN]
        try:
            self._send_done(value, shown, None, violation=False)
        except (TypeError, ValueError, RecursionError):
            self._send_done(shown, shown, None, violation=False)

    def _send_done(self, value: Any, shown: str, error: str | None, *, violation: bool) -> None:
        self._output.flush()
        names = sorted(
            f"{name[:100]}: {type(thing).__name__[:100]}"
            for name, thing in self._space.items()
            if name not in self._given
        )
        host_pipes.send("done", value, shown, error, violation, names[:100])

    def _initial_namespace(self, functions: list[str]) -> dict[str, Any]:
        self._builtins = {
            name: thing
            for name, thing in vars(builtins).items()
            if name not in NAMES and (not name.startswith("__") or name == "__build_class__")
        }
        self._builtins["__import__"] = self._import_module
        fake = types.SimpleNamespace(stderr=self._output, stdout=self._output)
        module = sys.modules[MODULE] = types.ModuleType(MODULE)  # where classes of the code say they are from
        space: dict[str, Any] = vars(module)
        space |= {"__builtins__": self._builtins, "sys": fake}
        space.update({name: self._modules[name] for name in MODULES})
        space.update({name: _host_function(name) for name in functions})
        return space

    def _import_module(self, name: str, *rest: Any, **more: Any) -> Any:
        if name not in self._modules:
            raise ImportError(f"the module {name} cannot be imported here")
        wanted = rest[2] if len(rest) > 2 else more.get("fromlist")
        return self._modules[name if wanted else name.split(".")[0]]


def _host_function(name: str) -> Callable[..., Any]:
    """A function that the host runs."""

    def call(*arguments: Any, **named: Any) -> Any:
        host_pipes.send("call", name, arguments, named)
        kind, answer, *args = host_pipes.receive()
        if kind == "fault":
            raise FAULTS.get(answer, RuntimeError)(*args)
        return answer

    call.__name__ = call.__qualname__ = name
    return call


def _format_error(error: BaseException) -> str:
    """An error as a text: what kind, what, and in which line of the code."""
    prefix = next((text for kind, text in PREFIXES.items() if isinstance(error, kind)), "")
    kind = prefix or f"Runtime error: {type(error).__name__}"
    if isinstance(error, SyntaxError):
        return f"{kind}: {error.msg} (line {error.lineno})"
    try:
        said = str(error)[:2_000]
    except BaseException:  # an exception of the code's own
        said = ""
    if isinstance(error, MemoryError) and not said:
        said = "no more than 10 MB for one object, and not much more for all"
    line = _line(error)
    return f"{kind}: {said}" if line is None else f"{kind}: {said} (line {line})"


def _line(error: BaseException) -> int | None:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
