"""``trunkline update``: a newer release, tried on a copy of the home before it is in use; and the way back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.cli.release.stage import AvailableRelease
    from trunkline.config import Config
    from trunkline.contracts.workers.messages import WorkerKind
    from trunkline.home.paths import Home
    from trunkline.home.releases import ReleaseInUse

EXAMPLES = """
trunkline update --check
trunkline update
trunkline update --yes --from ./wheels
trunkline update --back
"""

LOCK = "update.lock"


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--check", is_flag=True, help="Say whether there is a newer release, and change nothing.")
@click.option("--back", is_flag=True, help="Use the former release again.")
@click.option("--yes", is_flag=True, help="Do not ask. What will happen is still shown.")
@click.option(
    "--from", "wheels", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="FOLDER",
    help="Take the packages from the wheels in this folder, without an index.",
)  # fmt: skip
@click.option("--trial", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="With --check: print JSON.")
def command(check: bool, back: bool, yes: bool, wheels: Path | None, trial: bool, as_json: bool) -> None:
    """Install the newest release beside the present one, try it on a copy of your home, and change to it.

    The present release runs on meanwhile, and is only replaced by one that starts with your settings, your plugins and
    a copy of your data. pip finds the packages as you configured it. The former release stays, as the way back. If this
    command is interrupted, the one or the other release is in use; run it again.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.release.stage import find_newest, require_wheel_installation
    from trunkline.config import load_config
    from trunkline.home.paths import Home

    config = load_config()
    if trial:
        run(_trial, config)
        return
    require_wheel_installation()
    home = Home.of(config)
    if check:
        _say_newest(find_newest(wheels), as_json)
        return
    with _update_lock(home):
        if back:
            _go_back(home, yes)
        else:
            _update(config, home, find_newest(wheels), wheels, yes)


async def _trial(config: "Config") -> None:
    """Start what keeps data on this home, which is a copy, with this release, and stop it again."""
    from trunkline.config.settings import DEFAULT_STORE
    from trunkline.runtime.adapter_selection import check_adapters
    from trunkline.runtime.supervisor import running_platform
    from trunkline.workers import load_worker

    check_adapters(config, ())
    store = config.settings.memory.store
    kinds: tuple[WorkerKind, ...] = (
        ("memory",) if store in (None, DEFAULT_STORE) else ()
    )  # another may be elsewhere
    async with running_platform(config, load_worker, kinds=kinds):
        click.echo("ready")


def _say_newest(newest: "AvailableRelease", as_json: bool) -> None:
    import trunkline
    from trunkline.cli.output import print_json

    is_newer = _is_newer(newest)
    if as_json:
        print_json(
            {
                "in_use": trunkline.__version__,
                "newest": newest.version,
                "source": newest.source,
                "newer": is_newer,
            }
        )
    elif is_newer:
        click.echo(
            f"Trunkline {newest.version} is available ({newest.source}); {trunkline.__version__} is in use."
        )
        click.echo("Install it: trunkline update")
    else:
        click.echo(f"Trunkline {trunkline.__version__} is up to date.")


def _is_newer(newest: "AvailableRelease") -> bool:
    from packaging.version import Version

    import trunkline

    return Version(newest.version) > Version(trunkline.__version__)


