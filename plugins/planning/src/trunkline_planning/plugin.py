"""The plugin: its tools, and the gate before the one that approves a plan."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The list of what is to do (MN-F15), and the plan tools (MN-F17)."""
    from trunkline_planning import ending, planning, todos

    return [
        todos.todo_write,
        todos.todo_read,
        todos.todo_clear,
        planning.enter_plan_mode,
        planning.add_plan_step,
        planning.add_plan_file,
        planning.add_plan_risk,
        planning.present_plan,
        planning.get_plan_status,
        ending.approve_plan,
        ending.exit_plan_mode,
    ]


@trunkline.hookimpl
def trunkline_tool_middleware() -> Iterable[trunkline.ToolMiddleware]:
    """A person approves what they are shown."""
    from trunkline_planning.ending import PlanAsItStands

    return [PlanAsItStands()]
