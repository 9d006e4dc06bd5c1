"""The public face: everything a plugin needs comes by ``import trunkline`` alone.

Names are loaded when they are first used, so that the import itself costs next to nothing. No code may be in here
but that.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline._util.archives.manifest import ImportGap
    from trunkline._util.paths import Folder, PathRefused, open_beneath
    from trunkline._util.text import printable
    from trunkline.config.secret import Secret
    from trunkline.config.settings import (
        ChannelsSettings,
        GatewaySettings,
        MemorySettings,
        MonitorSettings,
        RuntimeSettings,
        ToolsSettings,
    )
    from trunkline.contracts.approvals.messages import Approval, ApprovalDetail, ApprovalScope
    from trunkline.contracts.approvals.preview import (
        arguments_preview,
        command_preview,
        diff_preview,
        message_preview,
        preview,
    )
    from trunkline.contracts.blocks.messages import Block, BlockConfig, Pulse
    from trunkline.contracts.channels.channel import Channel, Gateway, TurnStream
    from trunkline.contracts.channels.foreground_channel import ForegroundChannel, TerminalSession
    from trunkline.contracts.conversations.messages import (
        AppendConversation,
        ConversationPage,
        ConversationSlice,
        ConversationSummary,
        Image,
        ListConversations,
        Message,
        ToolCall,
        Usage,
    )
    from trunkline.contracts.documents.reader import Document, Documents, DocumentText, Reader, Section
    from trunkline.contracts.gateway.access import AdmissionRule, Authenticator, HttpRoute, Identity
    from trunkline.contracts.gateway.messages import ConversationView, MessageAccepted, SendMessage, TurnView
    from trunkline.contracts.hooks import hookimpl
    from trunkline.contracts.memory.chunks import (
        Chunk,
        ChunkMetadata,
        LinkedChunk,
        Recalled,
        RecalledChunk,
        Remembered,
    )
    from trunkline.contracts.memory.embedder import Embedder
    from trunkline.contracts.memory.importer import ImportedConversation, ImportedFile, Importer, Source
    from trunkline.contracts.memory.messages import (
        HitExplanation,
        MemoryChange,
        MemoryEntry,
        MemoryFile,
        MemoryHit,
        MemoryHits,
        SearchMemory,
    )
    from trunkline.contracts.memory.purge import Kept
    from trunkline.contracts.memory.purger import Purge, Purger
    from trunkline.contracts.memory.store import (
        Change,
        ChunkType,
        Installed,
        LinkType,
        Memory,
        MemoryRule,
        MemoryStore,
    )
    from trunkline.contracts.models.adapter import (
        AskModel,
        Call,
        Finish,
        ModelAdapter,
        ModelEvent,
        ModelInfo,
        ModelMiddleware,
        ModelRequest,
        Reasoning,
        Text,
        ToolRan,
    )
    from trunkline.contracts.models.client import BlockCompleter
    from trunkline.contracts.models.completer import Completer
    from trunkline.contracts.models.messages import Completion
    from trunkline.contracts.models.program import program
    from trunkline.contracts.plugins.extensions import (
        ConfigSection,
        HealthCheck,
        HealthResult,
        Lifespan,
        PluginSettings,
    )
    from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxLimits, SandboxProcess, SandboxResult
    from trunkline.contracts.tools.function_tool import BlockPath, FunctionTool, MemoryPath, MemoryTree, tool
    from trunkline.contracts.tools.messages import Effect, ToolOutcome, ToolSchema, ToolSpec
    from trunkline.contracts.tools.person import Person
    from trunkline.contracts.tools.tool import (
        CanonicalCall,
        Proceed,
        SourceContext,
        SourcedTool,
        Stage,
        Tool,
        ToolAlias,
        ToolContext,
        ToolInvocation,
        ToolMiddleware,
        ToolSource,
    )
    from trunkline.contracts.turns.context import (
        ContextGap,
        ContextPart,
        ContextSource,
        TurnInfo,
        TurnMiddleware,
    )
    from trunkline.contracts.turns.messages import (
        ApprovalRequested,
        ApprovalSettled,
        FeedEvent,
        MessageSteered,
        ReasoningDelta,
        StatusShown,
        TextDelta,
        TextReset,
        ToolEnded,
        ToolStarted,
        TurnEnded,
        TurnRequested,
    )
    from trunkline.contracts.workers.messages import WorkerKind
    from trunkline.errors import (
        CompletionError,
        ConfigError,
        ErrorCode,
        ModelError,
        ModelFault,
        NoAnswer,
        PluginError,
        StorageError,
        ToolError,
        TrunklineError,
        Unavailable,
        UnreadableDocument,
    )
    from trunkline.workers.channels.approval_text import (
        ApprovalDecision,
        approval_news,
        approval_words,
        chosen,
        parse_decision,
        submit_decision,
        waiting_approval,
    )
    from trunkline.workers.channels.conversation_lookup import conversation_found
    from trunkline.workers.channels.letter_channel import Letter, LetterChannel
    from trunkline.workers.memory.log_record import MemoryRecord
    from trunkline.workers.memory.log_store import LogStore
    from trunkline_bus import Bus, BusMessage, BusMiddleware, Payload, Refusal, RemoteFault, new_id

__version__ = "0.1.0"

_PLACES: dict[str, str] = {
    "trunkline.contracts.channels.channel": "Channel Gateway TurnStream",
    "trunkline.contracts.models.completer": "Completer",
    "trunkline.contracts.turns.context": "ContextGap ContextPart ContextSource TurnInfo TurnMiddleware",
    "trunkline.contracts.documents.reader": "Document DocumentText Documents Reader Section",
    "trunkline.contracts.memory.embedder": "Embedder",
    "trunkline.contracts.channels.foreground_channel": "ForegroundChannel TerminalSession",
    "trunkline.contracts.gateway.access": "AdmissionRule Authenticator HttpRoute Identity",
    "trunkline.contracts.memory.importer": "ImportedConversation ImportedFile Importer Source",
    "trunkline.contracts.memory.store": "Change ChunkType Installed LinkType Memory MemoryRule MemoryStore",
    "trunkline.contracts.models.adapter": "AskModel Call Finish ModelAdapter ModelEvent ModelInfo "
    "ModelMiddleware ModelRequest Reasoning Text ToolRan",
    "trunkline.contracts.tools.person": "Person",
    "trunkline.contracts.plugins.extensions": "ConfigSection HealthCheck HealthResult Lifespan PluginSettings",
    "trunkline.contracts.memory.purger": "Purge Purger",
    "trunkline.contracts.sandbox.sandbox": "Sandbox SandboxLimits SandboxProcess SandboxResult",
    "trunkline.contracts.tools.tool": "CanonicalCall Proceed SourceContext SourcedTool Stage Tool ToolAlias "
    "ToolContext ToolInvocation ToolMiddleware ToolSource",
    "trunkline._util.archives.manifest": "ImportGap",
    "trunkline.workers.channels.letter_channel": "Letter LetterChannel",
    "trunkline._util.text": "printable",
    "trunkline.config.secret": "Secret",
    "trunkline.config.settings": "ChannelsSettings GatewaySettings MemorySettings MonitorSettings RuntimeSettings "
    "ToolsSettings",
    "trunkline.errors": "CompletionError ConfigError ErrorCode ModelError ModelFault NoAnswer PluginError StorageError "
    "ToolError TrunklineError Unavailable UnreadableDocument",
    "trunkline.contracts.tools.function_tool": "BlockPath FunctionTool MemoryPath MemoryTree tool",
    "trunkline.contracts.hooks": "hookimpl",
    "trunkline.workers.memory.log_store": "LogStore",
    "trunkline.workers.memory.log_record": "MemoryRecord",
    "trunkline.workers.channels.approval_text": "ApprovalDecision approval_news approval_words chosen submit_decision "
    "parse_decision waiting_approval",
    "trunkline.workers.channels.conversation_lookup": "conversation_found",
    "trunkline.contracts.approvals.messages": "Approval ApprovalDetail ApprovalScope",
    "trunkline.contracts.blocks.messages": "Block BlockConfig Pulse",
    "trunkline.contracts.models.messages": "Completion",
    "trunkline.contracts.memory.chunks": "Chunk ChunkMetadata LinkedChunk Recalled RecalledChunk Remembered",
    "trunkline.contracts.conversations.messages": "AppendConversation ConversationPage ConversationSlice "
    "ConversationSummary Image ListConversations Message ToolCall Usage",
    "trunkline.contracts.gateway.messages": "ConversationView MessageAccepted SendMessage TurnView",
    "trunkline.contracts.memory.messages": "HitExplanation MemoryChange MemoryEntry MemoryFile MemoryHit "
    "MemoryHits SearchMemory",
    "trunkline.contracts.memory.purge": "Kept",
    "trunkline.contracts.tools.messages": "Effect ToolOutcome ToolSchema ToolSpec",
    "trunkline.contracts.turns.messages": "ApprovalRequested ApprovalSettled FeedEvent MessageSteered "
    "ReasoningDelta StatusShown TextDelta TextReset ToolEnded ToolStarted TurnEnded TurnRequested",
    "trunkline.contracts.workers.messages": "WorkerKind",
    "trunkline._util.paths": "Folder PathRefused open_beneath",
    "trunkline.contracts.approvals.preview": "arguments_preview command_preview diff_preview message_preview preview",
    "trunkline.contracts.models.program": "program",
    "trunkline.contracts.models.client": "BlockCompleter",
    "trunkline_bus": "Bus BusMessage BusMiddleware Payload Refusal RemoteFault new_id",
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "AdmissionRule",
    "AppendConversation",
    "Approval",
    "ApprovalDecision",
    "ApprovalDetail",
    "ApprovalRequested",
    "ApprovalScope",
    "ApprovalSettled",
    "AskModel",
    "Authenticator",
    "Block",
    "BlockCompleter",
    "BlockConfig",
    "BlockPath",
    "Bus",
    "BusMessage",
    "BusMiddleware",
    "Call",
    "CanonicalCall",
    "Change",
    "Channel",
    "ChannelsSettings",
    "Chunk",
    "ChunkMetadata",
    "ChunkType",
    "Completer",
    "Completion",
    "CompletionError",
    "ConfigError",
    "ConfigSection",
    "ContextGap",
    "ContextPart",
    "ContextSource",
    "ConversationPage",
    "ConversationSlice",
    "ConversationSummary",
    "ConversationView",
    "Document",
    "DocumentText",
    "Documents",
    "Effect",
    "Embedder",
    "ErrorCode",
    "FeedEvent",
    "Finish",
    "Folder",
    "ForegroundChannel",
    "FunctionTool",
    "Gateway",
    "GatewaySettings",
    "HealthCheck",
    "HealthResult",
    "HitExplanation",
    "HttpRoute",
    "Identity",
    "Image",
    "ImportGap",
    "ImportedConversation",
    "ImportedFile",
    "Importer",
    "Installed",
    "Kept",
    "Letter",
    "LetterChannel",
    "Lifespan",
    "LinkType",
    "LinkedChunk",
    "ListConversations",
    "LogStore",
    "Memory",
    "MemoryChange",
    "MemoryEntry",
    "MemoryFile",
    "MemoryHit",
    "MemoryHits",
    "MemoryPath",
    "MemoryRecord",
    "MemoryRule",
    "MemorySettings",
    "MemoryStore",
    "MemoryTree",
    "Message",
    "MessageAccepted",
    "MessageSteered",
    "ModelAdapter",
    "ModelError",
    "ModelEvent",
    "ModelFault",
    "ModelInfo",
    "ModelMiddleware",
    "ModelRequest",
    "MonitorSettings",
    "NoAnswer",
    "PathRefused",
    "Payload",
    "Person",
    "PluginError",
    "PluginSettings",
    "Proceed",
    "Pulse",
    "Purge",
    "Purger",
    "Reader",
    "Reasoning",
    "ReasoningDelta",
    "Recalled",
    "RecalledChunk",
    "Refusal",
    "Remembered",
    "RemoteFault",
    "RuntimeSettings",
    "Sandbox",
    "SandboxLimits",
    "SandboxProcess",
    "SandboxResult",
    "SearchMemory",
    "Secret",
    "Section",
    "SendMessage",
    "Source",
    "SourceContext",
    "SourcedTool",
    "Stage",
    "StatusShown",
    "StorageError",
    "TerminalSession",
    "Text",
    "TextDelta",
    "TextReset",
    "Tool",
    "ToolAlias",
    "ToolCall",
    "ToolContext",
    "ToolEnded",
    "ToolError",
    "ToolInvocation",
    "ToolMiddleware",
    "ToolOutcome",
    "ToolRan",
    "ToolSchema",
    "ToolSource",
    "ToolSpec",
    "ToolStarted",
    "ToolsSettings",
    "TrunklineError",
    "TurnEnded",
    "TurnInfo",
    "TurnMiddleware",
    "TurnRequested",
    "TurnStream",
    "TurnView",
    "Unavailable",
    "UnreadableDocument",
    "Usage",
    "WorkerKind",
    "__version__",
    "approval_news",
    "approval_words",
    "arguments_preview",
    "chosen",
    "command_preview",
    "conversation_found",
    "diff_preview",
    "hookimpl",
    "message_preview",
    "new_id",
    "open_beneath",
    "parse_decision",
    "preview",
    "printable",
    "program",
    "submit_decision",
    "tool",
    "waiting_approval",
]

if not TYPE_CHECKING:  # a type checker that saw this would take every misspelt name for good

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'trunkline' has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
