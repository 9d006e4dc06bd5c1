"""A NATS server with the shipped configuration and workers as processes, each under its own user."""

import json
import secrets
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx

from trunkline.acl.accounts import accounts_config, password_variable
from trunkline.acl.roles import all_roles
from trunkline.acl.subject_permissions import inbox_prefix
from trunkline.cli.checks.bus_checks import server_binary
from trunkline.config.editor import write_settings
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.platform import DEFAULTS, PlatformClient, clean_environ
from trunkline.testing.worker_process import WorkerProcess
from trunkline_bus import Bus, BusSettings, connect

ROOT = Path(__file__).parents[2]
CONF = ROOT / "deploy/nats/nats-server.conf"
CHANNEL = "mail"
"""A channel that a plugin offers. The shipped accounts have none; it is added as ``deploy/README.md`` says."""

DELEGATIONS = {"external": ("main",)}
"""The agents that ``deploy/nats/accounts.conf`` lends blocks to, and the blocks."""

SHIPPED = tuple(role.name for role in all_roles((), delegations=DELEGATIONS))
"""The users of ``deploy/nats/accounts.conf``."""

USERS = tuple(role.name for role in all_roles((CHANNEL,), delegations=DELEGATIONS))
WORKERS: Mapping[WorkerKind, str] = {
    "gateway": "gateway",
    "monitor": "monitor",
    "tools": "tools",
    "memory": "memory",
    "channels": f"channel-{CHANNEL}",
}
"""The user of each kind of worker."""

Server = tuple[str, str]


class Installation(PlatformClient):
    """The server's address, the users' passwords, and the workers. Connects as the operator."""

    def __init__(self, bus: Bus, server: "NatsServer", passwords: Mapping[str, str], home: Path) -> None:
        super().__init__(bus, timeout=60.0)
        self.gateway = GatewayClient(bus, "cli")
        self.server, self.passwords, self.home = server, passwords, home
        self.processes: dict[str, WorkerProcess] = {}

    def environ(self, user: str) -> dict[str, str]:
        """Return the environment of a process under this user, as the compose file and the units set it."""
        return {
            **clean_environ(),
            "PYTHONUNBUFFERED": "1",
            "TRUNKLINE_HOME": str(self.home),
            "TRUNKLINE_BUS__URL": self.server.url,
            "TRUNKLINE_BUS__USER": user,
            "TRUNKLINE_BUS__PASSWORD": self.passwords[user],
            "TRUNKLINE_BUS__INBOX_PREFIX": "_INBOX_{user}",
            "TRUNKLINE_BUS__MANAGE_STREAMS": "false",
        }

    def launch(self, kind: str, user: str) -> WorkerProcess:
        """Start a process under a user."""
        log = self.home / f"{user}.log"
        process = WorkerProcess(kind, user, log, self.environ(user))  # type: ignore[arg-type]
        self.processes[user] = process
        process.launch()
        return process

    def logs(self) -> str:
        """Return the logs of all processes."""
        return "\n".join(f"--- {name}\n{process.text()}" for name, process in self.processes.items())

    def denied(self) -> list[str]:
        """Return the permissions violations in the server's log."""
        return [
            line for line in (self.home.parent / "nats.log").read_text().splitlines() if "Violation" in line
        ]

    def streams(self) -> dict[str, Any]:
        """Return every stream's settings, contents and consumers, which the server reports to its own machine only."""
        query = {"streams": "true", "config": "true", "consumers": "true"}
        found = (
            httpx.get(f"{self.server.monitoring}/jsz", params=query, trust_env=False, timeout=60)
            .raise_for_status()
            .json()
        )
        kept = [stream for account in found["account_details"] for stream in account["stream_detail"]]
        return {
            stream["name"]: {
                "config": stream["config"],
                "messages": stream["state"]["messages"],
                "last_seq": stream["state"]["last_seq"],
                "consumers": sorted(one["name"] for one in stream.get("consumer_detail") or ()),
            }
            for stream in kept
        }


