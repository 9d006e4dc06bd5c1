"""The messages about tools: their definitions, calls and outcomes."""

from typing import Any, Literal

import msgspec

from trunkline.contracts.agents.messages import AgentReport
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.conversations.messages import Attachment
from trunkline.errors import ToolErrorKind, error_kind_named
from trunkline_bus import Payload, key_of

Effect = Literal["read", "write", "send", "exec"]
Category = Literal["always-send", "discoverable"]

REMOTE_SOURCE, MCP_SOURCE, PROGRAM_SOURCE = "remote:", "mcp:", "cli:"

PLATFORM_SOURCE = "native:trunkline"
"""The source of the platform's own tools. They manage tools and results and do nothing else."""

READ_RESULT = "read_result"

BUSY = "busy"
"""The code with which a tools worker refuses a call because it runs its maximum number of calls. Nothing was run; the
caller may retry later.
"""

DISCOVER_TOOLS, LOAD_TOOLS = "discover_tools", "load_tools"
"""The tools with which a model finds and loads the tools that are not sent to it."""


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a tool's definition that a model needs to call the tool. ``parameters`` is a JSON schema of type
    object.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of the catalogue.

    ``effect`` and ``idempotent`` decide what happens after a crash: a ``read`` may be run again; a call with another
    effect may be run again only if the tool is ``idempotent``. ``timeout`` is in seconds.

    ``paths`` names the parameters that hold a path in the block's workspace, ``memory_paths`` those that hold the
    path of a file of memory, ``memory_trees`` those that hold the path of a file or of a folder including everything
    in it. ``unbound_params`` names the parameters whose values a lasting approval does not fix, such as a file's
    content. ``urls`` names the parameters that hold the address of a page; the caller then chooses the host. ``argv``
    names the parameter that holds the argument vector of a program; the policies use it to distinguish programs that
    only read.

    ``network`` is true if the tool reaches other hosts. ``read_only`` is true if the tool's programs only read, in
    every call; they run in a sandbox where nothing can be changed. ``in_plan_mode`` is true if the agent may use the
    tool in plan mode; if the tool has paths, then only on plan files (``plans/*.md``). ``ends_planning`` is true if the
    tool may end plan mode; a person is asked about each such call. ``administers`` is true if the tool changes who may
    enter and what they may do; the owner is asked about each such call, and nobody else can approve it. ``delegates``
    is true if the tool only starts and ends tasks of agents, whose own calls are checked like those of this agent.
    ``untrusted_output`` is true if the result comes from files, pages, memory or programs; the model receives it marked
    as data. ``derived`` is true if the result repeats what memory holds; no search of memory returns it.

    ``source`` is ``native:plugin``, ``mcp:server``, ``cli:program`` or ``remote:host``. ``own_name`` is the tool's
    name at its source if the catalogue uses another name. ``category`` is the author's advice whether a model that is
    not sent all tools should be sent this one; the owner decides. ``blocks`` are the blocks that may have the tool;
    empty means all. ``aliases`` are further names by which models call the tool, as registered in the catalogue;
    policies may deny the tool by an alias.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect
    idempotent: bool = False
    timeout: float = 60.0
    paths: tuple[str, ...] = ()
    memory_paths: tuple[str, ...] = ()
    memory_trees: tuple[str, ...] = ()
    unbound_params: tuple[str, ...] = ()
    network: bool = False
    urls: tuple[str, ...] = ()
    argv: str = ""
    in_plan_mode: bool = False
    ends_planning: bool = False
    administers: bool = False
    delegates: bool = False
    read_only: bool = False
    untrusted_output: bool = False
    derived: bool = False
    source: str = "native:unknown"
    category: Category = "discoverable"
    own_name: str = ""
    blocks: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """The tool's unique identity, independent of its name in the catalogue: its source and its name at the
        source.
        """
        return f"{self.source}:{self.own_name or self.name}"

    @property
    def origin(self) -> str:
        """The provider of the tool in words for people; "" if the tool comes from an installed plugin."""
        name = self.source.partition(":")[2]
        if self.mcp:
            return f"the MCP server {name}"
        if self.is_remote:
            return f"the host {name}"
        return f"the program {name}" if self.source.startswith(PROGRAM_SOURCE) else ""

    @property
    def definition(self) -> str:
        """A hash of the definition that the tool's source gives: description, parameters, effect and the kinds of its
        parameters.

        Empty for a tool of an installed plugin, because an installed plugin's code is pinned. Other sources can
        change a definition at any time, so an approval is bound to this hash.
        """
        if not self.origin:
            return ""
        said = [self.description, self.parameters, self.effect, self.paths, self.memory_paths, self.urls]
        return key_of("definition", msgspec.json.encode(said, order="sorted").decode())

    @property
    def mcp(self) -> bool:
        """Report whether an MCP server runs the tool."""
        return self.source.startswith(MCP_SOURCE)

    @property
    def is_remote(self) -> bool:
        """Report whether the tool runs on another host."""
        return self.source.startswith(REMOTE_SOURCE)

    @property
    def repeatable(self) -> bool:
        """Report whether running a call a second time does no harm."""
        return self.effect == "read" or self.idempotent


class ListTools(Payload, frozen=True, kw_only=True, tag="tools.list.v1"):
    """Ask for a block's catalogue. If ``version`` is still current the reply holds no tools."""

    block: str
    version: str | None = None


class ToolCatalogue(Payload, frozen=True, kw_only=True, tag="tools.catalogue.v1"):
    """The tools of a block. ``tools`` is None if the caller's version is current.

    ``own`` are the platform's tools; a model receives each of them only when it is of use. ``restricted`` names the
    tools that the block's policies or the host deny for all arguments; a model does not receive them. A reply of an
    earlier version has neither ``own`` nor ``restricted``.
    """

    version: str
    tools: tuple[ToolSpec, ...] | None = None
    own: tuple[ToolSpec, ...] = ()
    restricted: tuple[str, ...] = ()


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer to a question of a call. ``question`` is the question's hash. ``text`` is None if the
    question was not answered; ``by`` then names the person who declined, or is ``deadline``.
    """

    question: str
    by: str
    text: str | None = None


class CallTool(Payload, frozen=True, kw_only=True, tag="tools.call.v1"):
    """Run a tool. ``call`` is the key in the effect ledger: calls with the same key have their effect at most once.

    ``arguments`` may also be text that is not JSON, as a model sent it; the worker repairs or refuses it. ``approved``
    is the hash of the call that a person approved. ``answers`` are people's answers to the call's questions.
    ``reports`` are the results of tasks of agents that the call started. ``budget_turn`` is the turn toward whose
    budget the call's model requests count; "" for ``turn``. ``forked_from`` is the conversation that this one was
    forked from; set until memory stores the fork. ``again`` is true if the call may have been requested before, so that
    another worker may run it or the ledger may hold its outcome; if ``again`` is false, a read is run without looking
    into the ledger. ``permissions`` are the caller's scopes (``tools:*``, ``memory:/path/*``): the call may do only
    what both they and the block's own permissions allow. ``timeout`` limits the call to fewer seconds than the tool's
    own limit; unset for no such limit.
    """

    call: str
    name: str
    arguments: dict[str, Any] | str
    block: str
    conversation: str
    turn: str
    actor: str
    approved: str | None = None
    forked_from: str | None = None
    answers: tuple[QuestionAnswer, ...] = ()
    reports: tuple[AgentReport, ...] = ()
    budget_turn: str = ""
    again: bool = False
    permissions: tuple[str, ...] = ("*",)
    timeout: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def has_decisions(self) -> bool:
        """Report whether the request carries people's decisions. Only the monitor may send these, on a separate
        subject.
        """
        return self.approved is not None or bool(self.answers)


class CheckLiveness(Payload, frozen=True, kw_only=True, tag="tools.check-alive.v1"):
    """Ask one tools worker whether it is alive and runs ``call``."""

    call: str = ""


class LivenessReply(Payload, frozen=True, kw_only=True, tag="tools.alive.v1"):
    """The worker is alive. ``at_work`` is true if the worker will still send an outcome of the call; a worker of an
    earlier version always reports true.
    """

    at_work: bool = True


class EndTasks(Payload, frozen=True, kw_only=True, tag="tools.end-tasks.v1"):
    """Ask one tools worker to end the background tasks of a block in its home. ``forget`` also deletes the records of
    these tasks.
    """

    block: str
    forget: bool = False


class TasksEnded(Payload, frozen=True, kw_only=True, tag="tools.tasks-ended.v1"):
    """The tasks that ended, and the tasks that were still running when the time limit for ending them was reached."""

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


class CancelCall(Payload, frozen=True, kw_only=True, tag="tools.cancel.v1"):
    """Stop a call. The worker that runs the call answers its caller with an outcome; other workers ignore the
    message.

    The message is not stored, so the sender repeats it until the outcome arrives.
    """

    reason: str = ""


class ToolProgress(Payload, frozen=True, kw_only=True, tag="tools.progress.v1"):
    """The call is running. The worker sends this message every second or more often; silence means that the worker
    died.

    ``note`` is the tool's line of progress. ``output`` is new output of the tool's programs for people who watch the
    call, from character ``offset`` of all their output on. Output that came too fast is missing before ``offset``.
    """

    call: str
    note: str = ""
    offset: int = 0
    output: str = ""


class StoredResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result that is too long for the conversation. The tool ``read_result`` reads it by ``id``; ``id`` is empty if
    the result could not be stored. ``characters`` is the length of the result, ``kept`` the number of characters
    stored, counted from the beginning.
    """

    id: str
    characters: int
    kept: int

    @property
    def notice(self) -> str:
        """A sentence that tells a person how to read the result."""
        if not self.id:
            return f"Of its {self.characters} characters the middle could not be kept."
        return f"All that is kept of its {self.characters} characters: trunkline results show {self.id}"


class ToolOutcome(Payload, frozen=True, kw_only=True, tag="tools.outcome.v1"):
    """The outcome of a call.

    ``status`` is ``ok`` (``output`` is the result), ``error`` (``output`` tells the model what failed), ``unknown``
    ``approval`` or ``agent``. ``unknown`` means that a call with an effect was interrupted because its worker died, its
    time ran out or it was cancelled; ``output`` tells the model to verify the effect. ``approval`` means that a person
    must decide or answer first; ``call_hash``, ``question`` and ``detail`` describe the decision. ``agent`` means that
    the call goes on, by being sent again, when the task ``task`` of an agent has ended.

    ``repeated`` is true if the outcome was read from the ledger. ``effect`` is the tool's effect, None if the tool
    was not found or the outcome is of an earlier version. ``stored`` is set if ``output`` is the beginning and end of
    a longer result. ``loads`` names tools that the model receives from the next step on. ``within`` is the number of
    seconds in which an answer is of use, set if the call limits that time. ``error_kind`` holds the value that
    ``kind`` returns. ``derived`` is true if ``output`` repeats what memory holds; unset if the tool is unknown or the
    outcome is of an earlier version. ``files`` are the files that the call gave to the person.
    """

    call: str
    status: Literal["ok", "error", "unknown", "approval", "agent"]
    output: str = ""
    call_hash: str = ""
    question: str = ""
    repeated: bool = False
    effect: Effect | None = None
    detail: ApprovalDetail | msgspec.UnsetType = msgspec.UNSET
    stored: StoredResult | msgspec.UnsetType = msgspec.UNSET
    loads: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    within: float | msgspec.UnsetType = msgspec.UNSET
    error_kind: str | msgspec.UnsetType = msgspec.UNSET
    derived: bool | msgspec.UnsetType = msgspec.UNSET
    files: tuple[Attachment, ...] | msgspec.UnsetType = msgspec.UNSET
    task: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def kind(self) -> ToolErrorKind | None:
        """The kind of the error, one of ``TOOL_ERROR_KINDS``; None if there is no error."""
        if self.status == "unknown":
            return "outcome_unknown"
        if self.status != "error":
            return None
        return error_kind_named(self.error_kind) if isinstance(self.error_kind, str) else "failed"

    @property
    def is_open(self) -> bool:
        """Report whether the call has no outcome yet: it waits for a person or for an agent."""
        return self.status in ("approval", "agent")

    @property
    def is_waiting(self) -> bool:
        """Report whether the call has started and is paused until its question is answered."""
        return self.status == "approval" and not isinstance(self.within, msgspec.UnsetType)


ToolReply = ToolProgress | ToolOutcome


class EffectStarted(Payload, frozen=True, kw_only=True, tag="effect.started.v1"):
    """Ledger entry: ``worker`` is about to run the call."""

    call: str
    tool: str
    worker: str
    effect: Effect
    turn: str


class EffectFinished(Payload, frozen=True, kw_only=True, tag="effect.finished.v1"):
    """Ledger entry: the call ended. A repeated request is answered with this outcome."""

    call: str
    outcome: ToolOutcome


class EffectAsked(Payload, frozen=True, kw_only=True, tag="effect.asked.v1"):
    """Ledger entry: the call has not started and waits for a person's decision. It starts only if that person
    approves it.
    """

    call: str
    outcome: ToolOutcome


EffectRecord = EffectStarted | EffectAsked | EffectFinished
