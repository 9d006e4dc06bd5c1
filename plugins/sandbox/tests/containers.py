"""An image made here, and the containers of a home, as the engine's own library sees them."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

needs_busybox = pytest.mark.skipif(
    not Path("/bin/busybox").exists(),
    reason="an image is made of /bin/busybox, which is not here (busybox-static)",
)


def image_name() -> str:
    """The image of this process. Every process that runs tests, also a fork, removes its own image when it ends."""
    return f"trunkline-sandbox-test:{os.getpid()}"


def root() -> bytes:
    """The image's files: nothing but busybox."""
    names = subprocess.run(
        ["/bin/busybox", "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for folder in ("bin", "usr", "usr/bin", "etc", "tmp", "workspace", "var", "run"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add("/bin/busybox", "bin/busybox")
        for name in names:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if name != "busybox":
                tar.addfile(link)
    return held.getvalue()


def engine() -> object:
    """The engine as its own library sees it."""
    from testcontainers.core.docker_client import DockerClient

    return DockerClient().client


def of_home(home: Path) -> dict[str, str]:
    """The containers of a home, each with its state."""
    from trunkline_sandbox.labels import HOME_LABEL, home_id

    wanted = {"label": f"{HOME_LABEL}={home_id(home)}"}
    found = engine().api.containers(all=True, filters=wanted)  # type: ignore[attr-defined]
    return {one["Id"]: one["State"] for one in found}


async def becomes(expected: int, home: Path, used: str = "") -> list[str]:
    """Wait until there are so many containers of the home, in two looks the same ones: all of them run, and none is
    ``used``."""
    before: dict[str, str] | None = None
    with anyio.fail_after(60):
        while True:
            found = await anyio.to_thread.run_sync(of_home, home)
            run = len(found) == expected and set(found.values()) <= {"running"}
            if run and found == before and not (used and any(one.startswith(used) for one in found)):
                return list(found)
            before = found
            await anyio.sleep(0.1)


def guardian_of(container: str) -> psutil.Process:
    """The process that will have a container removed."""
    from trunkline_sandbox.labels import GUARDIAN_LABEL

    labels = engine().containers.get(container).labels  # type: ignore[attr-defined]
    name = f"{GUARDIAN_LABEL}={labels[GUARDIAN_LABEL]}"
    (found,) = [one for one in psutil.process_iter(["cmdline"]) if name in (one.info["cmdline"] or [])]
    return found
