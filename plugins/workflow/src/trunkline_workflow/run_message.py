"""The message that a run begins with: the run's frozen definition and inputs. Pure.

A run is a turn that the adapter ``workflow`` answers. Its first message holds the definition's whole text, so a change
of the file does not change the run.
"""

from typing import Any

import msgspec

MODEL = "workflow"
"""The adapter that answers a run's turn."""

_MARK = "```json\n"
_END = "\n```"


class DoneCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of an earlier run with its result, which counts for the same call with the same arguments."""

    tool: str
    arguments: dict[str, Any]
    text: str
    kind: str = ""


class RunStart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The frozen beginning of a run. ``definition`` is the text of the workflow's file and ``sha256`` its hash.

    ``run`` is the run's id. ``done`` are the calls of an earlier run that this one continues, by their ids.
    """

    run: str
    block: str
    workflow: str
    sha256: str
    definition: str
    inputs: dict[str, Any] = {}
    done: dict[str, DoneCall] = {}


def write_start(start: RunStart) -> str:
    """Return the message. Its first line is the title of the conversation."""
    frozen = msgspec.json.format(msgspec.json.encode(start), indent=2).decode()
    return f"Workflow {start.workflow}, run {start.run}\n\n{_MARK}{frozen}{_END}"


def read_start(text: str) -> RunStart | None:
    """Return the beginning that a message holds; None if it holds none."""
    before, mark, rest = text.partition(_MARK)
    if not mark or not before.startswith("Workflow ") or not rest.endswith(_END):
        return None
    try:
        return msgspec.json.decode(rest.removesuffix(_END), type=RunStart)
    except (msgspec.DecodeError, RecursionError):
        return None
