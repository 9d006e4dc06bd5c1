"""A replacement for a guard that cannot be loaded. It refuses every call, so a broken guard permits nothing."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NoReturn

from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.memory.store import Change
from trunkline.contracts.models.adapter import AskModel, ModelEvent, ModelRequest
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.tools.tool import Proceed, Stage, ToolInvocation
from trunkline.errors import ErrorCode, ModelError, ToolError
from trunkline.plugins.report import BrokenGuard
from trunkline_bus import Refusal


def fail_closed_guard(guard: BrokenGuard) -> Any:
    """Return an object of the hook's type that refuses every call."""
    return _MAKERS[guard.hook](guard)


class _Refusing:
    stage: Stage = "schema"

    def __init__(self, guard: BrokenGuard) -> None:
        self.name = f"broken guard of {guard.owner}"
        self.sentence = (
            f"Refused: a guard of the plugin {guard.owner} is broken. `trunkline doctor` says why."
        )

    def refuse(self, code: str) -> NoReturn:
        raise Refusal(code, self.sentence)


class _ToolGuard(_Refusing):
    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        raise ToolError(self.sentence, kind="permission_denied")


class _Authenticator(_Refusing):
    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        self.refuse(ErrorCode.UNAUTHORIZED)


class _AdmissionRule(_Refusing):
    async def __call__(self, message: SendMessage, identity: Identity) -> None:
        self.refuse(ErrorCode.FORBIDDEN)


class _MemoryRule(_Refusing):
    def __call__(self, change: Change) -> Change:
        self.refuse("write_failure")


class _ModelGuard(_Refusing):
    each_request = (
        True  # whatever the broken guard wraps, nothing reaches a vendor: neither an answer nor vectors
    )

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        raise ModelError(ErrorCode.NOT_SENT, "refused", self.sentence)
        yield


_MAKERS: dict[str, Callable[[BrokenGuard], Any]] = {
    "trunkline_tool_middleware": _ToolGuard,
    "trunkline_authenticators": _Authenticator,
    "trunkline_admission_rules": _AdmissionRule,
    "trunkline_memory_rules": _MemoryRule,
    "trunkline_model_middleware": _ModelGuard,
}
