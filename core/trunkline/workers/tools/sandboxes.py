"""Selects the sandbox for programs: the first installed backend that works on this host. Without a sandbox no program
runs.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import anyio

from trunkline.contracts.sandbox.detached_program import DetachedProgram, ProgramSpec, utc_now
from trunkline.contracts.sandbox.program_request import (
    DEFAULT_LIMITS,
    ProgramRequest,
    SandboxLimits,
    check_program,
)
from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxProcess, SandboxResult
from trunkline.contracts.tools.tool import ToolInvocation
from trunkline.errors import ToolError
from trunkline.home.kill_switch import KillSwitch
from trunkline.plugins import OwnedItem
from trunkline.policy.read_only_programs import is_read_only_call
from trunkline.workers.tools.detached_launcher import launch_detached
from trunkline.workers.tools.live_output import LiveOutput

log = logging.getLogger(__name__)

ASK_AGAIN = 10.0
"""Seconds for which the selection is used. Then the backends are checked again, so an installation needs no
restart."""

HOST_NETWORK_HINT = (
    "A person can allow it for some minutes, at a terminal: trunkline permissions BLOCK --host-network 30."
)

NO_SANDBOX_HINT = (
    "No sandbox plugin is installed; a person has to install one (and bubblewrap or Docker) first."
)


class SandboxSelector:
    """The backends in the order of preference."""

    def __init__(self, backends: Sequence[OwnedItem[Sandbox]], kill_switch: KillSwitch) -> None:
        self._backends = tuple(backends)
        self.kill_switch = kill_switch
        self._chosen: Sandbox | None = None
        self._until = 0.0

    async def select(self) -> Sandbox:
        """Return the sandbox to use.

        Raises:
            ToolError: there is none, and the text states what to install or permit; or the kill switch is engaged.
        """
        self.kill_switch.raise_if_engaged()
        if self._chosen is not None and anyio.current_time() < self._until:
            return self._chosen
        reasons = []
        for owned in self._backends:
            backend = owned.item
            reason = await _unavailable(owned.owner, backend)
            if reason is None:
                self._chosen, self._until = backend, anyio.current_time() + ASK_AGAIN
                return backend
            reasons.append(f"{backend.name}: {reason}")
        self._chosen = None
        raise ToolError(
            f"Programs run only in a sandbox, and none is available. {' '.join(reasons) or NO_SANDBOX_HINT}",
            kind="unsupported",
        )

    async def serve(self) -> None:
        """Run the background work of the backends, until cancelled."""
        async with anyio.create_task_group() as tasks:
            for owned in self._backends:
                tasks.start_soon(_serve, owned)

    async def end_all(self) -> None:
        """End every program of this home, including programs that other workers started."""
        async with anyio.create_task_group() as tasks:
            for owned in self._backends:
                tasks.start_soon(_end_all, owned)


@dataclass(frozen=True, slots=True)
class ProgramBounds:
    """The upper limits of the programs of a call.

    ``network`` permits a network, ``seconds`` is the time limit, ``hint`` states how to permit a network.
    ``read_only``: the call was allowed because it only reads, so its programs cannot write. ``host`` is the use of
    this machine's own network: ``no``, ``asked`` (for programs that ask for it) or ``granted`` (for all programs with
    a network).
    """

    network: bool = False
    host: Literal["no", "asked", "granted"] = "no"
    seconds: float | None = None
    hint: str = ""
    read_only: bool = False

    def bound(self, limits: SandboxLimits) -> SandboxLimits:
        """Return the limits, reduced to these bounds.

        Raises ToolError for a network that is not permitted, and for limits of 0 or less, which backends
        treat as no limit.
        """
        bounded = (limits.timeout, limits.memory, limits.cpus, limits.processes, limits.output)
        if not all(one > 0 for one in bounded):
            raise ToolError("A program's limits must be above 0. Nothing was run.", kind="invalid_arguments")
        if self.read_only:
            limits = replace(limits, writable=False, network=False, host_network=False, repository="")
        if limits.host_network and self.host == "no":
            raise ToolError(
                f"Programs may not use this machine's own network here. {HOST_NETWORK_HINT} Nothing was run.",
                kind="permission_denied",
            )
        if limits.network and not self.network:
            raise ToolError(
                f"Programs may not use a network here. {self.hint}. Nothing was run.",
                kind="permission_denied",
            )
        if limits.network and self.host == "granted":
            limits = replace(limits, host_network=True)
        if self.seconds is None or limits.timeout <= self.seconds:
            return limits
        return replace(limits, timeout=self.seconds)


CurrentBounds = Callable[[], Awaitable[ProgramBounds]]
"""Returns the current bounds. Raises ToolError when they cannot be determined."""


class CallSandbox(Sandbox):
    """The sandbox that a tool receives. It uses the backend and the permissions at the time of each use, and labels
    programs with the call. With ``reads_only`` programs cannot write. ``output`` shows the output of programs whose
    request asks for that.
    """

    name = "chosen"

    def __init__(
        self,
        sandboxes: SandboxSelector,
        label: str,
        bounds: CurrentBounds,
        *,
        tool: str = "",
        output: LiveOutput | None = None,
        reads_only: bool = False,
    ) -> None:
        self._sandboxes = sandboxes
        self._label = label
        self._bounds = bounds
        self._tool = tool
        self._output = output
        self._reads_only = reads_only

    def read_only(self) -> "CallSandbox":
        """Return the same sandbox, read-only and without a network."""
        return CallSandbox(
            self._sandboxes,
            self._label,
            self._bounds,
            tool=self._tool,
            output=self._output,
            reads_only=True,
        )

    async def _within(self, limits: SandboxLimits) -> SandboxLimits:
        return replace(await self._bounds(), read_only=self._reads_only).bound(limits)

    async def unavailable(self) -> str | None:
        """Return why there is no backend; None when there is one."""
        try:
            await self._sandboxes.select()
        except ToolError as error:
            return str(error)
        return None

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        """Start a program; see ``Sandbox``. Raises ToolError, which states what to install, when there is no
        backend."""
        bounded = await self._bounded(request)
        backend = await self._sandboxes.select()
        process = await backend.start_program(bounded)
        if (
            self._sandboxes.kill_switch.is_engaged
        ):  # engaged during the start: panic may have missed the program
            await process.__aexit__(None, None, None)
            self._sandboxes.kill_switch.raise_if_engaged()
        if request.show_output and self._output is not None:
            self._output.observe(process)
        return process

    async def run_program(self, request: ProgramRequest, stdin: bytes) -> SandboxResult:
        """See ``Sandbox``. When the panic command ended the program before this worker noticed the panic, the error
        says so.
        """
        result = await super().run_program(await self._bounded(request), stdin)
        panicked = result.killed and self._sandboxes.kill_switch.is_engaged
        return replace(result, killed="panic") if panicked else result

    async def _bounded(self, request: ProgramRequest) -> ProgramRequest:
        """Return the request within the current bounds, labelled with the call."""
        return replace(
            request,
            limits=await self._within(request.limits),
            label=request.label or self._label,
            tool=self._tool,
        )

    async def leave(
        self,
        argv: Sequence[str],
        *,
        record: Path,
        workspace: Path,
        env: Mapping[str, str],
        folder: str = "",
        limits: SandboxLimits = DEFAULT_LIMITS,
        label: str = "",
    ) -> None:
        """Start a detached program; see ``Sandbox``. A detached program cannot use this machine's own network, which
        is granted only for minutes.
        """
        check_program(argv, workspace=workspace, env=env, folder=folder)
        bounded = await self._within(limits)
        if limits.host_network:
            raise ToolError(
                "A background program may not use this machine's own network, which is granted for minutes only.",
                kind="unsupported",
            )
        spec = ProgramSpec(
            home=str(self._sandboxes.kill_switch.home),
            backend=(await self._sandboxes.select()).name,
            argv=tuple(argv),
            workspace=str(workspace),
            env=dict(env),
            folder=folder,
            label=label or self._label,
            seconds=bounded.timeout,
            memory=bounded.memory,
            cpus=bounded.cpus,
            processes=bounded.processes,
            network=bounded.network,
            writable=bounded.writable,
            tool=self._tool,
            at=utc_now(),
        )
        await launch_detached(DetachedProgram(record), spec)


def with_read_only_sandbox(invocation: ToolInvocation) -> ToolInvocation:
    """Return the invocation in the form that the tool receives.

    A program that needs no approval because it only reads gets a read-only sandbox without a network. So it changes
    nothing even when git runs a program from a repository's configuration. The same applies to programs of a tool
    with the effect ``read``, whose calls need no approval.
    """
    spec, sandbox = invocation.spec, invocation.context.sandbox
    reads_only = spec.effect == "read" or is_read_only_call(spec, invocation.arguments)
    if not (reads_only and isinstance(sandbox, CallSandbox)):
        return invocation
    return replace(invocation, context=replace(invocation.context, sandbox=sandbox.read_only()))


async def _serve(owned: OwnedItem[Sandbox]) -> None:
    try:
        await owned.item.serve()
    except Exception:
        log.exception("the background work of the sandbox %s of %s failed", owned.item.name, owned.owner)


async def _end_all(owned: OwnedItem[Sandbox]) -> None:
    try:
        ended = await owned.item.end_all()
    except Exception:
        log.exception("the sandbox %s of %s could not end its programs", owned.item.name, owned.owner)
    else:
        log.warning("panic: the sandbox %s ended %d programs", owned.item.name, ended)


async def _unavailable(owner: str, backend: Sandbox) -> str | None:
    try:
        return await backend.unavailable()
    except Exception:
        log.exception("the check of the sandbox %s of %s failed", backend.name, owner)
        return "it failed; see the log of the tools worker."
