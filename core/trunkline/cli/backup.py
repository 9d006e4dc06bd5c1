"""``trunkline backup FILE``: writes an archive for ``trunkline restore``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline._util.archives.manifest import ImportGap
    from trunkline.config import Config
    from trunkline.home.backup import BackupManifest

EXAMPLES = """
trunkline backup garden.tar
trunkline backup garden.tar --force
trunkline backup everything.tar --with-bus --with-token
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--with-token", is_flag=True, help="Include the access token. Anyone who has FILE then has access."
)
@click.option(
    "--with-bus", is_flag=True, help="Include messages and unfinished turns. The platform must be stopped."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, with_token: bool, with_bus: bool, force: bool, as_json: bool) -> None:
    """Write memory with its history and the settings to FILE, a tar archive for "trunkline restore".

    The platform may run meanwhile: the backup holds memory as of one moment. It holds no workspaces, and no keys,
    because Trunkline stores none. --with-bus adds the bus and needs a stopped platform. A restored backup without it
    has no unfinished turns, such as those that wait for an approval.
    """
    from msgspec import to_builtins

    from trunkline.cli.aio import run
    from trunkline.cli.archive_gaps import print_gaps
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.home.backup import BUS, TOKEN

    config = load_config()
    _check(config, file, force, with_bus)
    label, gaps = run(_backup, config, file.absolute(), with_token, with_bus)
    size = file.stat().st_size
    if as_json:
        return print_json({"file": str(file), "size": size, "label": label, "gaps": to_builtins(gaps)})
    missing = [part for part in (TOKEN, BUS) if part not in label.holds]
    click.echo(f"Wrote {', '.join(label.holds)} to {file} ({size / 1024 / 1024:.1f} MB).")
    click.echo(f"Not in it: {', '.join([*missing, 'workspaces'])}.")
    print_gaps(gaps)


def _check(config: "Config", file: Path, force: bool, with_bus: bool) -> None:
    from trunkline.errors import StorageError, TrunklineError
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid

    if file.exists() and not force:
        raise StorageError(f"{file} exists already.", hint="Choose another name, or give --force.")
    if not file.absolute().parent.is_dir():
        raise StorageError(f"There is no folder {file.absolute().parent}.", hint="Make it first.")
    if with_bus and config.settings.bus.url is not None:
        raise TrunklineError(
            "The bus is an external server (bus.url), so its data is not in this home.",
            hint='Back it up on its own host, with "nats stream backup".',
        )
    if with_bus and (pid := running_pid(Home.of(config))) is not None:
        raise TrunklineError(
            f"The platform runs (pid {pid}). The bus data can only be copied while it is stopped.",
            hint="Stop it first, or omit --with-bus.",
        )


async def _backup(
    config: "Config", file: Path, with_token: bool, with_bus: bool
) -> "tuple[BackupManifest, tuple[ImportGap, ...]]":
    import tempfile

    from trunkline.cli.archive_gaps import read_gaps
    from trunkline.contracts.memory.export_transfer import export_memory
    from trunkline.home.backup import write_backup
    from trunkline.home.paths import Home
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.parent) as folder:
        exported = Path(folder) / "memory.tar"
        async with connect_to_platform(config, load_worker, kinds=("memory",)) as bus:
            await export_memory(bus, exported)
        label = write_backup(Home.of(config), file, exported, token=with_token, bus=with_bus)
        return label, read_gaps(exported)
