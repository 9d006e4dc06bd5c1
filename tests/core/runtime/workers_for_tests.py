"""Workers that only record their lifecycle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio

from trunkline.config import Config, load_config
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import StorageError
from trunkline.runtime.worker import Worker
from trunkline.workers import KINDS


class Reported(Worker):
    """Records its lifecycle in ``events``. ``crash`` makes ``serve`` raise, ``refuse`` makes ``open`` raise."""

    events: ClassVar[list[tuple[str, str]]]
    crash: ClassVar[anyio.Event]
    refuse: ClassVar[bool]
    alive: ClassVar[list["Reported"]]

    def record(self, what: str) -> None:
        self.events.append((self.kind, what))

    async def open(self) -> None:
        self.record("open")
        if type(self).refuse:
            raise StorageError("The cupboard is locked.", hint="Find the key.")
        self.alive.append(self)

    async def serve(self) -> None:
        self.record("serve")
        await type(self).crash.wait()
        type(self).crash = anyio.Event()
        raise RuntimeError("boom")

    async def drain(self) -> None:
        self.record("drain")

    async def close(self) -> None:
        self.record("close")
        if self in self.alive:
            self.alive.remove(self)
        await super().close()


class RecordedWorkers:
    """One class a kind, with one list of events for all of them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.types: dict[WorkerKind, type[Reported]] = {kind: self._made(kind) for kind in KINDS}

    def _made(self, kind: WorkerKind) -> type[Reported]:
        body: dict[str, Any] = {
            "kind": kind, "events": self.events, "crash": anyio.Event(), "refuse": False, "alive": [],
        }  # fmt: skip
        return cast(type[Reported], type(f"{kind.title()}Reported", (Reported,), body))

    def load(self, kind: WorkerKind) -> type[Worker]:
        return self.types[kind]

    def did(self, what: str) -> list[str]:
        return [kind for kind, done in self.events if done == what]


def config_at(home: Path, **flags: Any) -> Config:
    """A configuration that takes nothing from this machine's environment."""
    return load_config(
        home, flags={name.replace("__", "."): value for name, value in flags.items()}, environ={}
    )


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so. Raises TimeoutError."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)
