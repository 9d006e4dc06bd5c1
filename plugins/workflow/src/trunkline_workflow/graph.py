"""The graph of a workflow's steps: checks of its targets and cycles, and its drawing. Pure."""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from trunkline_workflow.definition import Definition, WorkflowStep
from trunkline_workflow.yaml_reader import Problem


def graph_problems(definition: Definition) -> Iterator[Problem]:
    """Yield the targets that do not exist, the steps that no path reaches, and the cycles without a bound."""
    steps = {step.id: step for step in definition.steps}
    for step in definition.steps:
        for key, target in step.targets:
            if target not in steps:
                named = f"{key} of the step {step.id!r} names {target!r}"
                yield Problem(step.lines[key], f"{named}, and there is no such step.")
    reached = _reached(definition, steps)
    for step in definition.steps:
        if step.id not in reached:
            yield Problem(step.line, f"No path leads to the step {step.id!r}.")
    cycle = _unbounded_cycle(steps)
    if cycle:
        path = " → ".join([*cycle, cycle[0]])
        yield Problem(
            steps[cycle[0]].line,
            f"The cycle {path} has no bound. Give one of its steps max_visits, such as 10.",
        )


def _reached(definition: Definition, steps: Mapping[str, WorkflowStep]) -> set[str]:
    reached: set[str] = set()
    todo = [definition.steps[0].id] if definition.steps else []
    while todo:
        id = todo.pop()
        if id in steps and id not in reached:
            reached.add(id)
            todo.extend(target for _, target in steps[id].targets)
    return reached


def _unbounded_cycle(steps: Mapping[str, WorkflowStep]) -> list[str]:
    """Return a cycle of steps without ``max_visits``; empty if there is none."""
    free = {
        id: [target for _, target in step.targets if target in steps and steps[target].max_visits is None]
        for id, step in steps.items()
        if step.max_visits is None
    }
    try:
        TopologicalSorter(free).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[:0:-1]
    return []


def mermaid(definition: Definition, states: Mapping[str, str] | None = None) -> str:
    """Return the drawing of the graph for Mermaid. ``states`` are the states of a run's steps, which are coloured."""
    lines = ["flowchart TD"]
    for step in definition.steps:
        lines.append(f"    {_node_id(definition, step.id)}{_shape(step)}")
    ends: dict[str, None] = {}
    for step in definition.steps:
        for label, target, end in edges(step):
            arrow = f"-->|{label}|" if label else "-->"
            if end:
                ends[end] = None
            to = f"{end}([{end}])" if end else _node_id(definition, target)
            lines.append(f"    {_node_id(definition, step.id)} {arrow} {to}")
    colours = {"done": "#cfe8cf", "failed": "#f3c7c7", "running": "#cfe0f3", "waiting_approval": "#f8e6b0"}
    for state, colour in colours.items():
        named = [_node_id(definition, id) for id, now in (states or {}).items() if now == state]
        if named:
            lines += [f"    classDef {state} fill:{colour}", f"    class {','.join(named)} {state}"]
    return "\n".join(lines) + "\n"


def _node_id(definition: Definition, id: str) -> str:
    """Return a name that is no word of Mermaid, such as ``end``."""
    return f"s{[step.id for step in definition.steps].index(id)}"


def edges(step: WorkflowStep) -> Iterator[tuple[str, str, str]]:
    """Yield for each way out of a step its label, its target and, if there is no target, the end that the run comes
    to."""
    if step.type == "action":
        yield "", step.next or "", "" if step.next else "completed"
        if step.on_error:
            yield "error", step.on_error, ""
        return
    yes, no = ("approve", "reject") if step.type == "approval" else ("true", "false")
    yield yes, step.on_approve or "", "" if step.on_approve else "completed"
    end = "failed" if step.type == "approval" else "completed"
    yield no, step.on_reject or "", "" if step.on_reject else end


def _shape(step: WorkflowStep) -> str:
    text = f"{step.id}: {step.name}" if step.name != step.id else step.id
    label = "".join(
        letter if letter.isalnum() or letter in " -_.,:" else f"#{ord(letter)};" for letter in text
    )
    return {"action": f'["{label}"]', "approval": f'{{{{"{label}"}}}}', "conditional": f'{{"{label}"}}'}[
        step.type
    ]
