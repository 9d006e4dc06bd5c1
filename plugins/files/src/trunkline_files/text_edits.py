"""Apply edits to a text. Opens no file, so a preview shows exactly the later result."""

from trunkline import ToolError


def replace_text(text: str, path: str, find: str, replace: str, every: bool) -> str:
    """The text with another one in place of ``find``. Raises ToolError unless it is clear what is to be replaced."""
    if not find:
        raise ToolError("The text to find is empty. Say what to replace.", kind="invalid_arguments")
    count = text.count(find)
    if not count:
        raise ToolError(
            f"{path!r} does not contain that text{_hint(text, find)}. It is unchanged.", kind="no_match"
        )
    if count > 1 and not every:
        raise ToolError(
            f"{path!r} holds that text {count} times. Give more of the text around it, or all=true. It is unchanged.",
            kind="no_match",
        )
    return text.replace(find, replace)


def insert_lines(text: str, path: str, line: int, new: str) -> str:
    """The text with new lines behind a line of it. Raises ToolError when it has no such line."""
    lines = text.split("\n")
    there = len(lines) - (not lines[-1])
    if line > there:
        raise ToolError(
            f"{path!r} has {there} lines, so nothing can be inserted after line {line}. It is unchanged.",
            kind="invalid_arguments",
        )
    end = "\r\n" if "\r\n" in text else "\n"
    before = "\n".join(lines[:line]) + ("\n" if 0 < line < len(lines) else "")
    after = "\n".join(lines[line:])
    if before and not before.endswith("\n"):
        before += end
    if new and after and not new.endswith("\n"):
        new += end
    return before + new + after


def _hint(text: str, find: str) -> str:
    """Return why a text that looks right is not found."""
    if find.strip() and find.strip() in text:
        return "; without the space around it, it does"
    if "".join(find.split()) in "".join(text.split()):
        return "; with other spaces or line ends, it does"
    return "; with other capitals, it does" if find.lower() in text.lower() else ""
