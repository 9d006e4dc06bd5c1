"""The image is built by its Dockerfile, and the compose file's services hold a conversation in containers of it."""

import io
import json
import re
import secrets
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from docker.models.containers import Container
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from trunkline.acl.accounts import password_variable
from trunkline.testing.platform import UNASKED

from .image import image, no_engine
from .installation import ROOT, SHIPPED

pytestmark = [
    pytest.mark.kill,
    pytest.mark.timeout(900),
    pytest.mark.skipif((missing := no_engine()) is not None, reason=missing or ""),
]

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
PROGRAMS: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.programs.yaml").read_text())
STARTED = ("nats", "streams", "memory", "tools", "monitor", "gateway")
PASSWORDS = {password_variable(user): "p" + secrets.token_hex(16) for user in SHIPPED}

UNPRIVILEGED = """
import os, pathlib, re
status = pathlib.Path("/proc/1/status").read_text()
assert os.getuid() == 10001
assert re.search(r"^CapEff:\\s+0+$", status, re.MULTILINE)
assert re.search(r"^NoNewPrivs:\\s+1$", status, re.MULTILINE)
"""


class Composed:
    """The services that run, each as the compose file has it. Volumes are this one's own."""

    def __init__(self, name: str, network: Network) -> None:
        self.containers: dict[str, DockerContainer] = {}
        self.image, self._network = name, network
        self._project = f"tl{secrets.token_hex(4)}"

    def start(self, service: str, command: list[str] | None = None) -> Container:
        """Start a service, or run it with another command."""
        what = COMPOSE["services"][service]
        made = DockerContainer(self.image).with_network(self._network).with_network_aliases(service)
        for name, value in {**what.get("environment", {}), **UNASKED}.items():
            made = made.with_env(name, _filled(str(value)))
        for place in what["tmpfs"]:
            made = made.with_tmpfs_mount(place)
        for text in what["volumes"]:
            made = made.with_volume_mapping(*self._volume(text))
        if "ports" in what:
            made.ports[8420] = ("127.0.0.1",)  # any free one, where the compose file has a fixed one
        made = made.with_kwargs(**_settings(what)).with_command(command or what.get("command"))
        self.containers[service] = made
        made.start()
        return made.get_wrapped_container()

    def _volume(self, text: str) -> tuple[str, str, str]:
        source, place, mode = (*text.split(":"), "rw")[:3]
        if source.startswith("./"):
            return str(ROOT / "deploy" / source), place, mode
        return f"{self._project}-{source}", place, mode

    def logs(self) -> str:
        """Return the logs of all services."""
        return "\n".join(
            f"--- {name}\n{one.get_wrapped_container().logs().decode()[-3000:]}"
            for name, one in self.containers.items()
        )

    def remove(self) -> None:
        """Leave nothing behind."""
        client = next(iter(self.containers.values())).get_docker_client().client if self.containers else None
        for one in self.containers.values():
            one.stop()
        for volume in client.volumes.list() if client else ():
            if volume.name.startswith(self._project):
                volume.remove(force=True)


def _settings(what: dict[str, Any]) -> dict[str, Any]:
    """The service's other settings in the engine's words."""
    assert (what["read_only"], what["cap_drop"]) == (True, ["ALL"])
    health = what.get("healthcheck")
    second = 1_000_000_000
    return {
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": [one.replace(":true", "") for one in what["security_opt"]],
        "entrypoint": what.get("entrypoint"),
        "healthcheck": health
        and {"test": health["test"], "interval": second, "retries": 60, "timeout": 30 * second},
    }


def _filled(value: str) -> str:
    """The value with the variables of ``.env`` in it."""
    return re.sub(r"\$\{(\w+):[?-]\}", lambda found: PASSWORDS.get(found.group(1), ""), value)


@contextmanager
def composed(folder: Path) -> Iterator[Composed]:
    """The services of the compose file."""
    with image(folder) as name, Network() as network:
        running = Composed(name, network)
        try:
            for service in STARTED:
                container = running.start(service)
                if service == "nats":
                    _healthy(container)
            _healthy(running.containers["gateway"].get_wrapped_container())
            yield running
        except BaseException:
            print(running.logs())  # noqa: T201 - shown with the failure
            raise
        finally:
            running.remove()


def _healthy(container: Container) -> None:
    deadline = time.monotonic() + 150
    while container.health != "healthy":
        state = container.attrs["State"]
        assert time.monotonic() < deadline, (state, container.logs().decode()[-2000:])
        time.sleep(0.2)
        container.reload()


