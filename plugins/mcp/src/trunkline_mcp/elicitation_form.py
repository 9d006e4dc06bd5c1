"""A form that a server wants filled in, as questions to a person: one a field, or one a page where there are many."""

from collections.abc import Mapping
from typing import Any

from trunkline import NoAnswer, Person
from trunkline_mcp.form_fields import (
    DECLINE,
    LEAVE_OUT,
    TRIES,
    FormField,
    InvalidAnswerError,
    one_line,
    parse_fields,
)
from trunkline_mcp.form_pages import fill_pages, split_pages

SINGLE_QUESTIONS = 6
"""Fields up to which each is a question of its own: three tries for each are 18 questions; a call may ask 20."""

PROCEED = "go on"


class FormTooLongError(Exception):
    """A form has more fields than a person is asked for; the text says so."""


async def fill_form(
    person: Person, server: str, message: str, schema: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The form as a person filled it in, without what they left out; None when they declined, or nobody answered.

    Raises:
        FormTooLongError: the form has more fields than a person is asked for. Nobody was asked.
    """
    fields = parse_fields(schema)
    pages = split_pages(fields)
    if fields and not pages:
        raise FormTooLongError(f"the form has {len(fields)} fields, more than a person is asked for")
    head = f"The MCP server {server} wants to know: {one_line(message)}"
    try:
        if not fields:
            return {} if await person.ask(head, [PROCEED, DECLINE]) == PROCEED else None
        if len(fields) > SINGLE_QUESTIONS:
            return await fill_pages(person, head, pages)
        answers: dict[str, Any] = {}
        for field in fields:
            value = await _ask_field(person, head, field)
            if value is not None:
                answers[field.name] = value
        return answers
    except NoAnswer:
        return None


async def _ask_field(person: Person, head: str, field: FormField) -> Any:
    """The value of one field; None for one that is left out. Raises NoAnswer, also when no words fit it."""
    wrong = ""
    for _ in range(TRIES):
        words = await person.ask(f"{head}\n{field.question}{wrong}", field.options)
        if words == LEAVE_OUT and field.is_optional:
            return None
        try:
            return field.parse(words)
        except InvalidAnswerError as unfit:
            wrong = f"\n({one_line(words)!r} is not valid. {unfit})"
    raise NoAnswer("No answer was valid.")
