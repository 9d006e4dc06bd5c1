"""Forwards the output of a plugin's process to this process's log, in this log's format and destination, with secrets
redacted. Lines that the plugin prints without its logger are forwarded too."""

import logging

import msgspec
from anyio.abc import ByteReceiveStream

log = logging.getLogger(__name__)

LONGEST = 16 * 1024
"""Largest number of bytes of one line; a longer one is logged in pieces."""


class _Line(msgspec.Struct):
    """A line of the plugin process's log."""

    level: str
    logger: str
    message: str
    exception: str = ""


async def forward_output(name: str, printed: ByteReceiveStream) -> None:
    """Log every line until the process and all its children have closed the pipe."""
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
        record = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        _emit(name, __name__, logging.WARNING, f"plugin {name}: {text}")
        return
    level = logging.getLevelNamesMapping().get(record.level.upper(), logging.WARNING)
    whole = f"{record.message}\n{record.exception}" if record.exception else record.message
    _emit(name, record.logger, level, whole)


def _emit(plugin: str, logger: str, level: int, text: str) -> None:
    """Log a text under the logger name of the plugin's process, without creating that logger: a plugin may
    choose any number of names."""
    if log.isEnabledFor(level):
        log.handle(log.makeRecord(logger, level, __file__, 0, "%s", (text,), None, extra={"plugin": plugin}))
