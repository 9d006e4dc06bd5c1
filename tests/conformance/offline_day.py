"""A day of a fresh install on a machine without a network; run by test_deploy.py in a separate network namespace.

``python offline_day.py IDLE_SECONDS``, with the environment for ``trunkline up``. It prints one JSON object. Only the
standard library is used. The kernel counts every packet that leaves a process, of any program: a namespace with nothing
but ``lo`` has no route, so each attempt adds to ``OutNoRoutes``.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAN = "192.168.77.7"
"""An address of this machine besides loopback, put on ``lo`` by the test."""

HOME = Path(os.environ.get("TRUNKLINE_HOME", ""))


def counters() -> dict[str, int]:
    """Return the count of sent and dropped packets since the namespace was made."""
    found: dict[str, int] = {}
    for file in ("/proc/net/snmp", "/proc/net/netstat"):
        lines = Path(file).read_text().splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            kind = names.split(":")[0]
            found |= {
                f"{kind}.{name}": int(value)
                for name, value in zip(names.split()[1:], values.split()[1:], strict=True)
            }
    for line in Path("/proc/net/snmp6").read_text().splitlines():
        name, value = line.split()
        found[name] = int(value)
    watched = (
        "Ip.OutNoRoutes", "Ip6OutNoRoutes", "Udp.OutDatagrams", "Udp.NoPorts", "Udp6OutDatagrams",
        "IpExt.OutMcastPkts", "IpExt.OutBcastPkts",
    )  # fmt: skip
    return {name: found[name] for name in watched}


def listening() -> list[str]:
    """The addresses that listen in the namespace, as ``host:port``, IPv6 in hexadecimal; UDP sockets too."""
    found: list[str] = []
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if kind.startswith("udp") or state == "0A":
                host, port = local.split(":")
                plain = (
                    ".".join(str(byte) for byte in reversed(bytes.fromhex(host))) if len(host) == 8 else host
                )
                found.append(f"{kind}:{plain}:{int(port, 16)}")
    return sorted(found)


class Day:
    def __init__(self, *arguments: str, environ: Mapping[str, str] | None = None) -> None:
        self.out = HOME.parent / "day.out"
        with self.out.open("wb") as out, (HOME.parent / "day.err").open("ab") as err:
            command = [sys.executable, "-m", "trunkline.cli.main", "up", "--log", "json", *arguments]
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env={**os.environ, **(environ or {})},
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while not (ready := re.search(r"ready at (\S+)", self.out.read_text())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit((HOME.parent / "day.err").read_text())
            time.sleep(0.02)
        self.url = ready.group(1)
        self.port = int(self.url.rsplit(":", 1)[1])
        self.token = (HOME / "token").read_text().strip()

    def ask(
        self, path: str, body: object = None, *, host: str = "", known: bool = True
    ) -> tuple[int, str, str]:
        """Return status, conversation and text of a response; status 0 without a connection."""
        url = f"http://{host}:{self.port}{path}" if host else self.url + path
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            url, data, {"authorization": f"Bearer {self.token}"} if known else {}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return (
                    response.status,
                    response.headers.get("x-conversation-id", ""),
                    response.read().decode(),
                )
        except urllib.error.HTTPError as error:
            return error.code, "", error.read().decode()
        except OSError as error:
            return 0, "", str(error)

    def say(self, content: str, conversation: str = "") -> tuple[str, str]:
        path = f"/conversations/{conversation}/messages" if conversation else "/conversations/messages"
        status, id, events = self.ask(path, {"content": content})
        assert status == 200, events
        return id, events

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def main(idle: float) -> dict[str, Any]:
    reported: dict[str, Any] = {"before": counters()}
    day = Day()
    reported["started"] = counters()
    reported["listening"] = listening()
    reported["lan"] = day.ask("/healthz", host=LAN)[0]
    reported["ready"] = json.loads(day.ask("/readyz")[2])
    conversation, _ = day.say("/tool memory_write path=garden.md content='Tomatoes want sun.'")
    reported["tool"] = day.say("/tool write_file path=list.md content=seeds", conversation)[1]
    reported["found"] = day.say("What do tomatoes want?", conversation)[1]
    reported["talked"] = counters()
    time.sleep(idle)
    reported["idle"] = counters()
    reported["stopped"] = day.stop()
    again = Day()
    reported["listed"] = json.loads(again.ask("/conversations")[2])
    reported["resumed"] = again.say("/tool memory_read path=garden.md", conversation)[1]
    reported["messages"] = len(json.loads(again.ask(f"/conversations/{conversation}")[2])["messages"])
    reported["denied"] = again.ask("/conversations", known=False)[0]
    reported["exported"] = again.say("/tool memory_export")[1]
    again.stop()
    reported["after"] = counters()
    opened = Day("--host", "0.0.0.0", environ={"TRUNKLINE_GATEWAY__BEHIND_PROXY": "true"})
    reported["listening_open"] = listening()
    reported["lan_open"] = opened.ask("/conversations", host=LAN)[0]
    reported["lan_open_denied"] = opened.ask("/conversations", host=LAN, known=False)[0]
    opened.stop()
    reported["end"] = counters()
    return reported


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(float(sys.argv[1]))))
