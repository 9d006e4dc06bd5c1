"""A reader that performs the action named in the file on its own process."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from trunkline.api.documents import Document, Reader, Section


class Bad(Reader):
    """Performs the action named in the file on its own process."""

    name = "bad"
    suffixes = (".bad",)

    def read(self, file: BinaryIO, name: str) -> Document:
        deed = file.read().decode()
        return Document(sections=(Section(text=str(getattr(self, deed)())),))

    def hang(self) -> None:
        time.sleep(3_600)

    def spin(self) -> None:
        while True:
            pass

    def swell(self) -> int:
        return len(bytearray(2 << 30))

    def crash(self) -> None:
        os.abort()

    def leave(self) -> None:
        os._exit(7)

    def raise_error(self) -> None:
        raise ValueError("half of it\nis missing")

    def dive(self) -> None:
        self.dive()

    def flood(self) -> str:
        return "x" * (20 << 20)

    def print_much(self) -> str:
        sys.stdout.write("noise" * 10_000)
        return "quiet"

    def half_letters(self) -> str:
        return "a\ud800b\0c"

    def nothing(self) -> str:
        return " "

    def write(self) -> None:
        Path(os.environ["TMPDIR"], "wrote").write_text("x")

    def cut(self) -> None:
        os.truncate(Path(os.environ["TMPDIR"], "held"), 0)

    def remove(self) -> None:
        Path(os.environ["TMPDIR"], "held").unlink()

    def make(self) -> None:
        Path(os.environ["TMPDIR"], "folder").mkdir()

    def rename(self) -> None:
        Path(os.environ["TMPDIR"], "held").rename(Path(os.environ["TMPDIR"], "other"))

    def kill(self) -> None:
        os.kill(os.getppid(), 0)

    def call_out(self) -> None:
        socket.create_connection(("127.0.0.1", int(os.environ.get("PORT", "9"))), timeout=1)

    def secrets(self) -> str:
        return ",".join(os.environ) + "!"

    def child(self) -> None:
        subprocess.run(["sleep", "3600.5"], check=False)

    def fine(self) -> str:
        return "fine"
