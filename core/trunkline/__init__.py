"""The public face: everything a plugin needs comes by ``import trunkline`` alone.

Names are loaded when they are first used, so that the import itself costs next to nothing. No code may be in here
but that.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline.abc.channels import Channel, Gateway, Watch
    from trunkline.abc.completion import Completer
    from trunkline.abc.context import ContextGap, ContextPart, ContextSource, TurnInfo, TurnMiddleware
    from trunkline.abc.documents import Document, Documents, DocumentText, Reader, Section
    from trunkline.abc.embedders import Embedder
    from trunkline.abc.foreground import ForegroundChannel, Sitting
    from trunkline.abc.gateway import AdmissionRule, Authenticator, HttpRoute, Identity
    from trunkline.abc.importing import ImportedConversation, ImportedFile, Importer, Source
    from trunkline.abc.memory import Change, ChunkType, Installed, LinkType, Memory, MemoryRule, MemoryStore
    from trunkline.abc.models import (
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
    from trunkline.abc.person import Person
    from trunkline.abc.platform import ConfigSection, HealthCheck, HealthResult, Lifespan, PluginSettings
    from trunkline.abc.purging import Purge, Purger
    from trunkline.abc.sandbox import Sandbox, SandboxLimits, SandboxProcess, SandboxResult
    from trunkline.abc.tools import (
        Meant,
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
    from trunkline.archives.manifest import Gap
    from trunkline.channels.deciding import (
        Verdict,
        approval_news,
        approval_words,
        chosen,
        hand_in,
        verdict_in,
        waiting_approval,
    )
    from trunkline.channels.finding import conversation_found
    from trunkline.channels.letters import Letter, LetterChannel
    from trunkline.config.secret import Secret
    from trunkline.config.settings import (
        ChannelsSettings,
        GatewaySettings,
        MemorySettings,
        MonitorSettings,
        RuntimeSettings,
        ToolsSettings,
    )
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
    from trunkline.function_tool import BlockPath, FunctionTool, MemoryPath, MemoryTree, tool
    from trunkline.hookspecs import hookimpl
    from trunkline.memory.log_store import LogStore
    from trunkline.memory.record import MemoryRecord
    from trunkline.messages.approvals import Approval, ApprovalDetail, ApprovalScope
    from trunkline.messages.blocks import Block, BlockConfig, Pulse
    from trunkline.messages.chunks import (
        Chunk,
        ChunkMetadata,
        LinkedChunk,
        Recalled,
        RecalledChunk,
        Remembered,
    )
    from trunkline.messages.completion import Completion
    from trunkline.messages.conversation import (
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
    from trunkline.messages.gateway import ConversationView, MessageAccepted, SendMessage, TurnView
    from trunkline.messages.memory import (
        MemoryChange,
        MemoryEntry,
        MemoryFile,
        MemoryHit,
        MemoryHits,
        SearchMemory,
        Why,
    )
    from trunkline.messages.purging import Kept
    from trunkline.messages.tools import Effect, ToolOutcome, ToolSchema, ToolSpec
    from trunkline.messages.turn import (
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
    from trunkline.messages.workers import WorkerKind
    from trunkline.paths import Folder, PathRefused, beneath
    from trunkline.previews import (
        arguments_preview,
        command_preview,
        diff_preview,
        message_preview,
        preview,
    )
    from trunkline.program import program
    from trunkline.runtime.completion_client import BlockModel
    from trunkline.text import printable
    from trunkline_bus import Bus, BusMessage, BusMiddleware, Payload, Refusal, RemoteFault, new_id

__version__ = "0.1.0"

_PLACES: dict[str, str] = {
    "trunkline.abc.channels": "Channel Gateway Watch",
    "trunkline.abc.completion": "Completer",
    "trunkline.abc.context": "ContextGap ContextPart ContextSource TurnInfo TurnMiddleware",
    "trunkline.abc.documents": "Document DocumentText Documents Reader Section",
    "trunkline.abc.embedders": "Embedder",
    "trunkline.abc.foreground": "ForegroundChannel Sitting",
    "trunkline.abc.gateway": "AdmissionRule Authenticator HttpRoute Identity",
    "trunkline.abc.importing": "ImportedConversation ImportedFile Importer Source",
    "trunkline.abc.memory": "Change ChunkType Installed LinkType Memory MemoryRule MemoryStore",
    "trunkline.abc.models": "AskModel Call Finish ModelAdapter ModelEvent ModelInfo ModelMiddleware ModelRequest "
    "Reasoning Text ToolRan",
    "trunkline.abc.person": "Person",
    "trunkline.abc.platform": "ConfigSection HealthCheck HealthResult Lifespan PluginSettings",
    "trunkline.abc.purging": "Purge Purger",
    "trunkline.abc.sandbox": "Sandbox SandboxLimits SandboxProcess SandboxResult",
    "trunkline.abc.tools": "Meant Proceed SourceContext SourcedTool Stage Tool ToolAlias ToolContext "
    "ToolInvocation ToolMiddleware ToolSource",
    "trunkline.archives.manifest": "Gap",
    "trunkline.channels.letters": "Letter LetterChannel",
    "trunkline.text": "printable",
    "trunkline.config.secret": "Secret",
    "trunkline.config.settings": "ChannelsSettings GatewaySettings MemorySettings MonitorSettings RuntimeSettings "
    "ToolsSettings",
    "trunkline.errors": "CompletionError ConfigError ErrorCode ModelError ModelFault NoAnswer PluginError StorageError "
    "ToolError TrunklineError Unavailable UnreadableDocument",
    "trunkline.function_tool": "BlockPath FunctionTool MemoryPath MemoryTree tool",
    "trunkline.hookspecs": "hookimpl",
    "trunkline.memory.log_store": "LogStore",
    "trunkline.memory.record": "MemoryRecord",
    "trunkline.channels.deciding": "Verdict approval_news approval_words chosen hand_in verdict_in waiting_approval",
    "trunkline.channels.finding": "conversation_found",
    "trunkline.messages.approvals": "Approval ApprovalDetail ApprovalScope",
    "trunkline.messages.blocks": "Block BlockConfig Pulse",
    "trunkline.messages.completion": "Completion",
    "trunkline.messages.chunks": "Chunk ChunkMetadata LinkedChunk Recalled RecalledChunk Remembered",
    "trunkline.messages.conversation": "AppendConversation ConversationPage ConversationSlice ConversationSummary "
    "Image ListConversations Message ToolCall Usage",
    "trunkline.messages.gateway": "ConversationView MessageAccepted SendMessage TurnView",
    "trunkline.messages.memory": "MemoryChange MemoryEntry MemoryFile MemoryHit MemoryHits SearchMemory Why",
    "trunkline.messages.purging": "Kept",
    "trunkline.messages.tools": "Effect ToolOutcome ToolSchema ToolSpec",
    "trunkline.messages.turn": "ApprovalRequested ApprovalSettled FeedEvent MessageSteered ReasoningDelta StatusShown "
    "TextDelta TextReset ToolEnded ToolStarted TurnEnded TurnRequested",
    "trunkline.messages.workers": "WorkerKind",
    "trunkline.paths": "Folder PathRefused beneath",
    "trunkline.previews": "arguments_preview command_preview diff_preview message_preview preview",
    "trunkline.program": "program",
    "trunkline.runtime.completion_client": "BlockModel",
    "trunkline_bus": "Bus BusMessage BusMiddleware Payload Refusal RemoteFault new_id",
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "AdmissionRule",
    "AppendConversation",
    "Approval",
    "ApprovalDetail",
    "ApprovalRequested",
    "ApprovalScope",
    "ApprovalSettled",
    "AskModel",
    "Authenticator",
    "Block",
    "BlockConfig",
    "BlockModel",
    "BlockPath",
    "Bus",
    "BusMessage",
    "BusMiddleware",
    "Call",
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
    "Gap",
    "Gateway",
    "GatewaySettings",
    "HealthCheck",
    "HealthResult",
    "HttpRoute",
    "Identity",
    "Image",
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
    "Meant",
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
    "Sitting",
    "Source",
    "SourceContext",
    "SourcedTool",
    "Stage",
    "StatusShown",
    "StorageError",
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
    "TurnView",
    "Unavailable",
    "UnreadableDocument",
    "Usage",
    "Verdict",
    "Watch",
    "Why",
    "WorkerKind",
    "__version__",
    "approval_news",
    "approval_words",
    "arguments_preview",
    "beneath",
    "chosen",
    "command_preview",
    "conversation_found",
    "diff_preview",
    "hand_in",
    "hookimpl",
    "message_preview",
    "new_id",
    "preview",
    "printable",
    "program",
    "tool",
    "verdict_in",
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
