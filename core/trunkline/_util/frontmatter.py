"""Frontmatter: a table in YAML between two lines ``---`` at the beginning of a text. Pure."""

import re
from typing import Any

LONGEST_FRONTMATTER = 8 * 1024
"""Largest number of characters of frontmatter."""

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)


def parse_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Return the table, and the text below without surrounding blank lines.

    Every scalar of the table is a ``str``. Tags and merges (``<<``) of YAML are not read: a merge of merges grows to
    any size.

    Raises:
        ValueError: there is no frontmatter, or it is too long, no YAML, or no table. The text says which, as the rest
            of a sentence that begins with the file's name.
    """
    front = _FRONT.match(text)
    if front is None:
        raise ValueError("it does not begin with frontmatter between two lines ---.")
    if len(front[1]) > LONGEST_FRONTMATTER:
        raise ValueError(f"its frontmatter has more than {LONGEST_FRONTMATTER} characters.")
    table = _parse_yaml(front[1])
    if not isinstance(table, dict):
        raise ValueError("its frontmatter is no table of names and values.")
    return table, text[front.end() :].strip()


def _parse_yaml(front: str) -> Any:
    import yaml

    try:
        return yaml.BaseLoader(front).get_single_data() or {}
    except yaml.MarkedYAMLError as error:
        place = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise ValueError(
            f"its frontmatter is not YAML: {error.problem or 'it cannot be read'}{place}."
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("its frontmatter is not YAML: it cannot be read.") from error