def as_user(user: str, url: str, passwords: Mapping[str, str]) -> BusSettings:
    return BusSettings(
        url=url, user=user, password=passwords[user], name="test", inbox_prefix=inbox_prefix(user),
        dead_letters="trunkline.dead.letters", claims="claims",
    )  # fmt: skip


class NatsServer:
    """nats-server with the shipped configuration and the channel's user, on free ports that a restart keeps."""

    def __init__(self, folder: Path, passwords: Mapping[str, str]) -> None:
        self.url = self.monitoring = ""
        self._folder = folder
        (folder / CONF.name).write_text(CONF.read_text())
        (folder / "accounts.conf").write_text(accounts_config((CHANNEL,), delegations=DELEGATIONS))
        self._environ = {password_variable(user): password for user, password in passwords.items()}
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it and wait until it listens."""
        ports = self._folder / "ports"
        ports.mkdir(exist_ok=True)
        self._process = self._launched(ports)
        with anyio.fail_after(60):
            while (found := _listening(ports)) is None:
                assert self._process.poll() is None, (self._folder / "nats.log").read_text()
                await anyio.sleep(0.02)
        self.url, self.monitoring = found

    def _launched(self, ports: Path) -> "subprocess.Popen[bytes]":
        binary = server_binary()
        assert binary is not None
        environ = {
            **self._environ,
            "TRUNKLINE_NATS_LISTEN": self.url.removeprefix("nats://") or "127.0.0.1:-1",
            "TRUNKLINE_NATS_STORE": str(self._folder / "store"),
        }
        monitoring = self.monitoring.rpartition(":")[2] or "-1"
        conf = str(self._folder / CONF.name)
        argv = [str(binary), "-c", conf, "-m", monitoring, "--ports_file_dir", str(ports)]
        with (self._folder / "nats.log").open("ab") as log:
            return subprocess.Popen(argv, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for file in (self._folder / "ports").glob("*.ports"):
            file.unlink()


def _listening(ports: Path) -> Server | None:
    for file in ports.glob("*.ports"):
        with suppress(ValueError, LookupError):  # half written
            said = json.loads(file.read_text())
            return said["nats"][0], said["monitoring"][0]
    return None


@asynccontextmanager
async def installation(
    folder: Path,
    *,
    settings: Mapping[str, Any],
    workers: Sequence[WorkerKind] = tuple(WORKERS),
    streams_last: bool = False,
) -> AsyncIterator[Installation]:
    """The server, ``trunkline run streams``, and one process of each kind of worker."""
    passwords = {user: "p" + secrets.token_hex(16) for user in USERS}
    home = folder / "home"
    home.mkdir()
    write_settings(home / "trunkline.toml", {**DEFAULTS, **settings})
    async with AsyncExitStack() as stack:
        server = NatsServer(folder, passwords)
        stack.callback(server.kill)
        await server.start()
        bus = await stack.enter_async_context(connect(as_user("operator", server.url, passwords)))
        running = Installation(bus, server, passwords, home)
        stack.callback(lambda: [one.kill() for one in running.processes.values()])
        try:
            if not streams_last:
                await streams_ready(running)
            for kind in workers:
                running.launch(kind, WORKERS[kind])
            for kind in workers:
                await running.processes[WORKERS[kind]].ready()
            if streams_last:
                await streams_ready(running)
            yield running
        except BaseException:
            print(running.logs()[-20_000:])  # noqa: T201 - pytest shows it with the failure
            print((folder / "nats.log").read_text()[-5_000:])  # noqa: T201
            raise


async def streams_ready(running: Installation) -> None:
    process = running.launch("streams", "streams")
    with anyio.fail_after(60):
        while "The streams are ready" not in process.text():
            assert process.alive, process.text()
            await anyio.sleep(0.02)
