"""The services that a tool reaches during a call, besides its files and its sandbox: memory, a model,
documents and people."""

from collections.abc import Sequence
from typing import Protocol

from trunkline.contracts.agents.agents import Agents, NoAgents
from trunkline.contracts.documents.reader import Documents, NoDocuments
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.importer import Importer
from trunkline.contracts.memory.learned_visibility import recipient_of
from trunkline.contracts.memory.transport import NoTransport
from trunkline.contracts.models.abilities_client import BlockAbilities, ModelAbilities, NoAbilities
from trunkline.contracts.models.client import BlockCompleter
from trunkline.contracts.models.completer import Completer, NoModel
from trunkline.contracts.tools.administration import Administration, NoAdministration
from trunkline.contracts.tools.messages import CallTool, ToolSpec
from trunkline.contracts.tools.outgoing_files import NoOutgoingFiles, OutgoingFiles
from trunkline.contracts.tools.person import Nobody, Person
from trunkline.contracts.tools.planning import NoPlanning, Planning
from trunkline.documents.reader_pool import ReaderPool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.documents.tool_documents import BlockDocuments, OpenFiles
from trunkline.plugins import Plugins
from trunkline.policy import ActorPermissions
from trunkline.runtime.guard_cache import GuardCache
from trunkline.runtime.owner_policies import OwnerPolicies
from trunkline.workers.tools.administration import CallAdministration
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.call_agents import CallAgents
from trunkline.workers.tools.call_person import CallPerson
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline.workers.tools.delegation import is_delegated
from trunkline.workers.tools.ledger import scope_of
from trunkline.workers.tools.memory_access import MemoryAccess
from trunkline.workers.tools.outgoing_files import CallOutgoingFiles
from trunkline.workers.tools.planning import CallPlanning
from trunkline_bus import Bus


class CallServices(Protocol):
    """The services of calls. Each object is made for one call and permits what that call may do."""

    def memory(self, call: CallTool) -> Memory:
        """Return the memory of the call's block."""
        ...

    def model(self, call: CallTool) -> Completer:
        """Return the completer for the call's questions to a model."""
        ...

    def abilities(self, call: CallTool) -> ModelAbilities:
        """Return the client for vectors, transcripts and speech."""
        ...

    def documents(self, call: CallTool, files: OpenFiles, memory: Memory) -> Documents:
        """Return the object that reads and searches documents."""
        ...

    def person(self, run: ActiveCall, spec: ToolSpec) -> Person:
        """Return the object that asks the person or sends them a message."""
        ...

    def planning(self, call: CallTool) -> Planning:
        """Return the object that starts and ends plan mode."""
        ...

    def outgoing(self, run: ActiveCall) -> OutgoingFiles:
        """Return the object that gives files to the person."""
        ...

    def agents(self, run: ActiveCall, spec: ToolSpec) -> Agents:
        """Return the object that gives tasks to agents."""
        ...

    def administration(self, call: CallTool) -> Administration:
        """Return the object that knows who may enter and what they may do."""
        ...


class PlatformServices:
    """Calls the platform's other workers in the name of the call."""

    def __init__(
        self,
        bus: Bus,
        plugins: Plugins,
        authorizer: CallAuthorizer,
        owner_policies: GuardCache[OwnerPolicies],
        readers: ReaderRegistry,
        reader_pool: ReaderPool,
        answer_wait: float,
        channels: Sequence[str],
    ) -> None:
        self._bus = bus
        self._plugins = plugins
        self._authorizer = authorizer
        self._owner_policies = owner_policies
        self._readers = readers
        self._reader_pool = reader_pool
        self._answer_wait = answer_wait
        self._channels = channels

    def memory(self, call: CallTool) -> Memory:
        """Return the block's memory, as far as the policies allow the call. Items learned of another person,
        or in another block, are excluded."""
        return block_memory(
            self._bus,
            call.block,
            call.actor,
            scope_of(call),
            check_access=MemoryAccess(self._authorizer, call),
            recipient=recipient_of(call.block, call.actor),
            importers=self._importers,
        )

    def _importers(self) -> list[Importer]:
        return [owned.item for owned in self._plugins.importers()]

    def model(self, call: CallTool) -> Completer:
        """See ``CallServices.model``."""
        return BlockCompleter(
            self._bus,
            call.block,
            actor=call.actor,
            conversation=call.conversation,
            turn=call.turn,
            budget_turn=call.budget_turn,
        )

    def abilities(self, call: CallTool) -> ModelAbilities:
        """See ``CallServices.abilities``."""
        return BlockAbilities(
            self._bus, call.block, actor=call.actor, conversation=call.conversation, turn=call.turn
        )

    def documents(self, call: CallTool, files: OpenFiles, memory: Memory) -> Documents:
        """Return documents. They are part of memory, so a request that may not read all of memory gets
        none."""
        if not ActorPermissions(call.permissions).allows_memory("/", whole=True):
            return NoDocuments()
        readers, pool = self._readers, self._reader_pool
        return BlockDocuments(self._bus, call.block, call.conversation, files, readers, pool, memory)

    def person(self, run: ActiveCall, spec: ToolSpec) -> Person:
        """See ``CallServices.person``."""
        return CallPerson(self._bus, run, spec, self._answer_wait, self._channels)

    def planning(self, call: CallTool) -> Planning:
        """See ``CallServices.planning``."""
        return CallPlanning(self._bus, self._owner_policies, call)

    def outgoing(self, run: ActiveCall) -> OutgoingFiles:
        """See ``CallServices.outgoing``. An outside agent has no person to give a file to."""
        return NoOutgoingFiles() if is_delegated(run.call) else CallOutgoingFiles(self._bus, run)

    def agents(self, run: ActiveCall, spec: ToolSpec) -> Agents:
        """See ``CallServices.agents``. An outside agent has no turn that another agent could work for."""
        return NoAgents() if is_delegated(run.call) else CallAgents(self._bus, run, spec)

    def administration(self, call: CallTool) -> Administration:
        """See ``CallServices.administration``."""
        return CallAdministration(self._bus, self._authorizer, call)


class RemoteServices:
    """No services: a tool on a remote reaches nothing of the hub (ADR 0009)."""

    def memory(self, call: CallTool) -> Memory:
        """Return a memory that refuses every operation."""
        return Memory(NoTransport(), call.block)

    def model(self, call: CallTool) -> Completer:
        """Return a completer that refuses every question."""
        return NoModel()

    def abilities(self, call: CallTool) -> ModelAbilities:
        """Return a client that refuses every request."""
        return NoAbilities()

    def documents(self, call: CallTool, files: OpenFiles, memory: Memory) -> Documents:
        """Return documents that refuse every operation."""
        return NoDocuments()

    def person(self, run: ActiveCall, spec: ToolSpec) -> Person:
        """Return an object that refuses to ask a person. The hub would treat a question as the refusal of a call that
        did not run.
        """
        return Nobody()

    def planning(self, call: CallTool) -> Planning:
        """Return a planning that refuses every operation."""
        return NoPlanning()

    def outgoing(self, run: ActiveCall) -> OutgoingFiles:
        """Return an object that refuses every file."""
        return NoOutgoingFiles()

    def agents(self, run: ActiveCall, spec: ToolSpec) -> Agents:
        """Return agents that take no task."""
        return NoAgents()

    def administration(self, call: CallTool) -> Administration:
        """Return an administration that refuses every operation."""
        return NoAdministration()
