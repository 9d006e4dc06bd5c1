"""``@trunkline.tool``: signature = schema, docstring = description, and a call as the tools worker makes it."""

import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest

import trunkline
from trunkline.api.tool import ToolSpec
from trunkline.errors import PluginError

pytestmark = pytest.mark.anyio


def context(**more: Any) -> trunkline.ToolContext:
    return trunkline.ToolContext(
        block="main", conversation="c", turn="t", call="k", actor="owner",
        workspace=Path("/nowhere"), memory=None, **more,  # type: ignore[arg-type]
    )  # fmt: skip


@trunkline.tool(effect="write")
def book(city: str, nights: int = 1, *, cheap: bool = False, tags: list[str] | None = None) -> str:
    """Book a room
    in a city.

    The rest of the text is for programmers.

    Args:
        city: Where to sleep,
            and eat.
        nights (int): How long.
    """
    return f"{city} {nights} {cheap} {tags}"


def test_the_schema_is_the_signature():
    """Types, defaults and requirements come from the signature, the words from the docstring."""
    assert book.spec.name == "book"
    assert book.spec.description == "Book a room in a city."
    assert book.spec.effect == "write" and not book.spec.repeatable
    assert book.spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to sleep, and eat."},
            "nights": {"type": "integer", "default": 1, "description": "How long."},
            "cheap": {"type": "boolean", "default": False},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert msgspec.json.decode(msgspec.json.encode(book.spec), type=ToolSpec) == book.spec


async def test_a_call_gives_the_arguments_by_name():
    """Defaults are filled in, and the function's text is the result."""
    assert await book(context(), {"city": "Faro", "cheap": True}) == "Faro 1 True None"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "city"),
        ({"city": 3}, "city"),
        ({"city": "x", "night": 2}, "night"),
        ({"city": "x", "nights": "two"}, "nights"),
    ],
)
async def test_invalid_arguments_are_reported_to_the_model(arguments, said):
    """A missing, unknown or ill-typed argument is a ToolError that names tool and argument."""
    with pytest.raises(trunkline.ToolError, match=rf"book.*{said}"):
        await book(context(), arguments)


async def test_the_context_is_given_and_not_in_the_schema():
    """A parameter annotated ToolContext receives the call's context, under any name."""

    @trunkline.tool(effect="read")
    async def where(here: trunkline.ToolContext, upper: bool = False) -> str:
        """Say where."""
        return here.block.upper() if upper else here.block

    assert list(where.spec.parameters["properties"]) == ["upper"]
    assert await where(context(), {"upper": True}) == "MAIN"


async def test_a_synchronous_function_runs_in_a_thread():
    """It does not hold up the loop, and can be given up while it still runs."""
    release, threads = threading.Event(), []

    @trunkline.tool(effect="read")
    def slow() -> str:
        """Wait."""
        threads.append(threading.current_thread())
        release.wait(10)
        return "late"

    with anyio.move_on_after(0.05) as scope:
        await slow(context(), {})
    release.set()
    assert scope.cancelled_caught
    assert threads != [threading.main_thread()]


class Mood(StrEnum):
    GLAD = "glad"


class Guest(msgspec.Struct):
    name: str
    mood: Mood = Mood.GLAD


async def test_richer_types():
    """Structs, enumerations, literals and bounds arrive typed; structs are defined in the schema itself."""

    @trunkline.tool(effect="read")
    def greet(
        guest: Guest,
        how: Literal["loud", "soft"] = "soft",
        times: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1,
    ) -> dict[str, Any]:
        """Greet."""
        return {"guest": guest.name, "mood": guest.mood, "how": how, "times": times}

    schema = greet.spec.parameters
    assert schema["properties"]["guest"] == {"$ref": "#/$defs/Guest"}
    assert schema["$defs"]["Guest"]["required"] == ["name"]
    assert schema["properties"]["times"]["maximum"] == 3
    said = await greet(context(), {"guest": {"name": "Ada"}, "how": "loud"})
    assert msgspec.json.decode(said) == {"guest": "Ada", "mood": "glad", "how": "loud", "times": 1}
    with pytest.raises(trunkline.ToolError, match="times"):
        await greet(context(), {"guest": {"name": "Ada"}, "times": 4})


@pytest.mark.parametrize(("result", "text"), [("x", "x"), (None, "Done."), (3, "3"), ([1], "[1]")])
async def test_results_are_converted_to_text(result, text):
    """Text stays, None is ``Done.``, everything else is JSON."""

    @trunkline.tool(effect="read")
    def give() -> object:
        """Give."""
        return result

    assert await give(context(), {}) == text


def test_paths_are_known_to_the_path_stage():
    """Parameters annotated BlockPath, optional ones too, and lists of them are in the spec."""

    @trunkline.tool(effect="write", idempotent=True, timeout=5, name="copy-it")
    def copy(
        source: trunkline.BlockPath,
        folders: list[trunkline.BlockPath],
        text: str = "",
        note: trunkline.BlockPath | None = None,
    ) -> None:
        """Copy.

        Args:
            source: What to copy.
        """

    assert copy.spec.paths == ("source", "folders", "note")
    assert copy.spec.parameters["properties"]["source"]["description"] == "What to copy."
    assert (copy.spec.name, copy.spec.timeout, copy.spec.repeatable) == ("copy-it", 5, True)


def documented(function):
    function.__doc__ = "Do."
    return function


def bad_annotation(a):
    "Do."


def bad_positional(a: int, /):
    "Do."


def bad_star(*a: int):
    "Do."


def bad_type(a: threading.Event):
    "Do."


def undocumented(a: int):
    pass


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (bad_annotation, "a has no type"),
        (bad_positional, "cannot be given by name"),
        (bad_star, "cannot be given by name"),
        (bad_type, "cannot be a tool"),
        (undocumented, "no docstring"),
        (documented(lambda: None), "its name may have"),
    ],
)
def test_an_invalid_tool_function_is_refused(function, said):
    """The refusal comes when the plugin is loaded, and says what to change."""
    with pytest.raises(PluginError, match=said) as caught:
        trunkline.tool(effect="read")(function)
    assert caught.value.hint


def test_the_effect_is_required():
    """No effect is the default, because the effect decides about running the call again after a crash."""
    with pytest.raises(TypeError, match="'effect'"):
        trunkline.tool()  # type: ignore[call-arg]
    with pytest.raises(PluginError, match="'delete' is no effect"):
        trunkline.tool(effect="delete")(bad_annotation)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [{"network": ("b",)}, {"unbound_params": ("b",)}, {"argv": "b"}])
def test_an_option_names_parameters_that_there_are(option):
    """A slip in a name would leave open, or unasked, what its author meant to name."""
    with pytest.raises(PluginError, match="'b', which is no parameter"):
        trunkline.tool(effect="read", **option)(book.function)


async def test_an_abandoned_thread_ends():
    """A synchronous tool that loops is told to end with its call, so that it does not use processor time for ever,
    and the thread continues with other work."""
    ended = threading.Event()

    @trunkline.tool(effect="read")
    def loop() -> str:
        """Loop."""
        try:
            while True:
                pass
        finally:
            ended.set()

    with anyio.move_on_after(0.2):
        await loop(context(), {})
    with anyio.fail_after(60):
        while not ended.is_set():  # noqa: ASYNC110
            await anyio.sleep(0.01)
    assert await book(context(), {"city": "Faro"}) == "Faro 1 False None"
