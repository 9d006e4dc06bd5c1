"""Memory stores: the contract, the rules and types that a store applies, and the files of a memory root.

A store that looks up chunks imports ``trunkline.api.chunks`` too, and one that exports and imports archives
``trunkline.api.archive``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.conversations.messages import ForkedFrom as ForkedFrom
    from trunkline.contracts.conversations.messages import Role as Role
    from trunkline.contracts.conversations.paths import conversation_of as conversation_of
    from trunkline.contracts.conversations.paths import (
        conversation_of_attachment as conversation_of_attachment,
    )
    from trunkline.contracts.conversations.paths import conversation_paths as conversation_paths
    from trunkline.contracts.conversations.paths import parse_conversation_id as parse_conversation_id
    from trunkline.contracts.conversations.paths import parse_conversation_path as parse_conversation_path
    from trunkline.contracts.conversations.summary_record import SummaryRecord as SummaryRecord
    from trunkline.contracts.conversations.summary_record import changed_records as changed_records
    from trunkline.contracts.memory.check import MemoryFinding as MemoryFinding
    from trunkline.contracts.memory.files import MemoryChanged as MemoryChanged
    from trunkline.contracts.memory.files import UnreadEntry as UnreadEntry
    from trunkline.contracts.memory.history import BlamedLines as BlamedLines
    from trunkline.contracts.memory.history import DifferenceKind as DifferenceKind
    from trunkline.contracts.memory.history import FileDifference as FileDifference
    from trunkline.contracts.memory.history import MemoryBlame as MemoryBlame
    from trunkline.contracts.memory.history import MemoryDifference as MemoryDifference
    from trunkline.contracts.memory.history import MemoryReverted as MemoryReverted
    from trunkline.contracts.memory.history import RevertMemory as RevertMemory
    from trunkline.contracts.memory.index import IndexProgress as IndexProgress
    from trunkline.contracts.memory.index import IndexStats as IndexStats
    from trunkline.contracts.memory.index import VectorStats as VectorStats
    from trunkline.contracts.memory.initial_files import INITIAL_FILES as INITIAL_FILES
    from trunkline.contracts.memory.path_rules import ascii_safe as ascii_safe
    from trunkline.contracts.memory.path_rules import decode_text as decode_text
    from trunkline.contracts.memory.path_rules import encode_text as encode_text
    from trunkline.contracts.memory.path_rules import is_git_folder as is_git_folder
    from trunkline.contracts.memory.path_rules import is_git_name as is_git_name
    from trunkline.contracts.memory.path_rules import is_normalized as is_normalized
    from trunkline.contracts.memory.path_rules import is_under as is_under
    from trunkline.contracts.memory.path_rules import normalize_folder as normalize_folder
    from trunkline.contracts.memory.path_rules import normalize_path as normalize_path
    from trunkline.contracts.memory.path_rules import parents as parents
    from trunkline.contracts.memory.path_rules import path_refusal as path_refusal
    from trunkline.contracts.memory.paths import is_log_path as is_log_path
    from trunkline.contracts.memory.paths import is_owner_only as is_owner_only
    from trunkline.contracts.memory.paths import is_preferences as is_preferences
    from trunkline.contracts.memory.paths import is_private_to_another as is_private_to_another
    from trunkline.contracts.memory.purge import PURGE_LOG_PATH as PURGE_LOG_PATH
    from trunkline.contracts.memory.purge import PURGED as PURGED
    from trunkline.contracts.memory.rules import apply_rules as apply_rules
    from trunkline.contracts.memory.rules import block_files as block_files
    from trunkline.contracts.memory.rules import missing_blocks as missing_blocks
    from trunkline.contracts.memory.search import PassageKind as PassageKind
    from trunkline.contracts.memory.store import NOWHERE as NOWHERE
    from trunkline.contracts.memory.store import Change as Change
    from trunkline.contracts.memory.store import ChunkType as ChunkType
    from trunkline.contracts.memory.store import InstalledComponents as InstalledComponents
    from trunkline.contracts.memory.store import LinkType as LinkType
    from trunkline.contracts.memory.store import MemoryRule as MemoryRule
    from trunkline.contracts.memory.store import MemoryStore as MemoryStore
    from trunkline.contracts.memory.store import PurgeResult as PurgeResult
    from trunkline.contracts.memory.store import StoreContext as StoreContext
    from trunkline.contracts.memory.text_match import TextMatcher as TextMatcher
    from trunkline.contracts.memory.text_match import is_similar as is_similar
    from trunkline.contracts.memory.text_match import significant_lines as significant_lines
    from trunkline.contracts.memory.text_match import without_boilerplate as without_boilerplate
    from trunkline.contracts.memory.transfer import ImportConflict as ImportConflict
    from trunkline.contracts.memory.transfer import ImportMemory as ImportMemory
    from trunkline.contracts.memory.transfer import ImportProgress as ImportProgress
    from trunkline.contracts.memory.transfer import MemoryImport as MemoryImport
    from trunkline.home.root_reader import AccessDenied as AccessDenied
    from trunkline.home.root_reader import RootReader as RootReader
    from trunkline.home.root_reader import file_not_found as file_not_found
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
