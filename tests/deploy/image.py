"""The image of ``deploy/Dockerfile``, built by this machine's Docker engine from a base of this machine's own."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import docker.errors
from testcontainers.core.config import testcontainers_config
from testcontainers.core.image import DockerImage

from .installation import ROOT
from .root_filesystem import why_not, write_base

BASE, TAG = "trunkline-test-base", "trunkline-test"
WHEELS = ROOT / ".venv/wheels"
"""Kept in the clone, so that they are fetched once."""
DOWNLOAD_SECONDS = 900
"""A package index may be slow; the packages are some 100 MB."""


def no_engine() -> str | None:
    """Why no image can be built here; None when it can."""
    if (reason := why_not()) is not None:
        return reason
    try:
        client = docker.from_env(timeout=5)
        client.ping()
        client.close()
    except (docker.errors.DockerException, OSError) as error:
        return f"no Docker engine answers: {str(error)[:120]}"
    return None


@contextmanager
def image(folder: Path) -> Iterator[str]:
    """The image's name, for as long as it is needed."""
    testcontainers_config.ryuk_disabled = (
        True  # its own image would have to be fetched; we remove what we made
    )
    client = docker.from_env(timeout=600)
    try:
        write_base(folder / "base.tar")
        client.api.import_image_from_file(
            str(folder / "base.tar"),
            repository=BASE,
            changes=["ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin"],
        )
        (folder / "base.tar").unlink()
        context = _context(folder / "context")
        arguments = {"BASE": BASE, "PIP_NO_INDEX": "1", "PACKAGES": ""}
        with DockerImage(context, tag=TAG, dockerfile_path="deploy/Dockerfile", buildargs=arguments) as built:
            yield str(built)
    finally:
        for name in (TAG, BASE):
            try:
                client.images.remove(name, force=True)
            except docker.errors.ImageNotFound:
                continue
        client.close()


def _context(folder: Path) -> Path:
    """Return the files of a cloned repository, and the wheels."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/", "benchmarks/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    shutil.copy(ROOT / "deploy/Dockerfile.dockerignore", folder / ".dockerignore")
    (folder / "wheels").mkdir()
    for wheel in _wheels():
        shutil.copy(wheel, folder / "wheels")
    return folder


def _wheels() -> list[Path]:
    """Return the packages that the image installs; pip checks them against the hashes at download and at
    installation."""
    wanted = ROOT / "deploy/requirements.txt"
    mark = WHEELS / "requirements.txt"
    if not mark.exists() or mark.read_bytes() != wanted.read_bytes():
        shutil.rmtree(WHEELS, ignore_errors=True)
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*argv, "-r", wanted, "-d", WHEELS], check=True, timeout=DOWNLOAD_SECONDS)
        # A package without a wheel is built in the image, which has no index here.
        builders = [sys.executable, "-m", "pip", "download", "--quiet", "setuptools", "wheel"]
        subprocess.run([*builders, "-d", WHEELS], check=True, timeout=DOWNLOAD_SECONDS)
        shutil.copy(wanted, mark)
    return [file for file in WHEELS.iterdir() if file.suffix in (".whl", ".gz")]
