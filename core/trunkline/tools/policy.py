"""The policy stage that is built in: what the block may use, and no program without a sandbox. Deny wins."""

from trunkline.abc.tools import Proceed, Stage, ToolInvocation
from trunkline.errors import ToolError
from trunkline.messages.tools import ToolOutcome
from trunkline.tools.limits import BlockLimits
from trunkline.tools.manifest import CLI
from trunkline.tools.sandboxes import Sandboxes


class PolicyStage:
    """Refuses tools that the block's ``tools`` line leaves out, and programs when there is no sandbox."""

    stage: Stage = "policy"

    def __init__(self, limits: BlockLimits, sandboxes: Sandboxes) -> None:
        self._limits = limits
        self._sandboxes = sandboxes

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise ToolError with what a person could do about it."""
        spec, block = invocation.spec, invocation.context.block
        if not (await self._limits.of(block)).allow(spec.name):
            raise ToolError(
                f"{spec.name} exists, but the block {block} may not use it. "
                f"A person can add it to tools in the block's block.toml. Nothing was run."
            )
        if spec.effect == "exec" or spec.source.startswith(CLI):
            await self._sandboxes.chosen()
        return await proceed(invocation)
