"""The page of the turn: ``TRANSITIONS`` as a table and a diagram."""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable

from generator.markdown import code, first_paragraph, prose, table
from trunkline.contracts.turns import journal_messages
from trunkline.workers.monitor import turn as machine
from trunkline.workers.monitor.turn import TRANSITIONS, Next, Phase

INTRODUCTION = """
# The turn's states

A turn is one message and its answer. Its state is the result of applying its journal, entry by entry, to the table
below. This page is generated from that table, `TRANSITIONS` in `core/trunkline/workers/monitor/turn.py`. Only the
entries that the table lists for a phase can be recorded in that phase. An entry that comes too late, such as a tool's
result after a cancel or a second decision, is not recorded. [The turn explained](../explanation/turn.md) gives the
reasons.
"""

MEANING = {
    Phase.NEW: "nothing is recorded yet",
    Phase.READY: "the model is called next",
    Phase.THINKING: "a model call is running",
    Phase.ACTING: "tool calls are running",
    Phase.PARKED: "the turn waits for a person, and no monitor holds it",
    Phase.PREEMPTED: "the turn gave up its slot for another turn, and waits for one",
    Phase.CLOSING: "the messages are being stored",
    Phase.DONE: "the turn is over and stored",
}


def page() -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION.strip(), _diagram(), _phases(), _transitions(), _entries(), _commands()])


def targets(phase: Phase, following: Next) -> list[Phase]:
    """Where an entry may lead: the phase itself, or those that the deciding function names, also through others."""
    if isinstance(following, Phase):
        return [following]
    found: list[Phase] = []
    for function in _with_callees(following):
        source = inspect.getsource(function).partition('"""')[2].rpartition('"""')[2] or inspect.getsource(
            function
        )
        found += [Phase[name] for name in re.findall(r"Phase\.([A-Z]+)", source)]
        found += [phase] if "turn.phase" in source else []
    return sorted(set(found), key=list(Phase).index)


def _with_callees(function: Callable[..., Phase]) -> list[Callable[..., Phase]]:
    names = re.findall(r"(_after_\w+)\(turn\)", inspect.getsource(function))
    return [function, *(getattr(machine, name) for name in names)]


def _diagram() -> str:
    edges: defaultdict[tuple[Phase, Phase], list[str]] = defaultdict(list)
    for phase, row in TRANSITIONS.items():
        for entry, following in row.items():
            for target in targets(phase, following):
                if target is not phase:
                    edges[phase, target].append(entry.__name__)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Phase.NEW.value}"]
    for (phase, target), entries in edges.items():
        lines.append(f"    {phase.value} --> {target.value}: {', '.join(dict.fromkeys(entries))}")
    return "\n".join([*lines, f"    {Phase.DONE.value} --> [*]", "```"])


def _phases() -> str:
    return "## Phases\n\n" + table(("phase", "meaning"), [(code(p.value), MEANING[p]) for p in Phase])


def _transitions() -> str:
    rows = []
    for phase, row in TRANSITIONS.items():
        for entry, following in row.items():
            where = " or ".join(code(target.value) for target in targets(phase, following))
            why = "" if isinstance(following, Phase) else first_paragraph(following)
            rows.append((code(phase.value), code(entry.__name__), where, why))
    return "## Transitions\n\n" + table(("phase", "entry", "next phase", "condition"), rows)


def _entries() -> str:
    kinds = dict.fromkeys(entry for row in TRANSITIONS.values() for entry in row)
    rows = [(code(kind.__name__), first_paragraph(kind)) for kind in kinds]
    record = first_paragraph(journal_messages.TurnRecord)
    note = f"[Messages](messages.md) lists the fields. Entries are written in records. {record}"
    return f"## Journal entries\n\n{note}\n\n" + table(("entry", "meaning"), rows)


def _commands() -> str:
    kinds = (machine.CallModel, machine.RunToolCall, machine.StoreTurn, machine.ParkTurn)
    rows = [(code(kind.__name__), " ".join(prose(kind).split())) for kind in kinds]
    note = "The state machine returns these commands. The turn runner executes them once their entries are stored."
    return f"## Commands\n\n{note}\n\n" + table(("command", "meaning"), rows)