@pytest.mark.slow
def test_the_compose_services_answer_a_conversation_in_containers(tmp_path: Path) -> None:
    """The image is built by its Dockerfile. A conversation with a tool and memory goes through NATS and five workers.

    Each container runs without privileges, its health checks work, and SIGTERM drains it. Programs have a sandbox where
    the second compose file allows it, and there alone. One test, since the image is built once.
    """
    with composed(tmp_path) as running:
        _converse(running)
        assert [status for status, *_ in _sandbox(running.image, {})] == ["warning", "warning"]
        found = _sandbox(running.image, PROGRAMS["services"]["tools"])
        assert [status for status, *_ in found] == ["ok", "ok"], found
        for service in STARTED:
            _check_unprivileged(running.containers[service].get_wrapped_container())
        for service in reversed(STARTED[1:]):
            _drains(running.containers[service].get_wrapped_container())


def _converse(running: Composed) -> None:
    """Converse through the operator's container, and through the published port with the token."""
    request = '/tool memory_write path=notes/vole.md content="A vole lives in a burrow."'
    operator = running.start("operator", ["say", request])
    assert operator.wait(timeout=120)["StatusCode"] == 0, operator.logs().decode()
    gateway = running.containers["gateway"].get_wrapped_container()
    token = _content(gateway, "/data/token").strip()
    gateway.reload()
    (port,) = gateway.attrs["NetworkSettings"]["Ports"]["8420/tcp"]
    assert port["HostIp"] == "127.0.0.1"
    address = f"http://127.0.0.1:{port['HostPort']}"
    body = {"model": "main", "messages": [{"role": "user", "content": "Where does a vole live?"}]}
    with httpx.Client(trust_env=False, timeout=90) as client:
        bearer = {"Authorization": f"Bearer {token}"}
        found = client.post(f"{address}/v1/chat/completions", json=body, headers=bearer)
        assert found.status_code == 200, found.text
        assert "burrow" in found.json()["choices"][0]["message"]["content"]
        assert client.get(f"{address}/v1/models").status_code == 401


def _sandbox(image: str, more: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    """Return doctor's result for the sandbox, and for a network in it, in a container of the tools worker with ``more``
    settings.

    It runs Docker's own command, because the client interprets ``systempaths``.
    """
    tools = COMPOSE["services"]["tools"]
    words = ["--read-only", *(f"--tmpfs={place}" for place in tools["tmpfs"])]
    words += (f"--cap-drop={name}" for name in tools["cap_drop"])
    words += (f"--security-opt={text}" for text in (*tools["security_opt"], *more.get("security_opt", ())))
    words += (f"--device={name}" for name in more.get("devices", ()))
    argv = ["docker", "run", "--rm", *words, image, "doctor", "--json"]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert said.stdout, said.stderr
    checks = {one["id"]: one for one in json.loads(said.stdout)["checks"]}
    asked = (checks[name] for name in ("sandbox.available", "sandbox.network"))
    return [(one["status"], one["summary"], one["hint"]) for one in asked]


def _check_unprivileged(container: Container) -> None:
    """It is not root, has no capabilities, cannot gain any, and writes nowhere but in its own folders."""
    for command, code in (
        (["python", "-c", UNPRIVILEGED], 0),
        (["touch", "/opt/trunkline/x"], 1),
        (["touch", "/data/x"], 0),
    ):
        assert _exit_code(container, command) == code, command


def _content(container: Container, path: str) -> str:
    """Return the text of a file. The output of ``cat`` would be missing now and then: Docker 20.10 loses that of one
    attached command in a thousand.
    """
    pieces, _ = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as archive:
        file = archive.extractfile(Path(path).name)
        assert file is not None
        return file.read().decode()


def _exit_code(container: Container, command: list[str]) -> int:
    """Run a command in the container to its end. It is not attached, so it has no output that could be lost."""
    assert container.client is not None
    engine = container.client.api
    run = engine.exec_create(container.id, command)["Id"]
    engine.exec_start(run, detach=True)
    deadline = time.monotonic() + 60
    while (found := engine.exec_inspect(run))["Running"]:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return int(found["ExitCode"])


def _drains(container: Container) -> None:
    """``docker stop`` ends it by itself, well before it would be killed."""
    container.stop(timeout=60)
    container.reload()
    assert container.attrs["State"]["ExitCode"] == 0, container.logs().decode()[-2000:]
