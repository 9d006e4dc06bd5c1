"""A tool, the context of its calls, tool sources, and middleware around calls."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from trunkline._util.paths import WORKSPACE_ONLY, Folder, PathScope, is_absolute_path, open_beneath
from trunkline.contracts.agents.agents import Agents, NoAgents
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.documents.reader import Documents, NoDocuments
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.models.abilities_client import ModelAbilities, NoAbilities
from trunkline.contracts.models.completer import Completer, NoModel
from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.contracts.sandbox.sandbox import NoSandbox, Sandbox
from trunkline.contracts.tools.administration import Administration, NoAdministration
from trunkline.contracts.tools.messages import ToolOutcome, ToolSchema, ToolSpec
from trunkline.contracts.tools.outgoing_files import NoOutgoingFiles, OutgoingFiles
from trunkline.contracts.tools.person import Nobody, Person
from trunkline.contracts.tools.planning import NoPlanning, Planning
from trunkline.errors import ToolError

Stage = Literal["schema", "policy", "path", "gate", "execute"]
"""A step of a call's dispatch at which middleware can run."""

STAGES: tuple[Stage, ...] = ("schema", "policy", "path", "gate", "execute")
"""The stages in the order of dispatch (design section 7). Middleware of one stage runs in the order of its plugins."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The data and the clients that a running tool receives.

    ``workspace`` is the block's folder for files, and ``reach`` limits absolute paths. Open files through ``files()``;
    never join path strings. ``memory`` is the block's memory. ``model`` calls a model; ``abilities`` obtains vectors,
    transcripts and speech. ``documents`` reads and searches documents. ``sandbox`` runs programs with the configured
    backend; without a backend it raises a ToolError that says what to install. ``person`` asks a person. ``planning``
    starts and ends plan mode. ``agents`` gives tasks to agents. ``outgoing`` gives files to the person.
    ``administration`` knows who may enter and what they may do. ``report`` shows a line of progress. ``resumed`` is
    true if the call is run again after an interruption. ``load`` makes the named tools available to the model from its
    next step on, for the rest of the conversation, if the call succeeds and the block has those tools; it grants no
    permission. ``derived`` declares that this result repeats what memory holds, for a tool whose results do so only
    sometimes. ``permissions`` are the caller's permissions; they only restrict what the block may do.

    Guarantees: every client acts for this block and this caller, within their permissions.

    Not guaranteed: that a client works after the call has ended.
    """

    block: str
    conversation: str
    turn: str
    call: str
    actor: str
    workspace: Path
    memory: Memory
    report: Callable[[str], None] = field(default=lambda note: None)
    resumed: bool = False
    model: Completer = field(default_factory=NoModel)
    abilities: ModelAbilities = field(default_factory=NoAbilities)
    documents: Documents = field(default_factory=NoDocuments)
    sandbox: Sandbox = field(default_factory=NoSandbox)
    reach: PathScope = WORKSPACE_ONLY
    person: Person = field(default_factory=Nobody)
    planning: Planning = field(default_factory=NoPlanning)
    administration: Administration = field(default_factory=NoAdministration)
    load: Callable[[Sequence[str]], None] = field(default=lambda names: None)
    derived: Callable[[], None] = field(default=lambda: None)
    permissions: ActorPermissions = field(default_factory=ActorPermissions)
    outgoing: OutgoingFiles = field(default_factory=NoOutgoingFiles)
    agents: Agents = field(default_factory=NoAgents)

    def files(self) -> AbstractContextManager[Folder]:
        """Open the files that the call may use: those of the workspace, and by absolute paths those of the block's
        scope. Use the result with ``with``.

        Raises:
            OSError: the workspace does not exist.
        """
        return open_beneath(self.workspace, self.reach)

    def folder(self, path: str) -> str:
        """Return ``path`` if it is a folder of the workspace. Programs see no other files.

        Raises:
            ToolError: ``not_found`` or ``invalid_arguments``: it is not such a folder.
            OSError: the workspace does not exist.
        """
        if is_absolute_path(path):
            raise ToolError(
                f"{path!r} is not below the workspace, which is all that a program can see.",
                kind="invalid_arguments",
            )
        try:
            with self.files() as files:
                kind = files.stat(path).kind
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ToolError(f"There is no folder {path!r} in the workspace.", kind="not_found") from error
        if kind != "folder":
            raise ToolError(f"{path!r} is not a folder.", kind="invalid_arguments")
        return path


