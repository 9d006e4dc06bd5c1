"""No log line of a platform contains a key, from any of its processes: an isolated plugin, the HTTP server, the NATS
server. Each is a real process that is given a fake key to log."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.plugins_bad.corpus import install
from trunkline.home.paths import Home
from trunkline.home.run_file import read_run_file
from trunkline.testing.platform import clean_environ

KEY = "sk-proj-4fZ9mQ2xT7vB1nK8wR5yH3cL6dJ0sA"
PLAIN = "the-plain-words-of-a-secret"

TELLS = """
import logging, os, sys
import trunkline

print("printed", os.environ["MINE_KEY"], "and", os.environ["PLAIN_WORD"], flush=True)
sys.stderr.write("written " + os.environ["MINE_KEY"] + chr(10))
os.write(2, ("past everything " + os.environ["PLAIN_WORD"] + chr(10)).encode())
logging.getLogger("acme").error("logged %s", os.environ["MINE_KEY"])
try:
    raise ValueError(os.environ["PLAIN_WORD"])
except ValueError:
    logging.getLogger("acme").exception("failed")

@trunkline.tool(effect="read")
def tea() -> str:
    \"\"\"Brew.\"\"\"
    return "tea"

@trunkline.hookimpl
def trunkline_tools():
    return [tea]
"""


class Up:
    """``trunkline up`` of a home. ``said`` is all that it and its processes printed and logged so far."""

    def __init__(self, home: Path, output: Path) -> None:
        self.home, self._output = home, output

    @property
    def said(self) -> str:
        logs = [file for file in self.home.rglob("*.log*") if file.is_file() and ".git" not in file.parts]
        return "\n".join(file.read_text(errors="replace") for file in (self._output, *logs))

    def until(self, true: Callable[[], object]) -> None:
        deadline = time.monotonic() + 150
        while not true():
            assert time.monotonic() < deadline, self.said
            time.sleep(0.2)


@contextmanager
def up(base: Path, form: str, **environ: str) -> Iterator[Up]:
    """The platform in a process, with a plugin that runs apart."""
    home, output = base / "home", base / "output"
    install(base / "site", "acme-tells", TELLS)
    home.mkdir()
    isolation = (
        'isolation = "process"\nisolation_memory = 700\nisolation_environ = ["MINE_KEY", "PLAIN_WORD"]\n'
    )
    (home / "trunkline.toml").write_text(
        f'[gateway]\nport = 0\n[runtime]\nprovider_adapter = "offline"\n[plugins.acme-tells]\n{isolation}'
        '[adapters.openai]\napi_key = { env = "PLAIN_WORD" }\n[telemetry]\nlog_level = "debug"\n'
    )
    whole = {**clean_environ(), **environ, "TRUNKLINE_HOME": str(home), "PYTHONPATH": str(base / "site")}
    with output.open("wb") as reported:
        process = subprocess.Popen(
            [sys.executable, "-m", "trunkline.cli.main", "up", "--log", form],
            env=whole, stdin=subprocess.DEVNULL, stdout=reported, stderr=reported,
        )  # fmt: skip
    try:
        found = Up(home, output)
        found.until(lambda: process.poll() is not None or list((home / "run" / "listeners").glob("*")))
        found.until(lambda: process.poll() is not None or "http://" in found.said)
        assert process.poll() is None, found.said
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            process.kill()


@pytest.mark.kill
@pytest.mark.parametrize("form", ["json", "text"])
def test_an_isolated_plugin_logs_no_key(tmp_path: Path, form: str) -> None:
    """This holds for its log lines and its direct output; every line is logged, in the platform's own form."""
    with up(tmp_path, form, MINE_KEY=KEY, PLAIN_WORD=PLAIN) as running:
        for said in ("printed [", "written [", "past everything [", "logged [", "ValueError: ["):
            running.until(lambda said=said: said in running.said)  # type: ignore[misc]
        assert KEY not in running.said and PLAIN not in running.said
        lines = [line for line in running.said.splitlines() if "past everything [" in line]
        assert all(line.startswith("{") is (form == "json") for line in lines)


@pytest.mark.kill
def test_the_http_server_logs_no_key(tmp_path: Path) -> None:
    """An unreadable request may hold a key in its target, a header, or its method."""
    with up(tmp_path, "json", MINE_KEY=KEY, PLAIN_WORD=PLAIN) as running:
        from trunkline.home.listeners import read_listeners

        (place,) = [
            one.address for one in read_listeners(running.home / "run") if one.address.startswith("http://")
        ]
        host, _, port = place.removeprefix("http://").rpartition(":")
        length = f"x-api-key: {KEY}\r\ncontent-length: {KEY}"
        for asked in (
            f"{KEY} / HTTP/1.1",
            f"GET /{KEY} HTTP/9.9",
            f"GET /x?api_key={PLAIN} HTTP/1.1\r\nHost: x",
            f"GET / HTTP/1.1\r\nauthorization: Bearer {KEY}\r\nHost: a\r\nHost: b",
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}",
            f"GET /{KEY}\x00\xff HTTP/1.1",
        ):
            with socket.create_connection((host, int(port)), 30) as connection:
                connection.sendall(f"{asked}\r\n\r\n".encode("latin-1"))
                assert connection.recv(4096)
        time.sleep(1.0)
        assert KEY not in running.said and PLAIN not in running.said


@pytest.mark.kill
def test_the_nats_server_logs_no_key(tmp_path: Path) -> None:
    """The server logs neither its own passwords nor a mistyped one; only the owner can read its log."""
    with up(tmp_path, "json", MINE_KEY=KEY, PLAIN_WORD=PLAIN) as running:
        running.until(lambda: read_run_file(Home.at(running.home)))
        run = read_run_file(Home.at(running.home))
        assert run is not None and run.password
        host, _, port = run.url.removeprefix("nats://").rpartition(":")
        for login in (
            f'"user":"{run.user}","pass":"{KEY}"',
            f'"auth_token":"{KEY}"',
            f'"jwt":"{KEY}","sig":"x"',
        ):
            with socket.create_connection((host, int(port)), 30) as connection:
                connection.recv(4096)
                connection.sendall(f'CONNECT {{{login},"verbose":false}}\r\nPING\r\n'.encode())
                assert b"-ERR" in connection.recv(4096)
        log = running.home / "bus" / "server.log"
        running.until(lambda: "authentication error" in log.read_text())
        assert KEY not in running.said and run.password not in running.said
        assert log.stat().st_mode & 0o077 == 0 or log.parent.stat().st_mode & 0o077 == 0
        assert os.access(log, os.R_OK)
