"""Runs the checks, each apart from the others and with a deadline. No check may be in here."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio
import msgspec

from trunkline.cli.checks import (
    bus_checks,
    data_checks,
    host_checks,
    memory_file_checks,
    plugin_checks,
    search_checks,
    turn_checks,
)
from trunkline.cli.checks.check import Check, CheckContext, CheckReport
from trunkline.config import Config, load_config
from trunkline.contracts.plugins.extensions import HealthCheck, HealthResult
from trunkline.errors import ConfigError, TrunklineError
from trunkline.home.paths import Home
from trunkline.home.run_file import read_run_file
from trunkline.plugins import Plugins
from trunkline.runtime.connection_settings import bus_settings
from trunkline_bus import BusError, BusSettings, connect

log = logging.getLogger(__name__)

CHECKS: dict[str, Check] = {
    "home.writable": host_checks.home_writable,
    "home.permissions": host_checks.home_permissions,
    "home.form": host_checks.home_form,
    "disk.space": host_checks.disk_space,
    "bus.reachable": bus_checks.bus_reachable,
    "bus.version": bus_checks.bus_version,
    "workers.alive": bus_checks.workers_alive,
    "streams.form": bus_checks.streams_form,
    "streams.room": bus_checks.streams_room,
    "home.restore": data_checks.home_restore,
    "memory.history": data_checks.memory_history,
    "memory.stored": bus_checks.memory_stored,
    "memory.files": data_checks.memory_files,
    "memory.search": search_checks.memory_search,
    "memory.lock": data_checks.memory_lock,
    "memory.settings": memory_file_checks.memory_settings,
    "memory.instructions": memory_file_checks.memory_instructions,
    "memory.policies": memory_file_checks.memory_policies,
    "memory.purges": data_checks.memory_purges,
    "remotes.files": data_checks.remotes_files,
    "memory.names": memory_file_checks.memory_names,
    "memory.chunks": data_checks.memory_chunks,
    "gateway.port": data_checks.gateway_port,
    "gateway.local": data_checks.gateway_local,
    "gateway.token": data_checks.gateway_token,
    "plugins.loaded": plugin_checks.plugins_loaded,
    "tools.manifests": plugin_checks.tools_manifests,
    "adapter.configured": plugin_checks.adapter_configured,
    "adapter.reachable": plugin_checks.adapter_reachable,
    "tools.always_send": turn_checks.tools_always_send,
    "turns.bounded": turn_checks.turns_bounded,
    "panic.released": host_checks.panic_released,
    "sandbox.available": plugin_checks.sandbox_available,
    "documents.readable": plugin_checks.documents_readable,
}
"""The checks after ``python.version`` and ``config.valid``, by their stable ids."""

CHECK_TIMEOUT = 5.0
"""How long one check may take; the one that goes online has a deadline of its own."""

NEEDS_ONLINE = "asks over the network: --online"


async def run_checks(online: bool = False, read: Callable[[], Config] = load_config) -> list[CheckReport]:
    """All findings in order. Without a usable configuration, only what can be said without one."""
    findings = [_python()]
    try:
        config = read()
    except ConfigError as error:
        findings.append(_finding("config.valid", HealthResult("error", error.sentence, error.hint)))
        return findings + [CheckReport(id=name, status="skipped", summary="not looked at") for name in CHECKS]
    async with AsyncExitStack() as resources:
        patient = await _patient(config, online, resources)
        findings.append(_config_valid(patient))
        findings += [await _checked(name, check, patient) for name, check in CHECKS.items()]
        findings += await _of_plugins(patient)
    return findings


def _python() -> CheckReport:
    return _finding("python.version", host_checks.python_version())


def _config_valid(patient: CheckContext) -> CheckReport:
    problems = patient.plugins.config_problems() if patient.plugins is not None else ()
    if not problems:
        file = patient.config.file
        said = f"{file} and the environment are fine"
        if not file.exists():
            said = f"The environment is fine; there is no {file}, so the defaults count"
        return _finding("config.valid", HealthResult("ok", said))
    said = "; ".join(str(problem) for problem in problems)
    return _finding("config.valid", HealthResult("error", said, "Correct the settings named."))


async def _patient(config: Config, online: bool, resources: AsyncExitStack) -> CheckContext:
    home = Home.of(config)
    patient = CheckContext(config, home, online, resources, run=read_run_file(home))
    try:
        patient.plugins = Plugins.load(config)
    except TrunklineError as error:
        patient.plugins_error = error
    try:
        if (settings := _where(patient)) is not None:
            patient.bus = await resources.enter_async_context(connect(settings))
    except (BusError, TrunklineError) as error:
        patient.bus_error = str(error)
    return patient


def _where(patient: CheckContext) -> BusSettings | None:
    """Return the address and credentials of the bus; None when no bus can be reached."""
    run = patient.run
    if patient.config.settings.bus.url is not None:
        settings = bus_settings(patient.config)
    elif run is not None:
        settings = bus_settings(
            patient.config, url=run.url, user=run.user or None, password=run.password or None
        )
    else:
        return None
    return msgspec.structs.replace(settings, name="doctor", connect_timeout=3.0)


async def _checked(name: str, check: Check, patient: CheckContext) -> CheckReport:
    if name == "adapter.reachable" and not patient.online:
        return CheckReport(id=name, status="skipped", summary=NEEDS_ONLINE)
    seconds = CHECK_TIMEOUT if name != "adapter.reachable" else 4 * plugin_checks.ONLINE_SECONDS
    return await _guarded(name, lambda: check(patient), seconds)


async def _of_plugins(patient: CheckContext) -> list[CheckReport]:
    if patient.plugins is None:
        return []
    return [
        await _of_plugin(owned.owner, owned.item, patient.online) for owned in patient.plugins.health_checks()
    ]


async def _of_plugin(owner: str, one: HealthCheck, online: bool) -> CheckReport:
    name = one.id if one.id not in CHECKS else f"{owner}.{one.id}"
    if one.online and not online:
        return CheckReport(id=name, status="skipped", summary=NEEDS_ONLINE, owner=owner)
    return await _guarded(
        name, one.check, plugin_checks.ONLINE_SECONDS if one.online else CHECK_TIMEOUT, owner
    )


async def _guarded(
    name: str, check: Callable[[], Awaitable[HealthResult | None]], seconds: float, owner: str = ""
) -> CheckReport:
    """The finding of one check, whatever the check does."""
    try:
        with anyio.fail_after(seconds):
            result = await check()
    except TimeoutError:
        result = HealthResult(
            "error", f"The check did not end in {seconds:g} s.", "Something it looks at hangs."
        )
    except Exception as error:
        log.debug("check %s failed", name, exc_info=True)
        result = HealthResult(
            "error", f"The check itself failed: {type(error).__name__}: {error}", "Please report it."
        )
    if result is None:
        return CheckReport(id=name, status="skipped", summary="does not apply here", owner=owner)
    return _finding(name, result, owner)


def _finding(name: str, result: HealthResult, owner: str = "") -> CheckReport:
    return CheckReport(id=name, status=result.status, summary=result.summary, hint=result.hint, owner=owner)