@dataclass(frozen=True, slots=True)
class CanonicalCall:
    """The call that an alias stands for: the tool's name, and its arguments as a model would send them."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAlias:
    """Another name by which models call a tool, because they learned it elsewhere. The name is not sent to models.

    ``schema`` describes the arguments of such a call. ``to_canonical`` converts arguments that fit the schema to the
    canonical call; it raises ToolError if it cannot. From then on permissions, approvals, the ledger and the audit
    log treat the call as the canonical call.
    """

    schema: ToolSchema
    to_canonical: Callable[[dict[str, Any]], CanonicalCall]


class Tool(ABC):
    """A tool of the catalogue. ``aliases`` are other names for this tool, or for it and other tools of its plugin.

    Guarantees: the arguments fit the spec's schema. Policies, guards and approvals permit the call before the tool
    runs. Calls may run concurrently, in one worker and in several.

    Not guaranteed: that a repeatable call runs once. A call is repeatable if its effect is ``read`` or the tool is
    idempotent; after a crash of the worker it runs again, with ``context.resumed``. Any other call never runs again:
    after a crash its outcome is unknown.
    """

    spec: ToolSpec
    aliases: tuple[ToolAlias, ...] = ()

    @abstractmethod
    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run with arguments that fit the schema, and return the text for the model.

        The call is cancelled at the spec's timeout or when the turn is cancelled.

        Raises:
            ToolError: with a text on which the model can act. For any other exception the model gets a fixed sentence
                with an id, and the log has the exception under this id.
        """

    async def preview(self, context: ToolContext, arguments: dict[str, Any]) -> ApprovalDetail | None:
        """Describe the call for the person who is asked about it. None shows the arguments.

        The method must change nothing and return quickly, because a person waits. Build the result with
        ``trunkline.diff_preview`` and similar functions.

        Raises:
            Exception: there is no preview. The person is shown the arguments.
        """
        return None


class SourcedTool(Tool):
    """A tool under another name or source. Calls go to the wrapped tool."""

    def __init__(self, tool: Tool, *, source: str | None = None, name: str | None = None) -> None:
        self._tool = tool
        spec = tool.spec
        own_name = spec.own_name or (spec.name if name else "")
        self.spec = msgspec.structs.replace(
            spec, source=source or spec.source, name=name or spec.name, own_name=own_name
        )

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the wrapped tool. Raises what the wrapped tool raises."""
        return await self._tool(context, arguments)

    async def preview(self, context: ToolContext, arguments: dict[str, Any]) -> ApprovalDetail | None:
        """Return the preview of the wrapped tool. Raises what the wrapped tool raises."""
        return await self._tool.preview(context, arguments)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The clients that a tool source receives.

    ``publish`` replaces the tools that the source published before. ``sandbox`` runs programs.
    """

    publish: Callable[[Sequence[Tool]], None]
    sandbox: Sandbox


class ToolSource(ABC):
    """Tools that appear and disappear while the tools worker runs, such as those of connected servers.

    Each tool's spec names its ``source``: the source's ``name``, a colon and the rest, as in ``mcp:brave``. The tool
    keeps its short name while no other tool has that name; otherwise both are renamed to ``brave__search`` and the
    like.

    Guarantees: ``run`` runs once at a time. A published list replaces the previous one at once.

    Not guaranteed: that every published tool is used. Tools of another source, and tools beyond the first 2000, are
    left out.
    """

    name: str

    @abstractmethod
    async def run(self, context: SourceContext) -> None:
        """Publish tools while the worker runs. The worker cancels this method when it ends. If the method returns, the
        source's tools are removed from the catalogue.

        Raises:
            Exception: the source failed. The worker logs the exception, removes the source's tools from the catalogue,
                and runs this method again after 1 to 60 seconds.
        """

    async def settle(self) -> None:  # noqa: B027 - most sources have nothing to wait for
        """Return as soon as the first tools are published, or it is known that none are to come.

        In the first seconds of a worker, requests for tools wait for this, so that the first turn has the tools of
        servers that are being connected. By default there is nothing to wait for. Raises nothing.
        """


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A call during dispatch. ``approved`` is the hash of the call that a person approved, if any."""

    spec: ToolSpec
    arguments: dict[str, Any]
    context: ToolContext
    call_hash: str
    approved: str | None = None


Proceed = Callable[[ToolInvocation], Awaitable[ToolOutcome]]
"""The remaining dispatch, which a middleware calls to get the call's outcome."""


class ToolMiddleware(Protocol):
    """Wraps every tool call, at one stage of the dispatch.

    Guarantees: every call passes the middleware of every stage, within a stage in the order of the plugins. An
    exception before the tool has run refuses the call; an exception after it withholds the result.

    Not guaranteed: that a call runs once the middleware has passed it on, because a later guard may refuse it.
    """

    stage: Stage

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Return ``await proceed(invocation)``, or refuse. Only middleware of the stages ``schema`` and ``policy`` may
        pass on other arguments. Call ``proceed`` at most once: a second run of a call that must not run twice is
        refused.

        Raises:
            ToolError: to refuse with a text for the model. For any other exception the model gets a fixed sentence with
                an id, and the log has the exception under this id.
        """
        ...
