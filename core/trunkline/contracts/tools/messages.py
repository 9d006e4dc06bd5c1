"""The messages about tools: their definitions, a call, and its outcome."""

from typing import Any, Literal

import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.errors import ToolErrorKind, error_kind_named
from trunkline_bus import Payload, key_of

Effect = Literal["read", "write", "send", "exec"]
Category = Literal["always-send", "discoverable"]

REMOTE_SOURCE, MCP_SOURCE, PROGRAM_SOURCE = "remote:", "mcp:", "cli:"

PLATFORM_SOURCE = "native:trunkline"
"""The source of the tools that belong to the platform: they handle tools and results and do nothing else."""

READ_RESULT = "read_result"

BUSY = "busy"
"""The code of the refusal by a tools worker that has as many calls as it takes: nothing was run, ask again later."""

DISCOVER_TOOLS, LOAD_TOOLS = "discover_tools", "load_tools"
"""How a model that is not shown all tools gets at the others."""


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The definition of a tool that a model needs to call it; ``parameters`` is a JSON schema of type object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of the catalogue.

    ``effect`` decides what a crash means: a ``read`` may be run again, the others may not unless ``idempotent``.
    ``timeout`` is in seconds. ``paths`` names the parameters that hold a path beneath the block's workspace,
    ``memory_paths`` those that hold the path of a file of memory, ``memory_trees`` of a file or of a folder with all in
    it, ``unbound_params`` those whose values a lasting approval leaves open, such as a file's content.
    ``network``: it reaches other hosts. ``urls`` names the parameters that hold the address of a page: which host is
    reached is up to the caller then.
    ``argv`` names the parameter that holds the argument vector of a program, by which reading is told from running.
    ``read_only``: its programs only read, in every call; they are run where nothing can be changed.
    ``in_plan_mode``: it may be used while planning, on plan files (``plans/*.md``) if it has paths at all.
    ``ends_planning``: it may end what an agent has bound itself to, so a person is asked about each call and told so.
    ``untrusted_output``: its result was written elsewhere, in files, pages, memory or by programs, so the model gets it
    marked as data. ``derived``: its result repeats what memory holds, so no search of memory returns it.
    ``source`` is ``native:plugin``, ``mcp:server``, ``cli:program`` or ``remote:host``; ``own_name`` the name at its
    source when it is called otherwise here. ``category`` is its author's advice on whether a model should have it at
    hand where it is not shown all tools; the owner decides. ``blocks`` are those that may have it, all when none is
    named. ``aliases`` are further names by which models call it, as the catalogue found them: rules may deny it by
    those.
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
        """The identity that tells the tool from all others, whatever it is called here: its source and its name
        there.
        """
        return f"{self.source}:{self.own_name or self.name}"

    @property
    def origin(self) -> str:
        """Whose the tool is, in words for a person, where it does not come with an installed plugin; else ""."""
        name = self.source.partition(":")[2]
        if self.mcp:
            return f"the MCP server {name}"
        if self.is_remote:
            return f"the host {name}"
        return f"the program {name}" if self.source.startswith(PROGRAM_SOURCE) else ""

    @property
    def definition(self) -> str:
        """A key of what its source says that it is: description, parameters and effect.

        Empty for a tool of an installed plugin, whose code is pinned and is looked at when it is installed. The others
        can say something else at any time, so what a person allowed is bound to this key."""
        if not self.origin:
            return ""
        said = [self.description, self.parameters, self.effect, self.paths, self.memory_paths, self.urls]
        return key_of("definition", msgspec.json.encode(said, order="sorted").decode())

    @property
    def mcp(self) -> bool:
        """Report whether an MCP server runs it."""
        return self.source.startswith(MCP_SOURCE)

    @property
    def is_remote(self) -> bool:
        """Report whether it runs on another host."""
        return self.source.startswith(REMOTE_SOURCE)

    @property
    def repeatable(self) -> bool:
        """Report whether running the call a second time does no harm."""
        return self.effect == "read" or self.idempotent


class ListTools(Payload, frozen=True, kw_only=True, tag="tools.list.v1"):
    """Ask for a block's catalogue; when ``version`` is still current the reply holds no tools."""

    block: str
    version: str | None = None


class ToolCatalogue(Payload, frozen=True, kw_only=True, tag="tools.catalogue.v1"):
    """The tools of a block. ``tools`` is None when the asker's version is current.

    ``own`` are the platform's: a model is given one when there is a use for it. ``restricted`` names the tools that the
    block's policies or the host do not let it use, whatever the arguments: a model is not shown them. An earlier
    version has neither."""

    version: str
    tools: tuple[ToolSpec, ...] | None = None
    own: tuple[ToolSpec, ...] = ()
    restricted: tuple[str, ...] = ()


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer to a question of a call; ``question`` is its hash. ``text`` is None when nobody answers it:
    ``by`` says who would not, or ``deadline``.
    """

    question: str
    by: str
    text: str | None = None


class CallTool(Payload, frozen=True, kw_only=True, tag="tools.call.v1"):
    """Run a tool. ``call`` is the key of the effect ledger: the same one never has its effect twice.

    ``arguments`` may also be text that is not JSON, as a model sent it; the worker repairs or refuses it.
    ``approved`` carries the hash of the approved call when a person has allowed it, ``answers`` what people said to the
    questions that the call had. ``forked_from`` is the conversation that this one branches off from, for as long as
    memory has not heard of it. ``again``: it may have been asked for before, so that another worker may be at it or the
    ledger have its outcome; a read is run anew for who does not say so. ``permissions`` are the scopes that the asker
    was given (``tools:*``, ``memory:/path/*``): the call may do what they and the block's own permissions both allow.
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
    again: bool = False
    permissions: tuple[str, ...] = ("*",)

    @property
    def has_decisions(self) -> bool:
        """Report whether it carries what people decided. Only the monitor may say that, and on a subject of its own."""
        return self.approved is not None or bool(self.answers)


class CheckLiveness(Payload, frozen=True, kw_only=True, tag="tools.check-alive.v1"):
    """Ask one tools worker whether it is there, and at work on a ``call``."""

    call: str = ""


class LivenessReply(Payload, frozen=True, kw_only=True, tag="tools.alive.v1"):
    """It is. ``at_work`` is whether an outcome of that call is still to come from it; an earlier version says so
    always."""

    at_work: bool = True


class EndTasks(Payload, frozen=True, kw_only=True, tag="tools.end-tasks.v1"):
    """Have one tools worker end the background tasks of a block in its home; with ``forget`` their records go too."""

    block: str
    forget: bool = False


class TasksEnded(Payload, frozen=True, kw_only=True, tag="tools.tasks-ended.v1"):
    """The tasks that were ended, and those that have not ended in the time they are given."""

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


class CancelCall(Payload, frozen=True, kw_only=True, tag="tools.cancel.v1"):
    """Stop a call. The worker that runs it answers its caller with an outcome; where it does not run, nothing happens.

    It is not stored, so whoever wants a call stopped repeats it until the outcome comes.
    """

    reason: str = ""


class ToolProgress(Payload, frozen=True, kw_only=True, tag="tools.progress.v1"):
    """The call lives. Sent every second, so that silence means the worker is gone."""

    call: str
    note: str = ""


class StoredResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result that is too long for the conversation; ``read_result`` reads it by its ``id``. Without one it could not
    be kept. ``characters`` is its length, ``kept`` how many of them are kept, from the first one on."""

    id: str
    characters: int
    kept: int

    @property
    def notice(self) -> str:
        """A sentence that tells how a person reads the result."""
        if not self.id:
            return f"Of its {self.characters} characters the middle could not be kept."
        return f"All that is kept of its {self.characters} characters: trunkline results show {self.id}"


class ToolOutcome(Payload, frozen=True, kw_only=True, tag="tools.outcome.v1"):
    """The outcome of a call.

    ``ok``: ``output`` is the result. ``error``: ``output`` tells the model what failed. ``unknown``: a call with an
    effect was cut off, because its worker died, its time was over or somebody stopped it; ``output`` tells the model to
    verify. ``approval``: a person must decide or answer first, and ``call_hash``, ``question`` and ``detail`` say what.
    ``repeated`` is true for a result out of the ledger. ``effect`` is the tool's, as far as it was found; an earlier
    version's outcome has none. ``stored``: ``output`` is the beginning and the end of a longer result. ``loads`` names
    tools that the model is to be given from now on. ``within`` is for how many seconds an answer is of use, where the
    call sets a bound. ``error_kind`` is what ``kind`` goes by. ``derived``: ``output`` repeats what memory holds; unset
    where the tool is not known, and by an earlier version.
    """

    call: str
    status: Literal["ok", "error", "unknown", "approval"]
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

    @property
    def kind(self) -> ToolErrorKind | None:
        """The kind of the error, one of ``TOOL_ERROR_KINDS``; None without an error."""
        if self.status == "unknown":
            return "outcome_unknown"
        if self.status != "error":
            return None
        return error_kind_named(self.error_kind) if isinstance(self.error_kind, str) else "failed"

    @property
    def is_waiting(self) -> bool:
        """Report whether the call has begun and is held in its middle, until it has its answer."""
        return self.status == "approval" and not isinstance(self.within, msgspec.UnsetType)


ToolReply = ToolProgress | ToolOutcome


class EffectStarted(Payload, frozen=True, kw_only=True, tag="effect.started.v1"):
    """Ledger: a worker is about to run the call."""

    call: str
    tool: str
    worker: str
    effect: Effect
    turn: str


class EffectFinished(Payload, frozen=True, kw_only=True, tag="effect.finished.v1"):
    """Ledger: the call ran to its end; a repeat is answered with this outcome."""

    call: str
    outcome: ToolOutcome


class EffectAsked(Payload, frozen=True, kw_only=True, tag="effect.asked.v1"):
    """Ledger: the call has not begun, and a person is asked about it. It begins only if that person approves."""

    call: str
    outcome: ToolOutcome


EffectRecord = EffectStarted | EffectAsked | EffectFinished
