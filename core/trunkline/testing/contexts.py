"""Tool contexts for tests that call a tool directly."""

from pathlib import Path

from trunkline.contracts.documents.reader import Documents, NoDocuments
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.transport import NoTransport
from trunkline.contracts.models.abilities_client import ModelAbilities, NoAbilities
from trunkline.contracts.models.completer import Completer, NoModel
from trunkline.contracts.sandbox.sandbox import NoSandbox, Sandbox
from trunkline.contracts.tools.outgoing_files import NoOutgoingFiles, OutgoingFiles
from trunkline.contracts.tools.person import Nobody, Person
from trunkline.contracts.tools.tool import ToolContext


def tool_context(
    workspace: Path,
    *,
    memory: Memory | None = None,
    model: Completer | None = None,
    abilities: ModelAbilities | None = None,
    documents: Documents | None = None,
    sandbox: Sandbox | None = None,
    person: Person | None = None,
    outgoing: OutgoingFiles | None = None,
    block: str = "main",
) -> ToolContext:
    """Return a context whose tool works in ``workspace``. By default ``report`` discards progress notes."""
    return ToolContext(
        block=block,
        conversation="conv_test",
        turn="turn_test",
        call="call_test",
        actor="owner",
        workspace=workspace,
        memory=Memory(NoTransport(), block) if memory is None else memory,
        model=NoModel() if model is None else model,
        abilities=NoAbilities() if abilities is None else abilities,
        documents=NoDocuments() if documents is None else documents,
        sandbox=NoSandbox() if sandbox is None else sandbox,
        person=Nobody() if person is None else person,
        outgoing=NoOutgoingFiles() if outgoing is None else outgoing,
    )
