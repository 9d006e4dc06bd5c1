"""Starts each isolated plugin in a separate process beside an embedded server, and restarts the process when it ends.

Each process has a NATS user with the permissions of its plugin, and an environment that contains only the variables
granted to the plugin.
"""

import logging
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

from trunkline.acl.accounts import ANSWER_WITHIN
from trunkline.acl.roles import plugin_role as plugin_role
from trunkline.acl.subject_permissions import subject_permissions
from trunkline.config import Config
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.plugins import PluginState
from trunkline.runtime.plugin_log import forward_output
from trunkline_bus import ServerUser
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

EXIT_UNUSABLE = 78
"""The exit status (EX_CONFIG) of a plugin's process that a restart would not help."""

FIRST_PAUSE, LONGEST_PAUSE, STABLE_SECONDS = 0.2, 10.0, 60.0
ENDING_SECONDS = 5.0
OUTPUT_SECONDS = 1.0
"""Seconds for reading the remaining output of an ended process."""

PASSED_VARIABLES = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    }
)
"""The variables that every process gets, besides those that begin with ``LC_``."""

PASSED_SETTING_PREFIXES = (
    "TRUNKLINE_PLUGINS__",
    "TRUNKLINE_TELEMETRY__",
    "TRUNKLINE_CHANNELS__ENABLED",
    "TRUNKLINE_RUNTIME__TOOL_SOURCES",
)


@dataclass(frozen=True, slots=True)
class PluginProcess:
    """A plugin that runs in a separate process. ``user`` is its NATS user."""

    name: str
    owner: str
    hosting: PluginHostSettings
    user: ServerUser


def plan_plugin_processes(config: Config, plugins: Iterable[PluginState]) -> tuple[PluginProcess, ...]:
    """Return the isolated plugins, each with a user and a new password."""
    return tuple(_plan_plugin_process(config, state) for state in plugins if state.status == "isolated")


def _plan_plugin_process(config: Config, state: PluginState) -> PluginProcess:
    hosting = config.plugin_host(state.name, state.owner)
    channels = tuple(
        name for name in hosting.channels_of(state.name) if name in config.settings.channels.enabled
    )
    role = plugin_role(state.name, channels)
    given = subject_permissions(role, (role,))
    user = ServerUser(
        user=role.name, password=secrets.token_urlsafe(24), publish=given.publish, subscribe=given.subscribe,
        answer_within=ANSWER_WITHIN,
    )  # fmt: skip
    return PluginProcess(state.name, state.owner, hosting, user)


async def supervise_plugin(child: PluginProcess, config: Config, url: str) -> None:
    """Keep the plugin's process running until cancelled, or until it reports that it cannot be used."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    while True:
        started_at = anyio.current_time()
        status = await _run_once(child, config, url)
        if status == EXIT_UNUSABLE:
            log.error("plugin %s is not started again; its last line above states the reason", child.name)
            return
        if anyio.current_time() - started_at > STABLE_SECONDS:
            backoff.reset()
        log.error(
            "the process of plugin %s ended (%s) and starts again in %g s", child.name, status, backoff.delay
        )
        await backoff.sleep()


async def _run_once(child: PluginProcess, config: Config, url: str) -> int:
    """Start the process, wait for its end, and then end the rest of its process group. Return the exit status."""
    process = await anyio.open_process(
        [sys.executable, "-m", "trunkline.cli.main", "run", "plugin", child.name, "--log", "json"],
        env=dict(environment(child, config, url)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=config.home,
        start_new_session=True,
    )
    assert process.stdout is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(forward_output, child.name, process.stdout)
        try:
            status = await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
        tasks.cancel_scope.deadline = (
            anyio.current_time() + OUTPUT_SECONDS
        )  # a process that left the group may still hold the pipe
    return status


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(ENDING_SECONDS):
            await process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def environment(child: PluginProcess, config: Config, url: str) -> Iterator[tuple[str, str]]:
    """Yield the environment variables of the process."""
    wanted = {
        *PASSED_VARIABLES,
        *child.hosting.isolation_environ,
        *config.secret_variables_of(child.name, child.owner),
    }
    for name, value in config.environ.items():
        if name in wanted or name.startswith(("LC_", *PASSED_SETTING_PREFIXES)):
            yield name, value
    yield "TRUNKLINE_HOME", str(config.home)
    yield "TRUNKLINE_BUS__URL", url
    yield "TRUNKLINE_BUS__USER", child.user.user
    yield "TRUNKLINE_BUS__PASSWORD", child.user.password
    yield "TRUNKLINE_BUS__INBOX_PREFIX", "_INBOX_{user}"
    yield "TRUNKLINE_CHANNELS__ENABLED", ",".join(config.settings.channels.enabled)
    yield "PYTHONPATH", os.pathsep.join(_import_path(config))


def _import_path(config: Config) -> Iterator[str]:
    """Yield the import path of this process, so that the plugin's process finds the plugin at the same place."""
    yield from (
        entry for entry in sys.path if entry and Path(entry).is_dir() and "site-packages" not in entry
    )
