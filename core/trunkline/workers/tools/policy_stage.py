"""The built-in policy stage: refuses tools and actions that the block may not use, and programs without a sandbox.
Denials win.
"""

from collections.abc import Awaitable, Callable

from trunkline.contracts.audit.messages import AuditDecision
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.tools.tool import Proceed, Stage, ToolInvocation
from trunkline.errors import ToolError
from trunkline.home.kill_switch import KillSwitch
from trunkline.policy import Decision
from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.tools.authorization import CallAuthorizer, refuse_unless_allowed
from trunkline.workers.tools.block_tool_limits import BlockToolLimits
from trunkline.workers.tools.sandboxes import SandboxSelector
from trunkline.workers.tools.tool_manifest import CLI_SOURCE


class PolicyStage:
    """Refuses tools outside the block's ``tools`` setting or the request's permissions, calls that the
    policies deny, programs without a sandbox, and every call while the kill switch is engaged."""

    stage: Stage = "policy"

    def __init__(
        self,
        limits_of: Callable[[str], Awaitable[BlockToolLimits]],
        permissions: CallAuthorizer,
        sandboxes: SandboxSelector,
        kill_switch: KillSwitch,
        audit: AuditLog,
    ) -> None:
        self._limits_of = limits_of
        self._permissions = permissions
        self._sandboxes = sandboxes
        self._kill_switch = kill_switch
        self._audit = audit

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise ToolError with the way to permit the call."""
        self._kill_switch.raise_if_engaged()
        spec, block = invocation.spec, invocation.context.block
        limits = await self._limits_of(block)
        if spec.is_remote and not limits.allow(spec):
            raise ToolError(
                f"{spec.name} is on another host, whose tools the block {block} may not use. "
                f"A person can add the block to that host's file in the home's remotes folder. Nothing was run.",
                kind="permission_denied",
            )
        if not limits.allow(spec):
            raise ToolError(
                f"{spec.name} exists, but the block {block} may not use it. "
                f"A person can add it to tools in the block's block.toml. Nothing was run.",
                kind="permission_denied",
            )
        if not invocation.context.permissions.allows_tool(spec.name, spec.identity):
            raise ToolError(
                f"{spec.name} exists, but the permissions of this request do not include it. Nothing was run.",
                kind="permission_denied",
            )
        decision = await self._permissions.decide(invocation)
        await self._write_audit(invocation, decision)
        refuse_unless_allowed(invocation, decision)
        if spec.is_remote:  # the remote's worker checks for a sandbox on its host
            return await proceed(invocation)
        if spec.effect == "exec" or spec.source.startswith(CLI_SOURCE):
            await self._sandboxes.select()
        return await proceed(invocation)

    async def _write_audit(self, invocation: ToolInvocation, decision: Decision) -> None:
        """Record each decision except a permitted read, which the audit entry of the call covers."""
        spec, context = invocation.spec, invocation.context
        decision_word: AuditDecision = (
            "asked" if decision.asks else "allowed" if decision.allowed else "denied"
        )
        if decision_word == "allowed" and spec.effect == "read":
            return
        if decision_word == "asked" and invocation.approved == invocation.call_hash:
            return  # the question and the person's decision were recorded earlier
        await self._audit.record(
            event="decision",
            block=context.block,
            actor=context.actor,
            conversation=context.conversation,
            turn=context.turn,
            call=context.call,
            tool=spec.name,
            effect=spec.effect,
            decision=decision_word,
            by=decision.by,
            why=decision.why,
        )
