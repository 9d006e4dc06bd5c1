"""The endpoints of the tools worker and of other hosts that offer tools."""

from trunkline.contracts.policies.messages import QuotaUsage
from trunkline.contracts.tools.messages import (
    CallTool,
    CancelCall,
    CheckLiveness,
    EndTasks,
    ListTools,
    LivenessReply,
    TasksEnded,
    ToolCatalogue,
    ToolReply,
)
from trunkline_bus import (
    BucketSpec,
    Endpoint,
    ObjectStoreSpec,
    Subject,
    Topic,
)

LIST_TOOLS = Endpoint(
    "tools.list", Subject("trunkline.cmd.tools.list"), ListTools, ToolCatalogue, root=False,
    doc="The tools of a block.",
)  # fmt: skip
CALL_TOOL: Endpoint[CallTool, ToolReply] = Endpoint(
    "tools.call", Subject("trunkline.cmd.tools.call"), CallTool, ToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a tool call without a person's decision: progress, then the outcome.",
)  # fmt: skip
CALL_DECIDED_TOOL: Endpoint[CallTool, ToolReply] = Endpoint(
    "tools.call-decided", Subject("trunkline.cmd.tools.call-decided"), CallTool, ToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a tool call with a person's decision. Only the monitor calls it; its journal has the decision.",
)  # fmt: skip
DELEGATED_LIST_TOOLS = Endpoint(
    "delegated.list", Subject("trunkline.cmd.delegated.{agent}.{block}.list"), ListTools, ToolCatalogue,
    root=False, doc="The tools of a block that another agent may use.",
)  # fmt: skip
DELEGATED_CALL_TOOL: Endpoint[CallTool, ToolReply] = Endpoint(
    "delegated.call", Subject("trunkline.cmd.delegated.{agent}.{block}.call"), CallTool, ToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a tool for another agent. The subject, not the call, names the agent and the block.",
)  # fmt: skip
REMOTE_LIST_TOOLS = Endpoint(
    "remote.list", Subject("trunkline.cmd.remote.{remote}.list"), ListTools, ToolCatalogue,
    root=False, doc="The tools of another host. That host serves them, and the tools worker requests them.",
)  # fmt: skip
REMOTE_CALL_TOOL: Endpoint[CallTool, ToolReply] = Endpoint(
    "remote.call", Subject("trunkline.cmd.remote.{remote}.call"), CallTool, ToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a tool on another host. That host's ledger makes a repeated request harmless.",
)  # fmt: skip
CHECK_LIVENESS = Endpoint(
    "tools.alive", Subject("trunkline.cmd.tools.{worker}.alive"), CheckLiveness, LivenessReply, traced=False,
    doc="Report whether that tools worker runs a call. No answer means that the worker and its calls have ended.",
)  # fmt: skip
END_TASKS = Endpoint(
    "tools.end", Subject("trunkline.cmd.tools.{worker}.end"), EndTasks, TasksEnded,
    doc="End the background tasks of a block in the home of that tools worker.",
)  # fmt: skip
QUOTA_BUCKET: BucketSpec[QuotaUsage] = BucketSpec(
    name="quotas",
    payload=QuotaUsage,
    ttl=3 * 86_400.0,
    max_bytes=16 * 1024 * 1024,
    description="How often policies were used, by day",
)
RESULT_STORE = ObjectStoreSpec(
    name="results", description="Tool results that are too long for their conversation"
)
CANCEL_CALL: Topic[CancelCall] = Topic(
    name="tool call cancel",
    subject=Subject("trunkline.ctl.tools.{call}.cancel"),
    payload=CancelCall,
    doc="Stop a tool call, wherever it runs. Every tools worker receives it.",
)
DELEGATED_CANCEL_CALL: Topic[CancelCall] = Topic(
    name="delegated call cancel",
    subject=Subject("trunkline.ctl.delegated.{agent}.{block}.{call}.cancel"),
    payload=CancelCall,
    doc="Stop a call of an agent that uses a block. Every tools worker receives it.",
)
