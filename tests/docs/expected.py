"""Compares the output shown on a page with the real output. Parts that vary from run to run may differ; ids are learned
on the way.

``…`` alone on a line stands for any lines, within a line for any text. Ids, times, durations, commit ids and the width
of gaps may differ. An id that a page shows stands for the real one from then on.
"""

import re

_VARIES = re.compile(
    r"(?P<lines>^…$\n?)|(?P<some>…)|(?P<id>\b(?:conv|turn|msg)_\w{26}\b|\b(?=[a-z-]*[2-7])[a-z2-7]{5}-[a-z2-7]{5}\b)|(?P<trace>\b[0-9a-f]{32}\b)"
    r"|(?P<commit>\b(?=[0-9a-f]*\d)[0-9a-f]{10}\b)"
    r"|(?P<time>\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:\d\d)?)?)"
    r"|(?P<span>\d+\.\d+(?= ?m?s\b))|(?P<small>(?<=\bfirst token )\d+)|(?P<gap>[ ]+)|(?P<end>\n)",
    re.MULTILINE,
)
_SHAPES = {
    "lines": r"(?:.*\n)*?",
    "some": r".*?",
    "trace": r"[0-9a-f]{32}",
    "commit": r"[0-9a-f]{10}",
    "time": r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:\d\d)?)?",
    "span": r"\d+\.\d+",
    "small": r"\d+",
    "gap": r" +",
    "end": r" *\n",
}


class Shown:
    """The output that a page shows for a command."""

    def __init__(self, text: str) -> None:
        self._ids: list[str] = []
        body = text.strip("\n") + "\n"
        parts, last = [], 0
        for found in _VARIES.finditer(body):
            parts += [re.escape(body[last : found.start()]), self._shape(found)]
            last = found.end()
        self._pattern = "".join([*parts, re.escape(body[last:])])

    def _shape(self, found: re.Match[str]) -> str:
        if found.lastgroup != "id":
            indented = found.lastgroup == "gap" and (
                found.start() == 0 or found.string[found.start() - 1] == "\n"
            )
            return r" *" if indented else _SHAPES[str(found.lastgroup)]
        name = found.group()
        if name in self._ids:
            return f"(?P=id{self._ids.index(name)})"
        self._ids.append(name)
        shape = rf"{name.partition('_')[0]}_\w{{26}}" if "_" in name else "[a-z2-7]{5}-[a-z2-7]{5}"
        return rf"(?P<id{len(self._ids) - 1}>{shape})"

    def learned(self, came: str, *, whole: bool = True) -> dict[str, str] | None:
        """The real ids by those shown; None when the output is another one. ``whole``: nothing else may have come."""
        text = came.strip("\n") + "\n"
        found = re.fullmatch(self._pattern, text) if whole else re.search(self._pattern, text)
        if found is None:
            return None
        return {shown: found[f"id{number}"] for number, shown in enumerate(self._ids)}
