"""Starts plugins in processes of their own beside an embedded server, and starts them again when they end.

Each has a NATS user that may do what that plugin does, and an environment with nothing in it that it was not given.
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

log = logging.getLogger(__name__)

EXIT_UNUSABLE = 78
"""The exit status (EX_CONFIG) of a plugin's process that would end in the same way if it were started again."""

FIRST_PAUSE, LONGEST_PAUSE, STABLE_SECONDS = 0.2, 10.0, 60.0
ENDING_SECONDS = 5.0
LAST_WORDS = 1.0
"""Seconds in which what an ended process printed is taken in."""

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
"""Variables that every process is given, and those that begin with ``LC_``."""

PASSED_SETTING_PREFIXES = (
    "TRUNKLINE_PLUGINS__",
    "TRUNKLINE_TELEMETRY__",
    "TRUNKLINE_CHANNELS__ENABLED",
    "TRUNKLINE_RUNTIME__TOOL_SOURCES",
)


@dataclass(frozen=True, slots=True)
class PluginProcess:
    """A plugin that is to run apart. ``user`` is its NATS user."""

    name: str
    owner: str
    hosting: PluginHostSettings
    user: ServerUser


def plan_plugin_processes(config: Config, plugins: Iterable[PluginState]) -> tuple[PluginProcess, ...]:
    """The plugins that are to run apart, each with a user and a new password."""
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
    """Keep the plugin's process running until cancelled, or until it says that it cannot be used."""
    pause = FIRST_PAUSE
    while True:
        born = anyio.current_time()
        status = await _run_once(child, config, url)
        if status == EXIT_UNUSABLE:
            log.error("plugin %s is not started again; its last line above says why", child.name)
            return
        pause = FIRST_PAUSE if anyio.current_time() - born > STABLE_SECONDS else pause
        log.error("the process of plugin %s ended (%s) and starts again in %g s", child.name, status, pause)
        await anyio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _run_once(child: PluginProcess, config: Config, url: str) -> int:
    """Start the process and wait for its end; whatever it left running in its group ends with it."""
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
            anyio.current_time() + LAST_WORDS
        )  # who left its group may hold the pipe
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
    """Where this process imports from, so that the plugin is found there as it was found here."""
    yield from (
        entry for entry in sys.path if entry and Path(entry).is_dir() and "site-packages" not in entry
    )
