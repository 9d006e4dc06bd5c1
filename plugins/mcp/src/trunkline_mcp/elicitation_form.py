"""A form that a server wants filled in, as questions to a person: one a field, or one a page where there are many."""

from collections.abc import Mapping
from typing import Any

from trunkline import NoAnswer, Person
from trunkline_mcp.form_fields import DECLINE, LEAVE_OUT, TRIES, Field, Unfit, fields_of, short
from trunkline_mcp.form_pages import fill_pages, pages_of

ONE_BY_ONE = 6
"""Fields up to which each is a question of its own: three tries for each are 18 questions; a call may ask 20."""

FILL_IN = "go on"


class TooLong(Exception):
    """A form has more fields than a person is asked for; the text says so."""


async def filled_in(
    person: Person, server: str, message: str, schema: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The form as a person filled it in, without what they left out; None when they declined, or nobody answered.

    Raises:
        TooLong: nobody was asked, because it has more fields than anybody would fill in.
    """
    fields = fields_of(schema)
    pages = pages_of(fields)
    if fields and not pages:
        raise TooLong(f"the form has {len(fields)} fields, more than a person is asked for")
    head = f"The MCP server {server} wants to know: {short(message)}"
    try:
        if not fields:
            return {} if await person.ask(head, [FILL_IN, DECLINE]) == FILL_IN else None
        if len(fields) > ONE_BY_ONE:
            return await fill_pages(person, head, pages)
        answers: dict[str, Any] = {}
        for field in fields:
            value = await _asked(person, head, field)
            if value is not None:
                answers[field.name] = value
        return answers
    except NoAnswer:
        return None


async def _asked(person: Person, head: str, field: Field) -> Any:
    """The value of one field; None for one that is left out. Raises NoAnswer, also when no words fit it."""
    wrong = ""
    for _ in range(TRIES):
        words = await person.ask(f"{head}\n{field.question}{wrong}", field.options)
        if words == LEAVE_OUT and field.may_be_left_out:
            return None
        try:
            return field.value(words)
        except Unfit as unfit:
            wrong = f"\n({short(words)!r} does not fit. {unfit})"
    raise NoAnswer("Nothing that was answered fits.")
