"""A log is bounded while one failure repeats very often, and reports the number of omitted lines."""

import io
import logging

import pytest

from trunkline.cli.log_throttle import MAX_LINES, WINDOW_SECONDS, RepeatFilter

AGAIN = 17
"""The line of the code that writes again and again."""


@pytest.fixture
def handler() -> logging.StreamHandler[io.StringIO]:
    made = logging.StreamHandler(io.StringIO())
    made.addFilter(RepeatFilter(made))
    return made


def log(
    handler: logging.StreamHandler[io.StringIO],
    text: str,
    *args: object,
    at: float,
    line: int = AGAIN,
    level: int = 30,
) -> None:
    record = logging.LogRecord("trunkline.test", level, "flood.py", line, text, args, None)
    record.created = at
    handler.handle(record)


def lines(handler: logging.StreamHandler[io.StringIO]) -> list[str]:
    return handler.stream.getvalue().splitlines()


def test_a_flood_of_log_lines_is_counted_and_others_are_logged(
    handler: logging.StreamHandler[io.StringIO],
) -> None:
    for number in range(78_000):
        log(handler, "call %s: asking again", number, at=number / 20_000)
    log(handler, "the disk is full", at=5.0, line=99)
    assert len(lines(handler)) == MAX_LINES + 1
    assert lines(handler)[-1] == "the disk is full"
    log(handler, "all is well", at=WINDOW_SECONDS + 1, line=99)
    assert lines(handler)[-2:] == [
        f"{78_000 - MAX_LINES} more lines like this one in {WINDOW_SECONDS:g} s: call 77999: asking again",
        "all is well",
    ]


def test_rare_log_lines_are_all_kept(handler: logging.StreamHandler[io.StringIO]) -> None:
    for number in range(500):
        log(handler, "line %s", number, at=float(number))
    assert lines(handler) == [f"line {number}" for number in range(500)]


def test_debug_logging_repeats_every_line(handler: logging.StreamHandler[io.StringIO]) -> None:
    for number in range(500):
        log(handler, "line %s", number, at=0.0, level=logging.DEBUG)
    assert len(lines(handler)) == 500


def test_a_percent_sign_in_a_suppressed_line_is_text(handler: logging.StreamHandler[io.StringIO]) -> None:
    for _ in range(MAX_LINES + 1):
        log(handler, "%s", "100 %s", at=0.0)
    log(handler, "%s", "100 %s", at=WINDOW_SECONDS)
    assert lines(handler)[-2:] == [f"1 more lines like this one in {WINDOW_SECONDS:g} s: 100 %s", "100 %s"]


def test_log_limits_are_separate_for_each_plugin(
    handler: logging.StreamHandler[io.StringIO],
) -> None:
    """The process chooses the names of its loggers, as many as it likes."""
    for number in range(500):
        for plugin, logger in (("noisy", f"acme.{number}"), ("quiet", "acme.0")):
            if plugin == "quiet" and number:
                continue
            record = logging.LogRecord(logger, logging.ERROR, "log.py", 0, f"{plugin} {number}", (), None)
            record.created, record.plugin = number / 100, plugin
            handler.handle(record)
    assert len([line for line in lines(handler) if line.startswith("noisy")]) == MAX_LINES
    assert "quiet 0" in lines(handler)
