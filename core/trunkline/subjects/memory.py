"""The memory worker's endpoints, and the fact that memory changed."""

from typing import TypeVar

from trunkline.messages.conversation import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    FindConversation,
    ListConversations,
    LoadConversation,
)
from trunkline.messages.memory import (
    DeleteMemory,
    EditMemory,
    ExportMemory,
    ListMemory,
    MemoryChanged,
    MemoryChanges,
    MemoryExport,
    MemoryFile,
    MemoryFiles,
    MemoryHistory,
    MemoryHits,
    MemoryListing,
    MoveMemory,
    ReadManyMemory,
    ReadMemory,
    SearchMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline_bus import (
    Endpoint,
    Subject,
    Topic,
)

Q = TypeVar("Q")
A = TypeVar("A")


def _memory(verb: str, request: type[Q], reply: type[A], doc: str) -> Endpoint[Q, A]:
    return Endpoint(f"memory.{verb}", Subject(f"trunkline.cmd.memory.{verb}"), request, reply, doc=doc)


MEMORY_READ = _memory("read", ReadMemory, MemoryFile, "A file's text.")
MEMORY_READ_MANY = _memory("read-many", ReadManyMemory, MemoryFiles, "Several small files.")
MEMORY_WRITE = _memory("write", WriteMemory, MemoryChanged, "Write a file.")
MEMORY_WRITE_MANY = _memory("write-many", WriteManyMemory, MemoryChanged, "Write files in one commit.")
MEMORY_EDIT = _memory("edit", EditMemory, MemoryChanged, "Replace text in a file.")
MEMORY_DELETE = _memory("delete", DeleteMemory, MemoryChanged, "Delete a file or folder.")
MEMORY_MOVE = _memory("move", MoveMemory, MemoryChanged, "Move a file or folder.")
MEMORY_SEARCH = _memory("search", SearchMemory, MemoryHits, "Search text or names.")
MEMORY_LIST = _memory("list", ListMemory, MemoryListing, "Names under a folder.")
MEMORY_HISTORY = _memory("history", MemoryHistory, MemoryChanges, "Changes of a path, with previous states.")
MEMORY_EXPORT = _memory("export", ExportMemory, MemoryExport, "Everything, in one archive.")
MEMORY_APPEND_CONVERSATION = _memory(
    "conversation-append", AppendConversation, ConversationAppended, "Append to a conversation."
)
MEMORY_LOAD_CONVERSATION = _memory(
    "conversation-load", LoadConversation, ConversationSlice, "Read a conversation."
)
MEMORY_LIST_CONVERSATIONS = _memory(
    "conversation-list", ListConversations, ConversationPage, "A page of conversations."
)
MEMORY_FIND_CONVERSATION = _memory(
    "conversation-find", FindConversation, ConversationFound, "Which block holds a conversation."
)

MEMORY_CHANGED: Topic[MemoryChanged] = Topic(
    name="memory changes", subject=Subject("trunkline.evt.memory.{part}.changed"), payload=MemoryChanged,
    doc="A commit was made, of ``conversations`` alone or of other ``files`` too.",
)  # fmt: skip
