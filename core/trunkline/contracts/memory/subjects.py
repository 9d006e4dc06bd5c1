"""The memory worker's endpoints, and the fact that memory changed."""

from typing import TypeVar

from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    FindConversation,
    ListConversations,
    LoadConversation,
)
from trunkline.contracts.documents.messages import (
    ClearCollected,
    CollectDocument,
    CollectedDocuments,
    CollectionCleared,
    Excerpts,
    ListCollected,
    SearchCollected,
)
from trunkline.contracts.memory.chunks import (
    ChunkCounts,
    ChunkFound,
    ChunkPage,
    ChunksLinked,
    ChunksPruned,
    CountChunks,
    DeleteChunk,
    FindLinked,
    ForgetChunk,
    GetChunk,
    LinkChunks,
    ListChunks,
    PruneChunks,
    Recall,
    Recalled,
    Remember,
    Remembered,
    RestoreChunk,
    UpdateChunk,
)
from trunkline.contracts.memory.index import GetIndexStats, IndexProgress, IndexStats, RebuildIndex
from trunkline.contracts.memory.messages import (
    BlameMemory,
    CheckMemory,
    DeleteMemory,
    DiffMemory,
    EditMemory,
    ExportMemory,
    ImportMemory,
    ImportProgress,
    ListMemory,
    MemoryBlame,
    MemoryChanged,
    MemoryChanges,
    MemoryCheckReport,
    MemoryDifference,
    MemoryExport,
    MemoryFile,
    MemoryFiles,
    MemoryHistory,
    MemoryHits,
    MemoryImport,
    MemoryListing,
    MemoryReverted,
    MoveMemory,
    ReadManyMemory,
    ReadMemory,
    RevertMemory,
    SearchMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline.contracts.memory.purge import MemoryPurged, PurgeMemory
from trunkline_bus import (
    Endpoint,
    Subject,
    Topic,
)

Q = TypeVar("Q")
A = TypeVar("A")


def _memory(verb: str, request: type[Q], reply: type[A], doc: str) -> Endpoint[Q, A]:
    subject = Subject(f"trunkline.cmd.memory.{verb}")
    return Endpoint(f"memory.{verb}", subject, request, reply, doc=doc, root=False)


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
MEMORY_BLAME = _memory("blame", BlameMemory, MemoryBlame, "Who wrote each line of a file.")
MEMORY_DIFF = _memory("diff", DiffMemory, MemoryDifference, "What differs between two versions.")
MEMORY_REVERT = _memory(
    "revert", RevertMemory, MemoryReverted, "Take a change back, or go back to a version."
)
MEMORY_CHECK = _memory("examine", CheckMemory, MemoryCheckReport, "Look whether all is whole, and mend it.")
MEMORY_EXPORT = _memory("export", ExportMemory, MemoryExport, "Everything, in one archive.")
MEMORY_IMPORT: Endpoint[ImportMemory, ImportProgress | MemoryImport] = Endpoint(
    "memory.import", Subject("trunkline.cmd.memory.import"), ImportMemory, ImportProgress | MemoryImport,  # type: ignore[arg-type]
    streaming=True, doc="Bring an archive in: how far it is, then what was done.",
)  # fmt: skip
MEMORY_INDEX_STATS = _memory("index-stats", GetIndexStats, IndexStats, "What the index holds.")
MEMORY_REINDEX: Endpoint[RebuildIndex, IndexProgress | IndexStats] = Endpoint(
    "memory.reindex", Subject("trunkline.cmd.memory.reindex"), RebuildIndex, IndexProgress | IndexStats,  # type: ignore[arg-type]
    streaming=True, doc="Make the index anew: how far it is, then what it holds.",
)  # fmt: skip
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

MEMORY_REMEMBER = _memory("remember", Remember, Remembered, "Keep a text as chunks.")
MEMORY_RECALL = _memory("recall", Recall, Recalled, "Chunks that answer a question, without a model.")
MEMORY_CHUNK = _memory("chunk-get", GetChunk, ChunkFound, "One chunk.")
MEMORY_CHUNKS = _memory("chunk-list", ListChunks, ChunkPage, "Chunks by tag, type, conversation or time.")
MEMORY_LINKED = _memory("chunk-linked", FindLinked, ChunksLinked, "What a chunk is linked to.")
MEMORY_LINK = _memory("chunk-link", LinkChunks, MemoryChanged, "Link chunks by hand.")
MEMORY_UPDATE_CHUNK = _memory("chunk-update", UpdateChunk, MemoryChanged, "Change a chunk.")
MEMORY_DELETE_CHUNK = _memory("chunk-delete", DeleteChunk, MemoryChanged, "Archive a chunk.")
MEMORY_RESTORE_CHUNK = _memory("chunk-restore", RestoreChunk, MemoryChanged, "Bring a chunk back.")
MEMORY_FORGET = _memory("chunk-forget", ForgetChunk, MemoryChanged, "Take a chunk out; history keeps it.")
MEMORY_PRUNE = _memory("chunk-prune", PruneChunks, ChunksPruned, "Archive what is old or has expired.")
MEMORY_CHUNK_STATS = _memory("chunk-stats", CountChunks, ChunkCounts, "How many chunks there are.")
MEMORY_PURGE = _memory(
    "purge",
    PurgeMemory,
    MemoryPurged,
    "Take something out of memory and history for good. The owner's alone.",
)
MEMORY_COLLECTION_ADD = _memory(
    "collect", CollectDocument, CollectedDocuments, "Keep a document with a conversation."
)
MEMORY_COLLECTION_LIST = _memory(
    "collected", ListCollected, CollectedDocuments, "A conversation's documents."
)
MEMORY_COLLECTION_SEARCH = _memory(
    "collected-search", SearchCollected, Excerpts, "Search a conversation's documents."
)
MEMORY_COLLECTION_CLEAR = _memory(
    "collected-clear", ClearCollected, CollectionCleared, "Throw a conversation's documents away."
)

MEMORY_CHANGED: Topic[MemoryChanged] = Topic(
    name="memory changes", subject=Subject("trunkline.evt.memory.{part}.changed"), payload=MemoryChanged,
    doc="A commit was made, of ``conversations`` alone or of other ``files`` too.",
)  # fmt: skip
