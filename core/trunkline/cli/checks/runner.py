"""Runs the checks, each independently and with a time limit. This module contains no check."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio
import msgspec

from trunkline.cli.checks import (
    bus_checks,
    channel_checks,
    data_checks,
    host_checks,
    memory_checks,
    plugin_checks,
    turn_checks,
)
from trunkline.cli.checks.check import Check, CheckContext, CheckReport
from trunkline.config import Config, load_config
from trunkline.config.settings import DEFAULT_STORE
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
    "home.version": host_checks.home_version,
    "disk.space": host_checks.disk_space,
    "bus.reachable": bus_checks.bus_reachable,
    "bus.server_version": bus_checks.bus_server_version,
    "workers.alive": bus_checks.workers_alive,
    "streams.version": bus_checks.streams_version,
    "streams.capacity": bus_checks.streams_capacity,
    "home.restore": data_checks.home_restore,
    "memory.store": data_checks.memory_store,
    "memory.writes": bus_checks.memory_writes,
    "memory.search": memory_checks.memory_search,
    "memory.lock": data_checks.memory_lock,
    "memory.settings": memory_checks.memory_settings,
    "memory.instructions": memory_checks.memory_instructions,
    "memory.policies": memory_checks.memory_policies,
    "memory.purges": data_checks.memory_purges,
    "remotes.files": data_checks.remotes_files,
    "memory.tool_names": memory_checks.memory_tool_names,
    "gateway.port": data_checks.gateway_port,
    "gateway.address": data_checks.gateway_address,
    "gateway.token": data_checks.gateway_token,
    "plugins.loaded": plugin_checks.plugins_loaded,
    "plugins.names": plugin_checks.plugins_names,
    "plugins.locales": plugin_checks.plugins_locales,
    "plugins.models": plugin_checks.plugins_models,
    "tools.manifests": plugin_checks.tools_manifests,
    "adapter.configured": plugin_checks.adapter_configured,
    "adapter.reachable": plugin_checks.adapter_reachable,
    "channels.accounts": channel_checks.channels_accounts,
    "models.circuits": turn_checks.models_circuits,
    "models.keys": turn_checks.models_keys,
    "tools.always_send": turn_checks.tools_always_send,
    "turns.limits": turn_checks.turns_limits,
    "panic.released": host_checks.panic_released,
    "sandbox.available": plugin_checks.sandbox_available,
    "documents.formats": plugin_checks.documents_formats,
}
"""The checks after ``python.version`` and ``config.valid``, by their stable ids."""

ONLINE_CHECKS = frozenset({"plugins.models", "adapter.reachable"})
"""The checks that reach hosts besides the bus."""

CHECK_TIMEOUT = 5.0
"""Seconds that one check may take. The online checks have their own deadline."""

NEEDS_ONLINE = "uses the network; trunkline doctor --online runs it"


async def run_checks(online: bool = False, read: Callable[[], Config] = load_config) -> list[CheckReport]:
    """Run all checks and return their results in order. Without a valid configuration, the other checks are skipped."""
    findings = [_python()]
    try:
        config = read()
    except ConfigError as error:
        findings.append(_finding("config.valid", HealthResult("error", error.sentence, error.hint)))
        return findings + [CheckReport(id=name, status="skipped", summary="not checked") for name in CHECKS]
    async with AsyncExitStack() as resources:
        context = await _make_context(config, online, resources)
        findings.append(_config_valid(context))
        for name, check in CHECKS.items():
            findings.append(await _run_check(name, check, context))
            if name == "memory.store":
                findings += await _store_checks(context)
        findings += await _plugin_checks(context)
    return findings


def _python() -> CheckReport:
    return _finding("python.version", host_checks.python_version())


def _config_valid(context: CheckContext) -> CheckReport:
    problems = context.plugins.config_problems() if context.plugins is not None else ()
    if not problems:
        file = context.config.file
        said = f"{file} and the environment are valid"
        if not file.exists():
            said = f"The environment is valid; there is no {file}, so the defaults apply"
        return _finding("config.valid", HealthResult("ok", said))
    said = "; ".join(str(problem) for problem in problems)
    return _finding("config.valid", HealthResult("error", said, "Correct these settings."))


async def _make_context(config: Config, online: bool, resources: AsyncExitStack) -> CheckContext:
    home = Home.of(config)
    context = CheckContext(config, home, online, resources, run=read_run_file(home))
    try:
        context.plugins = Plugins.load(config)
    except TrunklineError as error:
        context.plugins_error = error
    try:
        if (settings := _where(context)) is not None:
            context.bus = await resources.enter_async_context(connect(settings))
    except (BusError, TrunklineError) as error:
        context.bus_error = str(error)
    return context


def _where(context: CheckContext) -> BusSettings | None:
    """Return the address and credentials of the bus; None when no bus can be reached."""
    run = context.run
    if context.config.settings.bus.url is not None:
        settings = bus_settings(context.config)
    elif run is not None:
        settings = bus_settings(
            context.config, url=run.url, user=run.user or None, password=run.password or None
        )
    else:
        return None
    return msgspec.structs.replace(settings, name="doctor", connect_timeout=3.0)


async def _run_check(name: str, check: Check, context: CheckContext) -> CheckReport:
    if name in ONLINE_CHECKS and not context.online:
        return CheckReport(id=name, status="skipped", summary=NEEDS_ONLINE)
    seconds = CHECK_TIMEOUT if name not in ONLINE_CHECKS else 4 * plugin_checks.ONLINE_SECONDS
    return await _guarded(name, lambda: check(context), seconds)


async def _store_checks(context: CheckContext) -> list[CheckReport]:
    """Run the checks of the memory store that is used."""
    owner, store = context.config.settings.memory.store or DEFAULT_STORE, data_checks.chosen_store(context)
    checks = () if store is None else store.health_checks(context.home.memory, context.home.cache)
    return [await _plugin_check(owner, check, context.online) for check in checks]


async def _plugin_checks(context: CheckContext) -> list[CheckReport]:
    if context.plugins is None:
        return []
    return [
        await _plugin_check(owned.owner, owned.item, context.online)
        for owned in context.plugins.health_checks()
    ]


async def _plugin_check(owner: str, one: HealthCheck, online: bool) -> CheckReport:
    name = one.id if one.id not in CHECKS else f"{owner}.{one.id}"
    if one.online and not online:
        return CheckReport(id=name, status="skipped", summary=NEEDS_ONLINE, owner=owner)
    return await _guarded(
        name, one.check, plugin_checks.ONLINE_SECONDS if one.online else CHECK_TIMEOUT, owner
    )


async def _guarded(
    name: str, check: Callable[[], Awaitable[HealthResult | None]], seconds: float, owner: str = ""
) -> CheckReport:
    """Run one check and return its result. A failure or a timeout of the check is an error result."""
    try:
        with anyio.fail_after(seconds):
            result = await check()
    except TimeoutError:
        result = HealthResult(
            "error",
            f"The check did not end in {seconds:g} s.",
            "A resource that it examines does not respond.",
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
