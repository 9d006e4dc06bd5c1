"""A form with many fields, asked a page at a time: one question for several fields, answered by lines ``name: words``.

One question a field would be more questions than a call may ask.
"""

import re
from collections.abc import Sequence
from typing import Any

from trunkline import NoAnswer, Person
from trunkline_mcp.form_fields import DECLINE, LEAVE_OUT, TRIES, FormField, InvalidAnswerError, one_line

PAGE_FIELDS, MOST_PAGES = 12, 6
"""Fields of a page, and pages. Three tries for each of six pages are 18 questions; a call may ask 20."""

LONGEST_LINE = 380
"""Characters of a field's line: twelve of them fit into a question that a person is shown whole."""

INSTRUCTIONS = 'Answer with "name: value" for each, on separate lines or separated by semicolons (;).'


def split_pages(fields: Sequence[FormField]) -> list[Sequence[FormField]]:
    """The fields, page by page; none when they are more than a person is asked for."""
    pages = [fields[at : at + PAGE_FIELDS] for at in range(0, len(fields), PAGE_FIELDS)]
    return pages if len(pages) <= MOST_PAGES else []


async def fill_pages(person: Person, head: str, pages: Sequence[Sequence[FormField]]) -> dict[str, Any]:
    """All that a person filled in. Raises NoAnswer when they declined, or nobody answered, or no words fit."""
    fields = [field for page in pages for field in page]
    answers: dict[str, Any] = {}
    for number, page in enumerate(pages, 1):
        await _fill_page(
            person, f"{head}\nPage {number} of {len(pages)}. {INSTRUCTIONS}", page, fields, answers
        )
    return answers


async def _fill_page(
    person: Person, head: str, page: Sequence[FormField], fields: Sequence[FormField], answers: dict[str, Any]
) -> None:
    """Ask for a page. What fitted need not be said again, and what belongs to a later page counts there."""
    wrong: list[str] = []
    for _ in range(TRIES):
        left = [field for field in page if field.name not in answers]
        if not left:
            return
        words = await person.ask("\n".join([head, *map(_line, left), *wrong]), [DECLINE])
        if words == DECLINE:
            break
        fitting, unfit = _parse_answers(words, fields)
        answers |= fitting
        missing = {field.name: "missing." for field in left if not field.is_optional}
        problems = {**missing, **unfit}
        wrong = [
            f"({name}: {problems[name]})" for name in _names(left) if name in problems.keys() - answers.keys()
        ]
        if not wrong:
            return
    raise NoAnswer("The form was declined, or no answer was valid.")


def _line(field: FormField) -> str:
    what = field.question if field.question.startswith(field.name) else f"{field.name}: {field.question}"
    proposed = [option for option in field.options if option != LEAVE_OUT]
    choices = f" [{', '.join(proposed)}]" if proposed else ""
    need = " (may be left out)" if field.is_optional else ""
    return "- " + one_line(f"{what}{choices}", LONGEST_LINE - len(need)) + need


def _parse_answers(words: str, fields: Sequence[FormField]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values by their fields' names, and what is wrong with words that are none."""
    answers: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, said in _split_answers(words, _names(fields)):
        field = _field_named(name, fields)
        try:
            answers[field.name] = field.parse(said)
        except InvalidAnswerError as unfit:
            wrong[field.name] = f"{one_line(said, LONGEST_LINE)!r} is not valid. {unfit}"
    return answers, wrong


def _names(fields: Sequence[FormField]) -> list[str]:
    return [field.name for field in fields]


def _split_answers(words: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Each name that stands at the beginning of a part, and what follows it. Only the form's names begin a part, so a
    value may have colons and semicolons in it."""
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = re.split(rf"(?:^|[\n;])[ \t-]*({known})[ \t]*:", words, flags=re.IGNORECASE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [(name, said.strip()) for name, said in pairs if said.strip()]


def _field_named(name: str, fields: Sequence[FormField]) -> FormField:
    """The field of this name, by the letter if there is one, else in other case."""
    return next(
        (field for field in fields if field.name == name),
        next(field for field in fields if field.name.lower() == name.lower()),
    )
