"""The plugin: its tools, and the gate before the one that approves a plan."""

from collections.abc import Iterable

import trunkline
from trunkline.api.tool import ToolMiddleware


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The list of what is to do, and the plan tools."""
    from trunkline_planning import plan_approval, plan_tools, todo_tools

    return [
        todo_tools.todo_write,
        todo_tools.todo_read,
        todo_tools.todo_clear,
        plan_tools.enter_plan_mode,
        plan_tools.add_plan_step,
        plan_tools.add_plan_file,
        plan_tools.add_plan_risk,
        plan_tools.present_plan,
        plan_tools.get_plan_status,
        plan_approval.approve_plan,
        plan_approval.exit_plan_mode,
    ]


@trunkline.hookimpl
def trunkline_tool_middleware() -> Iterable[ToolMiddleware]:
    """A person approves what they are shown."""
    from trunkline_planning.plan_approval import PlanVersionCheck

    return [PlanVersionCheck()]
