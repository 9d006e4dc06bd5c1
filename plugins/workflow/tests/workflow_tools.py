"""Tools and definitions for the tests of workflows. The tools append a line for each effect to a file of the workspace,
so that a test counts effects and not reports."""

from pathlib import Path
from typing import Any

import trunkline
from trunkline import ToolError

DEPLOY_APP = """\
name: deploy-app
description: Build the app, ask, and deploy it.
inputs:
  version: null
steps:
  - id: build
    name: Build
    type: action
    action: effect
    args: {mark: build, result: '{"url": "http://app/{{ version }}", "size": 3}'}
    next: review
  - id: review
    name: Review
    type: approval
    message: "Deploy {{ url }}?"
    on_approve: deploy
    on_reject: cancel
  - id: deploy
    name: Deploy
    type: action
    action: effect
    args: {mark: deploy, result: '{"deployed": "{{ steps.build.url }}"}'}
  - id: cancel
    name: Cancel
    type: action
    action: effect
    args: {mark: cancel}
"""


@trunkline.tool(effect="write", unbound_params=("mark", "result"))
def effect(context: trunkline.ToolContext, mark: str, result: str = "", fail: int = 0) -> str:
    """Append a line to the file of effects.

    Args:
        mark: The line.
        result: What is returned.
        fail: How many calls with this mark fail first.
    """
    lines = effects(context.workspace)
    with (context.workspace / "effects").open("a") as file:
        file.write(f"{mark}\n")
    if lines.count(mark) < fail:
        raise ToolError(f"{mark} failed", kind="failed")
    return result or f"did {mark}"


def effects(workspace: Path) -> list[str]:
    """The effects so far, in order."""
    path = workspace / "effects"
    return path.read_text().splitlines() if path.exists() else []


class EffectPlugin:
    """A plugin with the tool."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        return [effect]


def workflow(name: str, *steps: str, inputs: str = "{}") -> str:
    """A workflow whose steps are these flow mappings."""
    lines = "".join(f"  - {{{step}}}\n" for step in steps)
    return f"name: {name}\ndescription: A test.\ninputs: {inputs}\nsteps:\n{lines}"


SETTINGS: dict[str, Any] = {"permissions.approvals": "none"}
