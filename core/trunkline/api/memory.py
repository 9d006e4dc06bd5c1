"""Memory: the requests that the memory worker answers, their results, and purgers of derived data."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.actors import OWNER as OWNER
    from trunkline.contracts.blocks.paths import BLOCK_FILE as BLOCK_FILE
    from trunkline.contracts.blocks.paths import BLOCK_NAME as BLOCK_NAME
    from trunkline.contracts.blocks.paths import BLOCK_NAME_RULE as BLOCK_NAME_RULE
    from trunkline.contracts.blocks.paths import BLOCKS_FOLDER as BLOCKS_FOLDER
    from trunkline.contracts.blocks.paths import block_file_path as block_file_path
    from trunkline.contracts.blocks.paths import block_folder as block_folder
    from trunkline.contracts.blocks.paths import is_block_name as is_block_name
    from trunkline.contracts.conversations.messages import AppendConversation as AppendConversation
    from trunkline.contracts.conversations.messages import ConversationPage as ConversationPage
    from trunkline.contracts.conversations.messages import ConversationSlice as ConversationSlice
    from trunkline.contracts.conversations.messages import LoadConversation as LoadConversation
    from trunkline.contracts.conversations.messages import utc_now as utc_now
    from trunkline.contracts.memory.bus_transport import read_files as read_files
    from trunkline.contracts.memory.chunk import DEFAULT_CONFIDENCE as DEFAULT_CONFIDENCE
    from trunkline.contracts.memory.chunk import Chunk as Chunk
    from trunkline.contracts.memory.chunk import ChunkMetadata as ChunkMetadata
    from trunkline.contracts.memory.chunks import FindLinked as FindLinked
    from trunkline.contracts.memory.chunks import ForgetChunk as ForgetChunk
    from trunkline.contracts.memory.chunks import LinkChunks as LinkChunks
    from trunkline.contracts.memory.chunks import LinkedChunk as LinkedChunk
    from trunkline.contracts.memory.chunks import ListChunks as ListChunks
    from trunkline.contracts.memory.chunks import Recall as Recall
    from trunkline.contracts.memory.chunks import RecalledChunk as RecalledChunk
    from trunkline.contracts.memory.chunks import RecallResult as RecallResult
    from trunkline.contracts.memory.chunks import Remember as Remember
    from trunkline.contracts.memory.chunks import RememberResult as RememberResult
    from trunkline.contracts.memory.embedder import Embedder as Embedder
    from trunkline.contracts.memory.embedder import Vector as Vector
    from trunkline.contracts.memory.files import ListMemory as ListMemory
    from trunkline.contracts.memory.files import ReadManyMemory as ReadManyMemory
    from trunkline.contracts.memory.files import WriteManyMemory as WriteManyMemory
    from trunkline.contracts.memory.history import MemoryChange as MemoryChange
    from trunkline.contracts.memory.initial_files import is_untouched as is_untouched
    from trunkline.contracts.memory.operation import CALL_SECONDS as CALL_SECONDS
    from trunkline.contracts.memory.purge import RemainingCopy as RemainingCopy
    from trunkline.contracts.memory.purger import Purge as Purge
    from trunkline.contracts.memory.purger import Purger as Purger
    from trunkline.contracts.memory.search import HitExplanation as HitExplanation
    from trunkline.contracts.memory.search import MemoryHits as MemoryHits
    from trunkline.contracts.memory.search import SearchMemory as SearchMemory
    from trunkline.contracts.memory.subjects import MEMORY_CHUNKS as MEMORY_CHUNKS
    from trunkline.contracts.memory.subjects import MEMORY_FORGET as MEMORY_FORGET
    from trunkline.contracts.memory.subjects import MEMORY_LINK as MEMORY_LINK
    from trunkline.contracts.memory.subjects import MEMORY_LINKED as MEMORY_LINKED
    from trunkline.contracts.memory.subjects import MEMORY_LIST as MEMORY_LIST
    from trunkline.contracts.memory.subjects import MEMORY_READ_MANY as MEMORY_READ_MANY
    from trunkline.contracts.memory.subjects import MEMORY_RECALL as MEMORY_RECALL
    from trunkline.contracts.memory.subjects import MEMORY_REMEMBER as MEMORY_REMEMBER
    from trunkline.contracts.memory.subjects import MEMORY_SEARCH as MEMORY_SEARCH
    from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY as MEMORY_WRITE_MANY
    from trunkline.contracts.memory.text_edit import read_text as read_text
    from trunkline.contracts.memory.text_edit import update_text as update_text
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
