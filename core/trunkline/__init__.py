"""The names that most plugins need; ``trunkline.api`` has those of each kind of extension.

A name is imported when it is first used, so that the import itself costs next to nothing. No code may be in here
but that.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.paths import Folder as Folder
    from trunkline._util.paths import PathRefused as PathRefused
    from trunkline._util.text import printable as printable
    from trunkline.config.secret import Secret as Secret
    from trunkline.contracts.approvals.messages import ApprovalDetail as ApprovalDetail
    from trunkline.contracts.approvals.preview import diff_preview as diff_preview
    from trunkline.contracts.approvals.preview import preview as preview
    from trunkline.contracts.blocks.messages import Block as Block
    from trunkline.contracts.blocks.messages import BlockConfig as BlockConfig
    from trunkline.contracts.conversations.messages import Image as Image
    from trunkline.contracts.conversations.messages import Message as Message
    from trunkline.contracts.conversations.messages import ToolCall as ToolCall
    from trunkline.contracts.hooks import hookimpl as hookimpl
    from trunkline.contracts.memory.client import Memory as Memory
    from trunkline.contracts.memory.files import MemoryEntry as MemoryEntry
    from trunkline.contracts.memory.files import MemoryFile as MemoryFile
    from trunkline.contracts.memory.search import MemoryHit as MemoryHit
    from trunkline.contracts.models.completer import Completer as Completer
    from trunkline.contracts.plugins.extensions import ConfigSection as ConfigSection
    from trunkline.contracts.plugins.extensions import HealthCheck as HealthCheck
    from trunkline.contracts.plugins.extensions import HealthResult as HealthResult
    from trunkline.contracts.plugins.extensions import Lifespan as Lifespan
    from trunkline.contracts.plugins.extensions import LifespanContext as LifespanContext
    from trunkline.contracts.plugins.extensions import PluginSettings as PluginSettings
    from trunkline.contracts.sandbox.program_request import SandboxLimits as SandboxLimits
    from trunkline.contracts.sandbox.sandbox import Sandbox as Sandbox
    from trunkline.contracts.tools.function_tool import BlockPath as BlockPath
    from trunkline.contracts.tools.function_tool import MemoryPath as MemoryPath
    from trunkline.contracts.tools.function_tool import MemoryTree as MemoryTree
    from trunkline.contracts.tools.function_tool import tool as tool
    from trunkline.contracts.tools.messages import Effect as Effect
    from trunkline.contracts.tools.messages import ToolOutcome as ToolOutcome
    from trunkline.contracts.tools.person import Person as Person
    from trunkline.contracts.tools.tool import Tool as Tool
    from trunkline.contracts.tools.tool import ToolContext as ToolContext
    from trunkline.contracts.turns.context import ContextGap as ContextGap
    from trunkline.contracts.turns.context import ContextPart as ContextPart
    from trunkline.contracts.turns.context import ContextSource as ContextSource
    from trunkline.contracts.turns.context import TurnInfo as TurnInfo
    from trunkline.errors import CompletionError as CompletionError
    from trunkline.errors import ConfigError as ConfigError
    from trunkline.errors import ErrorCode as ErrorCode
    from trunkline.errors import NoAnswer as NoAnswer
    from trunkline.errors import PluginError as PluginError
    from trunkline.errors import StorageError as StorageError
    from trunkline.errors import ToolError as ToolError
    from trunkline.errors import TrunklineError as TrunklineError
    from trunkline.errors import Unavailable as Unavailable
    from trunkline_bus import RemoteFault as RemoteFault
    from trunkline_bus import new_id as new_id
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)

__version__ = "0.1.0"
