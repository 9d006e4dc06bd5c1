"""The tools worker's hooks: what agents can do, and where it runs."""
# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and its arguments, people read its docstring.

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trunkline.hookspecs.marks import hookspec

if TYPE_CHECKING:
    from trunkline.abc.platform import PluginSettings
    from trunkline.abc.sandbox import Sandbox
    from trunkline.abc.tools import Tool, ToolMiddleware


@hookspec
def trunkline_tools(settings: "PluginSettings") -> "Iterable[Tool]":
    """Add tools. The signature is the schema, the docstring the description.

    ```python
    import random
    import trunkline

    @trunkline.tool(effect="read")
    def roll(sides: int = 6) -> str:
        \"\"\"Roll a die.\"\"\"
        return str(random.randint(1, sides))

    @trunkline.hookimpl
    def trunkline_tools():
        return [roll]
    ```
    """


@hookspec
def trunkline_tool_middleware(settings: "PluginSettings") -> "Iterable[ToolMiddleware]":
    """Stand around every tool call, at one stage of the dispatch. A guard.

    ```python
    import trunkline

    class NightRest:
        stage = "policy"

        async def __call__(self, invocation, proceed):
            if invocation.spec.effect == "exec":
                raise trunkline.ToolError("Programs may not run at night. Ask again in the morning.")
            return await proceed(invocation)

    @trunkline.hookimpl
    def trunkline_tool_middleware():
        return [NightRest()]
    ```
    """


@hookspec
def trunkline_sandboxes(settings: "PluginSettings") -> "Iterable[Sandbox]":
    """Add places where programs run, isolated by the operating system.

    ```python
    import trunkline

    class Nowhere(trunkline.Sandbox):
        name = "nowhere"

        async def unavailable(self):
            return "Nothing can run here. Install bubblewrap."

        async def run(self, argv, *, workspace, env, stdin=b"", limits=trunkline.SandboxLimits()):
            return trunkline.SandboxResult(b"", b"", 127, 0.0)

    @trunkline.hookimpl
    def trunkline_sandboxes():
        return [Nowhere()]
    ```
    """
