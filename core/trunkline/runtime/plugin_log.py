"""Takes over what a plugin's process prints, so that it is logged like everything else: in the form and the place of
this process's log, and without secrets. A plugin may print what it likes, past its own log.
"""

import logging

import msgspec
from anyio.abc import ByteReceiveStream

log = logging.getLogger(__name__)

LONGEST = 16 * 1024
"""Bytes of one line; a longer one is told in pieces."""


class _Line(msgspec.Struct):
    """A line of the process's own log."""

    level: str
    logger: str
    message: str
    exception: str = ""


async def forward_output(name: str, printed: ByteReceiveStream) -> None:
    """Log every line until the process has ended and all that it began."""
    rest = b""
    async for piece in printed:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            _log(name, line)
        while len(rest) > LONGEST:
            _log(name, rest[:LONGEST])
            rest = rest[LONGEST:]
    _log(name, rest)


def _log(name: str, line: bytes) -> None:
    text = line.decode(errors="replace").rstrip()
    if not text:
        return
    try:
        said = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        _emit(name, __name__, logging.WARNING, f"plugin {name}: {text}")
        return
    level = logging.getLevelNamesMapping().get(said.level.upper(), logging.WARNING)
    whole = f"{said.message}\n{said.exception}" if said.exception else said.message
    _emit(name, said.logger, level, whole)


def _emit(plugin: str, logger: str, level: int, text: str) -> None:
    """Log a text under the name of the process's own logger. A logger of this process's of that name knows nothing of
    it: a plugin may choose any number of names."""
    if log.isEnabledFor(level):
        log.handle(log.makeRecord(logger, level, __file__, 0, "%s", (text,), None, extra={"plugin": plugin}))
