"""Sessions in containers of a real Docker engine, in an image that has a C library and no Python."""

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from trunkline_rlm.repl.process import ReplLimits, own_interpreter, runtime_mounts
from trunkline_rlm.repl.session import CodeTimeoutError, ReplSession
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/bin/busybox").exists(), reason="busybox is not here (busybox-static)"),
    pytest.mark.skipif(
        not runtime_mounts(), reason="this Python is the system's, which an image would have to bring"
    ),
]

NAME = f"trunkline-rlm-test-{os.getpid()}"


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    """A backend with an image of busybox and the libraries of the system that this Python needs."""
    from docker.errors import DockerException
    from testcontainers.core.docker_client import DockerClient

    try:
        client = DockerClient().client
        client.ping()
    except DockerException as error:
        pytest.skip(f"no Docker engine: {error}")
    client.api.import_image_from_data(_root(), repository=NAME, tag="latest")
    settings = SandboxSettings(backend="docker", image=f"{NAME}:latest", warm_containers=0)
    yield Docker(settings, tmp_path_factory.mktemp("home"))
    client.images.remove(f"{NAME}:latest", force=True)


def _root() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
        for name in ("sh", "env", "dd"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for library in _libraries():
            tar.add(library.resolve(), str(library).lstrip("/"))
    return held.getvalue()


def _libraries() -> set[Path]:
    """Return the system libraries that the interpreter and its modules are linked to."""
    modules = Path(str(sysconfig.get_config_var("DESTSHARED"))).glob("*.so")
    programs = [own_interpreter(), *map(str, modules)]
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    words = {word for line in said.splitlines() for word in line.split() if word.startswith("/")}
    return {Path(word) for word in words if not word.endswith(":") and not word.startswith(sys.base_prefix)}


async def test_code_runs_in_a_container(docker: Docker) -> None:
    """With the worker's own Python, shown to the container; values, functions, variables, limits and the end are the
    same as anywhere."""

    async def double(number: int) -> int:
        return number * 2

    async with ReplSession(docker, {"double": double}, ReplLimits(timeout=5.0)) as session:
        assert (await session.run("x = double(21)\nx")).value == 42
        assert "Memory error" in ((await session.run("'x' * 10**9")).error or "")
        assert (await session.run("x + 1")).value == 43
        with anyio.fail_after(60), pytest.raises(CodeTimeoutError):
            await session.run("while True: pass")
        assert not session.has_process
    assert await docker.end_all() == 0
