"""The public face: exactly these names, loaded when used, and cheap to import."""

import subprocess
import sys

import pytest

import trunkline

EXPORTS = {
    "AdmissionRule", "AppendConversation", "Approval", "ApprovalDetail", "ApprovalScope", "ApprovalDecision",
    "arguments_preview", "command_preview", "diff_preview", "message_preview", "preview",
    "approval_news", "approval_words", "parse_decision", "waiting_approval", "chosen", "submit_decision", "NoAnswer",
    "Person",
    "conversation_found",
    "ApprovalRequested", "ApprovalSettled", "AskModel",
    "Authenticator", "Block", "BlockConfig", "BlockCompleter", "BlockPath", "Bus", "BusMessage",
    "BusMiddleware", "Call",
    "Change", "Channel", "ChannelsSettings", "Chunk", "ChunkMetadata", "ChunkType", "Completer", "Completion",
    "CompletionError", "ConfigError",
    "ConfigSection", "ContextGap", "ContextPart", "ContextSource",
    "ConversationPage", "ConversationSlice", "ConversationSummary", "ConversationView", "Document",
    "DocumentText", "Documents", "Effect", "Embedder",
    "ErrorCode", "FeedEvent", "Finish", "Folder", "ForegroundChannel", "FunctionTool", "Gateway", "GatewaySettings",
    "HealthCheck", "HealthResult", "HttpRoute", "Identity", "Image", "Letter", "LetterChannel",
    "Lifespan", "LinkType", "LinkedChunk", "Recalled", "RecalledChunk", "Remembered",
    "ListConversations", "LogStore", "Memory",
    "MemoryChange", "MemoryEntry", "MemoryFile", "MemoryHit", "MemoryHits", "MemoryPath", "MemoryRecord", "MemoryRule",
    "MemorySettings", "MemoryStore", "MemoryTree",
    "Message", "MessageAccepted", "MessageSteered", "CanonicalCall", "ModelAdapter", "ModelError", "ModelEvent",
    "ModelFault",
    "ModelInfo", "ModelMiddleware", "ModelRequest", "MonitorSettings", "PathRefused", "Payload",
    "PluginError", "PluginSettings", "Proceed", "Pulse", "Reader", "Reasoning", "ReasoningDelta", "Refusal",
    "RemoteFault", "RuntimeSettings", "Sandbox", "SandboxLimits", "SandboxProcess", "SandboxResult",
    "SearchMemory", "Secret", "Section",
    "SendMessage", "TerminalSession", "SourceContext", "SourcedTool", "Stage", "StatusShown", "StorageError", "Text",
    "TextDelta", "TextReset", "Tool", "ToolAlias",
    "ToolCall", "ToolContext", "ToolEnded", "ToolError", "ToolInvocation", "ToolMiddleware", "ToolOutcome", "ToolRan",
    "ToolSchema", "ToolSource", "ToolSpec", "ToolStarted", "ToolsSettings", "TrunklineError", "TurnEnded", "TurnInfo",
    "TurnMiddleware", "TurnRequested", "TurnView", "Unavailable", "UnreadableDocument", "Usage", "TurnStream",
    "HitExplanation", "WorkerKind",
    "ImportGap", "ImportedConversation", "ImportedFile", "Importer", "Installed", "Source", "Kept", "Purge", "Purger",
    "__version__", "open_beneath", "hookimpl", "new_id", "printable", "program", "tool",
}  # fmt: skip


def modules_after(code: str) -> set[str]:
    """The modules of a fresh interpreter after some code, besides those it starts with."""
    script = f"import sys; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_exactly_these_names_are_public():
    """A name comes or goes only on purpose."""
    assert set(trunkline.__all__) == EXPORTS
    assert dir(trunkline) == sorted(trunkline.__all__)


def test_every_public_name_is_there():
    """What is promised can be had, and what is not says so."""
    for name in trunkline.__all__:
        assert getattr(trunkline, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Toll'"):
        trunkline.Toll  # noqa: B018


def test_public_things_say_what_they_are():
    """Every class and function has a docstring of its own."""
    things = [getattr(trunkline, name) for name in trunkline.__all__]
    silent = [thing for thing in things if isinstance(thing, type) and not thing.__doc__]
    assert silent == []


def test_the_import_costs_next_to_nothing():
    """``import trunkline`` loads itself and a few modules of Python's own, and not asyncio."""
    loaded = modules_after("import trunkline")
    assert {module for module in loaded if module.partition(".")[0] not in sys.stdlib_module_names} == {
        "trunkline"
    }
    assert "asyncio" not in loaded
    assert len(loaded) < 50


@pytest.mark.parametrize("name", ["hookimpl", "tool", "ModelAdapter", "Channel", "open_beneath"])
def test_what_a_plugin_uses_loads_nothing_that_it_does_not_use(name):
    """The vendors', servers', terminals' and stores' libraries stay out until their worker runs."""
    loaded = modules_after(f"import trunkline; trunkline.{name}")
    heavy = {
        "openai",
        "starlette",
        "uvicorn",
        "rich",
        "prompt_toolkit",
        "pygit2",
        "apsw",
        "click",
        "opentelemetry.sdk",
    }
    assert not [module for module in loaded if any(module == h or module.startswith(f"{h}.") for h in heavy)]


def test_a_hook_alone_needs_pluggy_alone():
    """Marking hooks loads neither messages nor the bus."""
    assert not {
        module
        for module in modules_after("import trunkline; trunkline.hookimpl")
        if "trunkline_bus" in module
    }
