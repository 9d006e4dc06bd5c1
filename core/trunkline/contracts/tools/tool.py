"""A tool, what it is given, and what may stand around a call."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from trunkline._util.paths import WORKSPACE_ONLY, Folder, PathScope, is_absolute_path, open_beneath
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.documents.reader import Documents, NoDocuments
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.models.completer import Completer, NoModel
from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.contracts.sandbox.sandbox import NoSandbox, Sandbox
from trunkline.contracts.tools.messages import ToolOutcome, ToolSchema, ToolSpec
from trunkline.contracts.tools.person import Nobody, Person
from trunkline.contracts.tools.planning import NoPlanning, Planning
from trunkline.errors import ToolError

Stage = Literal["schema", "policy", "path", "gate", "execute"]
"""A step of the dispatch of a call, around which a middleware runs."""

STAGES: tuple[Stage, ...] = ("schema", "policy", "path", "gate", "execute")
"""The order of dispatch (design section 7). Middleware of one stage runs in the order of its plugins."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The knowledge and the clients that a running tool is given.

    ``workspace`` is the block's folder for files, and ``reach`` how far absolute paths lead: open both with
    ``files()``, never by joining strings. ``memory`` is the block's memory, ``model`` asks a model, ``documents`` reads
    and searches documents, ``sandbox`` runs programs: the backend chosen here, or a ToolError that says what to
    install. ``person`` is who can be asked something, ``planning`` holds the agent to reading and planning. ``report``
    shows a line of progress. ``load`` has the model given tools of these names from its next step on, for the rest of
    the conversation, if the call succeeds and the block has them; it permits nothing. ``derived`` says that this result
    repeats what memory holds, of a tool that does not always return such. ``permissions`` is what whoever asked was
    given; it only takes away from what the block may do.
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
    documents: Documents = field(default_factory=NoDocuments)
    sandbox: Sandbox = field(default_factory=NoSandbox)
    reach: PathScope = WORKSPACE_ONLY
    person: Person = field(default_factory=Nobody)
    planning: Planning = field(default_factory=NoPlanning)
    load: Callable[[Sequence[str]], None] = field(default=lambda names: None)
    derived: Callable[[], None] = field(default=lambda: None)
    permissions: ActorPermissions = field(default_factory=ActorPermissions)

    def files(self) -> AbstractContextManager[Folder]:
        """The files that the call may open: those of the workspace, and by absolute paths what the block's scope has.

        Raises:
            OSError: the workspace is not there.
        """
        return open_beneath(self.workspace, self.reach)

    def folder(self, path: str) -> str:
        """The path, if it is that of a folder of the workspace, which is all that programs see of files.

        Raises:
            ToolError: it is not.
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
    """The call that is meant: a tool's name, and its arguments as a model would send them."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAlias:
    """Another name by which models call tools, as they learned it elsewhere. No model is shown it.

    ``schema`` is how such a call is put, and ``means`` tells which call it is, from arguments that fit the schema. From
    then on it *is* that call: for permissions, approvals, the ledger and the audit log. ``means`` raises ToolError.
    """

    schema: ToolSchema
    means: Callable[[dict[str, Any]], CanonicalCall]


class Tool(ABC):
    """A tool of the catalogue. ``aliases`` are other names for it, or for it and others of its plugin."""

    spec: ToolSpec
    aliases: tuple[ToolAlias, ...] = ()

    @abstractmethod
    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run with arguments that fit the schema, and return the text for the model.

        Cancelled at the spec's timeout or when the turn is cancelled.

        Raises:
            ToolError: with a text the model can act on. Any other exception becomes a fixed sentence.
        """

    async def preview(self, context: ToolContext, arguments: dict[str, Any]) -> ApprovalDetail | None:
        """Describe the call for the person who is asked about it; None: the arguments are shown.

        It changes nothing, and is as quick as a person's patience. Make it with ``trunkline.diff_preview`` and the
        like. An exception shows the arguments.
        """
        return None


class SourcedTool(Tool):
    """A tool as one of a source: the same, called otherwise or said to come from elsewhere."""

    def __init__(self, tool: Tool, *, source: str | None = None, name: str | None = None) -> None:
        self._tool = tool
        spec = tool.spec
        own_name = spec.own_name or (spec.name if name else "")
        self.spec = msgspec.structs.replace(
            spec, source=source or spec.source, name=name or spec.name, own_name=own_name
        )

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the tool."""
        return await self._tool(context, arguments)

    async def preview(self, context: ToolContext, arguments: dict[str, Any]) -> ApprovalDetail | None:
        """Return the tool's own preview."""
        return await self._tool.preview(context, arguments)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The context that a tool source works with.

    ``publish`` puts these tools into the catalogue in the place of those that the source published before. ``sandbox``
    is where it may run programs.
    """

    publish: Callable[[Sequence[Tool]], None]
    sandbox: Sandbox


class ToolSource(ABC):
    """Tools that come and go while the tools worker runs, such as those of servers that it is connected to.

    Each tool says in its spec's ``source`` whose it is: ``name``, a colon and the rest, as in ``mcp:brave``. Its short
    name counts as long as no other tool has it; otherwise both are called ``brave__search`` and the like.
    """

    name: str

    @abstractmethod
    async def run(self, context: SourceContext) -> None:
        """Publish tools for as long as the worker runs; cancelled when it ends.

        A source that raises or returns has its tools taken out of the catalogue; one that raised is run again.
        """


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A call on its way through the stages. ``approved`` is the call hash that a person has allowed, if any."""

    spec: ToolSpec
    arguments: dict[str, Any]
    context: ToolContext
    call_hash: str
    approved: str | None = None


Proceed = Callable[[ToolInvocation], Awaitable[ToolOutcome]]
"""The rest of the way to the tool: what a middleware calls with the call, for its outcome."""


class ToolMiddleware(Protocol):
    """Stands around every tool call, at one stage of the dispatch."""

    stage: Stage

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Return ``await proceed(invocation)``, or refuse.

        Raises:
            ToolError: to refuse with a text for the model. Any other exception refuses too: guards fail closed.
        """
        ...
