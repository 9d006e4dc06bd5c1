"""The gatekeeper: asks a person about calls that need approval, and shows the effect of the call.

The policies decide which calls need approval. Such a call runs only after a person has approved exactly this call.
"""

import logging
from collections.abc import Awaitable, Callable

import msgspec

from trunkline._util.secrets.redactor import Redactor
from trunkline._util.text import printable
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.approvals.preview import arguments_preview, arguments_summary, preview
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES
from trunkline.contracts.tools.messages import ToolOutcome, ToolSpec
from trunkline.contracts.tools.tool import Proceed, Stage, Tool, ToolInvocation
from trunkline.errors import ToolError
from trunkline.policy import bound_arguments, shape_of
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.path_resolution import resolved_arguments

log = logging.getLogger(__name__)

ToolLookup = Callable[[str], Awaitable[Tool | None]]


class Gatekeeper:
    """Asks a person about calls for which the policies require approval."""

    stage: Stage = "gate"

    def __init__(self, permissions: CallAuthorizer, tool_of: ToolLookup, secrets: Redactor) -> None:
        self._permissions = permissions
        self._tool_of = tool_of
        self._secrets = secrets

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed with a call that needs no approval or has it; otherwise ask. Questions of a plugin's gate are shown
        with it.
        """
        decision = await self._permissions.decide(invocation)
        if not decision.allowed:
            raise ToolError(
                f"{invocation.spec.name} was not run: {decision.why} {decision.hint}".rstrip(),
                kind="permission_denied",
            )
        # The end of planning and a change of who may enter always need a person, whatever the policies permit.
        asks = decision.asks or invocation.spec.ends_planning or invocation.spec.administers
        if asks and invocation.approved != invocation.call_hash:
            return await self._question(invocation)
        outcome = await proceed(invocation)
        if outcome.status != "approval" or not isinstance(outcome.detail, msgspec.UnsetType):
            return outcome
        return msgspec.structs.replace(outcome, detail=await self._shown(invocation))

    async def _question(self, invocation: ToolInvocation) -> ToolOutcome:
        spec, context = invocation.spec, invocation.context
        detail = msgspec.structs.replace(
            await self._shown(invocation),
            tool=spec.name,
            effect=spec.effect,
            owner_only=spec.administers,
            **self._lasting_approval(invocation),
        )
        return ToolOutcome(
            call=context.call,
            status="approval",
            call_hash=invocation.call_hash,
            question=ENGLISH_SENTENCES(
                f"ask.{_wanted(spec)}", block=context.block, tool=_tool_with_origin(spec)
            ),
            detail=detail,
        )

    def _lasting_approval(self, invocation: ToolInvocation) -> dict[str, str]:
        """Return the description of a lasting approval. There is none for the end of planning, and for a change of who
        may enter."""
        spec, arguments = invocation.spec, resolved_arguments(invocation.spec, invocation.arguments)
        if spec.ends_planning or spec.administers:
            return {}
        unbound = f"; any {', '.join(spec.unbound_params)}" if spec.unbound_params else ""
        arguments_text = arguments_summary(bound_arguments(spec, arguments)) or "no arguments"
        covers = f"{_tool_with_origin(spec)} with {arguments_text}{unbound}"
        return {"shape": shape_of(spec, arguments), "covers": self._secrets.redact(covers)}

    async def _shown(self, invocation: ToolInvocation) -> ApprovalDetail:
        """Return the tool's preview, else its arguments, with recognised secrets redacted."""
        shown = await self._tool_preview(invocation) or arguments_preview(invocation.arguments)
        text = self._secrets.redact(printable(shown.text))
        again = preview(shown.kind, text)  # limits the length of a tool's own preview too
        return msgspec.structs.replace(again, left_out=again.left_out + shown.left_out)

    async def _tool_preview(self, invocation: ToolInvocation) -> ApprovalDetail | None:
        tool = await self._tool_of(invocation.spec.name)
        if tool is None:
            return None
        try:
            return await tool.preview(invocation.context, dict(invocation.arguments))
        except (
            Exception
        ) as error:  # the question shows the arguments instead; the call itself reports the error
            log.info("%s has no preview: %s", invocation.spec.name, error)
            return None


def _tool_with_origin(spec: ToolSpec) -> str:
    """Return the tool's name, with its origin unless it is a plugin: a person decides about both."""
    return f"{spec.name} of {spec.origin}" if spec.origin else spec.name


def _wanted(spec: ToolSpec) -> str:
    """Return the end of the key of the sentence that says what the agent wants."""
    if spec.ends_planning:
        return "plan"
    if spec.administers:
        return "administer"
    if spec.delegates:
        return "delegate"
    if (
        spec.mcp and spec.effect == "send"
    ):  # the effect of an MCP tool is unknown; it counts as send unless the owner trusts it
        return "mcp"
    return "fetch" if spec.urls and spec.effect == "read" else spec.effect
