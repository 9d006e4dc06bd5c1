"""Middleware, sources and aliases of tools, for plugins that do more than decorate a function."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.approvals.messages import Approval as Approval
    from trunkline.contracts.approvals.messages import ApprovalScope as ApprovalScope
    from trunkline.contracts.approvals.preview import arguments_preview as arguments_preview
    from trunkline.contracts.approvals.preview import command_preview as command_preview
    from trunkline.contracts.approvals.preview import message_preview as message_preview
    from trunkline.contracts.tools.function_tool import FunctionTool as FunctionTool
    from trunkline.contracts.tools.messages import CallTool as CallTool
    from trunkline.contracts.tools.messages import CancelCall as CancelCall
    from trunkline.contracts.tools.messages import ListTools as ListTools
    from trunkline.contracts.tools.messages import QuestionAnswer as QuestionAnswer
    from trunkline.contracts.tools.messages import StoredResult as StoredResult
    from trunkline.contracts.tools.messages import ToolSchema as ToolSchema
    from trunkline.contracts.tools.messages import ToolSpec as ToolSpec
    from trunkline.contracts.tools.outgoing_files import MAX_OUTGOING_BYTES as MAX_OUTGOING_BYTES
    from trunkline.contracts.tools.outgoing_files import OutgoingFiles as OutgoingFiles
    from trunkline.contracts.tools.subjects import DELEGATED_CALL_TOOL as DELEGATED_CALL_TOOL
    from trunkline.contracts.tools.subjects import DELEGATED_CANCEL_CALL as DELEGATED_CANCEL_CALL
    from trunkline.contracts.tools.subjects import DELEGATED_LIST_TOOLS as DELEGATED_LIST_TOOLS
    from trunkline.contracts.tools.subjects import LIST_TOOLS as LIST_TOOLS
    from trunkline.contracts.tools.tool import CanonicalCall as CanonicalCall
    from trunkline.contracts.tools.tool import Proceed as Proceed
    from trunkline.contracts.tools.tool import SourceContext as SourceContext
    from trunkline.contracts.tools.tool import SourcedTool as SourcedTool
    from trunkline.contracts.tools.tool import Stage as Stage
    from trunkline.contracts.tools.tool import ToolAlias as ToolAlias
    from trunkline.contracts.tools.tool import ToolInvocation as ToolInvocation
    from trunkline.contracts.tools.tool import ToolMiddleware as ToolMiddleware
    from trunkline.contracts.tools.tool import ToolSource as ToolSource
    from trunkline.errors import OutcomeUnknown as OutcomeUnknown
    from trunkline.errors import ToolErrorKind as ToolErrorKind
    from trunkline.errors import error_kind_for_os as error_kind_for_os
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