def _update(
    config: "Config", home: "Home", newest: "AvailableRelease", wheels: Path | None, yes: bool
) -> None:
    import trunkline
    from trunkline.cli.aio import run
    from trunkline.cli.confirmation import confirm
    from trunkline.cli.release.stage import stage
    from trunkline.cli.release.switch import ReleaseSwitch, backup_name
    from trunkline.cli.release.trial import back_up, remove_copies, require_space, try_release
    from trunkline.home.releases import releases_folder

    switch = ReleaseSwitch(home, click.echo)
    if not _is_newer(newest):
        click.echo(f"Trunkline {trunkline.__version__} is up to date.")
        switch.finish(trunkline.__version__)  # an update that was killed may have left the former one running
        return
    require_space(home)
    folder = releases_folder(home.path)
    click.echo(
        f"Trunkline {trunkline.__version__} -> {newest.version}, from {newest.source}. This will\n"
        f"1. install it in {folder / newest.version}, beside the present release, which runs on\n"
        f"2. back up memory and settings to {folder / backup_name(newest.version)}\n"
        "3. start it on a copy of this home, which is removed afterwards\n"
        "4. if all that succeeds, use it from then on, and restart the service of this home if there is one"
    )
    if not yes:
        confirm("Go on?", done="changed")
    remove_copies(home.path)
    click.echo(f"Installing {newest.version} ...")
    python = str(stage(home.path, newest, wheels))
    click.echo("Backing up ...")
    backup = folder / backup_name(newest.version)
    run(back_up, config, backup)
    click.echo("Trying it on a copy of the home ...")
    try_release(config, python, backup)
    click.echo(f"Changing to {newest.version} ...")
    switch.change_to(newest.version, python)
    click.echo(f"Trunkline {newest.version} is in use. To go back: trunkline update --back")


def _go_back(home: "Home", yes: bool) -> None:
    from trunkline.cli.confirmation import confirm
    from trunkline.cli.release.switch import ReleaseSwitch, backup_name
    from trunkline.home.releases import releases_folder

    record = _way_back(home)
    backup = releases_folder(home.path) / backup_name(record.release.version)
    click.echo(f"Trunkline {record.release.version} -> {record.before.version}.")
    click.echo(_consequence(home, record, backup))
    if not yes:
        confirm("Go on?", done="changed")
    ReleaseSwitch(home, click.echo).go_back(record, backup)
    click.echo(f"Trunkline {record.before.version} is in use.")


def _way_back(home: "Home") -> "ReleaseInUse":
    import os

    from packaging.version import Version

    from trunkline.errors import TrunklineError
    from trunkline.home.releases import read_release_in_use

    record = read_release_in_use(home.path)
    if record is None or record.before == record.release:
        raise TrunklineError(
            "There is no former release to go back to.", hint="Only an update of this home leaves one."
        )
    # Back and forth without an update would restore a backup of before the first one, and move newer data aside.
    if Version(record.before.version) > Version(record.release.version):
        raise TrunklineError(
            f"Trunkline {record.release.version} is the former release already.",
            hint=f'"trunkline update" changes to {record.before.version} again, with a trial and a backup of now. '
            "Nothing was changed.",
        )
    if not os.access(record.before.python, os.X_OK):
        raise TrunklineError(
            f"The former release {record.before.version} is gone: there is no {record.before.python}.",
            hint="Install it again, then repeat. Nothing was changed.",
        )
    return record


def _consequence(home: "Home", record: "ReleaseInUse", backup: Path) -> str:
    """Return what going back means for the data. Raises TrunklineError when the backup that it needs is gone."""
    from trunkline.config.home_format import read_format
    from trunkline.errors import TrunklineError

    mark = read_format(home.path)
    if mark is None or mark.format == record.before.format:
        return "All data stays as it is."
    if not backup.exists():
        raise TrunklineError(
            f"Trunkline {record.before.version} cannot read this home any more, and there is no {backup}.",
            hint="Restore a backup of before the update into another home: trunkline restore. Nothing was changed.",
        )
    return (
        f"Trunkline {record.before.version} cannot read the home as {record.release.version} has changed it. So memory "
        f"and settings of before the update are restored from {backup}, and everything that came since, unfinished "
        "turns included, is moved to a folder replaced-… of the home. Nothing is deleted."
    )


@contextmanager
def _update_lock(home: "Home") -> Iterator[None]:
    import fcntl
    import os

    from trunkline.errors import TrunklineError
    from trunkline.home.paths import make_folder, storage_errors
    from trunkline.home.releases import releases_folder

    folder = releases_folder(home.path)
    make_folder(folder)
    with storage_errors(folder):
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise TrunklineError(
            "Another update of this home is running.", hint="Wait until it ends. Nothing was changed."
        ) from None
    finally:
        os.close(file)
