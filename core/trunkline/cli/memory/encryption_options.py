"""The options for the encryption of archives. A passphrase is never a command-line argument, because other users
could read it.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from trunkline._util.archives.encryption import DecryptionKeys, Recipients

F = TypeVar("F", bound=Callable[..., object])


def passphrase_options(command: F) -> F:
    """Add the options that give a passphrase."""
    command = click.option(
        "--passphrase-env", metavar="NAME", help="Read the passphrase from this environment variable."
    )(command)
    command = click.option(
        "--passphrase-file",
        type=click.Path(path_type=Path),
        help="Read the passphrase from the first line of this file.",
    )(command)
    return click.option("--passphrase", is_flag=True, help="Ask for a passphrase.")(command)


def recipients_from_options(
    recipients: tuple[str, ...], files: tuple[Path, ...], ask: bool, file: Path | None, variable: str | None
) -> "Recipients | None":
    """Return the encryption that was requested; None for an archive without encryption."""
    from trunkline._util.archives.encryption import Recipients

    keys = (*recipients, *(line for one in files for line in _lines(one)))
    passphrase = _given(ask, file, variable, confirm=True)
    if keys and passphrase is not None:
        raise click.UsageError("An archive is encrypted either for keys or with a passphrase.")
    if not keys and passphrase is None:
        return None
    return Recipients(recipients=keys, passphrase=passphrase)


def keys_from_options(
    archive: Path, identities: tuple[Path, ...], ask: bool, file: Path | None, variable: str | None
) -> "DecryptionKeys":
    """Return the keys that open an archive. Asks for a passphrase when the archive is encrypted with one and none was
    given."""
    from trunkline._util.archives.encryption import ArchiveEncryptionError, DecryptionKeys, needs_passphrase

    wanted = needs_passphrase(archive)
    passphrase = _given(ask or (wanted and file is None and variable is None), file, variable, confirm=False)
    if not wanted and not identities:
        raise ArchiveEncryptionError(
            f"{archive} is encrypted for a key.", hint="Give the file of the key: --identity key.txt"
        )
    return DecryptionKeys(identities=identities, passphrase=passphrase if wanted else None)


def _given(ask: bool, file: Path | None, variable: str | None, *, confirm: bool) -> str | None:
    from trunkline.config.secret import Secret

    if sum((ask, file is not None, variable is not None)) > 1:
        raise click.UsageError("Give only one of the passphrase options.")
    if file is not None:
        lines = _lines(file)
        if not lines:
            raise click.UsageError(f"{file} is empty.")
        return lines[0]
    if variable is not None:
        return Secret(env=variable).reveal()
    if not ask:
        return None
    if not sys.stdin.isatty():
        raise click.UsageError(
            "Asking for a passphrase needs a terminal. Use --passphrase-file or --passphrase-env."
        )
    given: str = click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    return given


def _lines(file: Path) -> list[str]:
    try:
        lines = file.expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read.") from error
    return [line for line in lines if line.strip() and not re.match(r"\s*#", line)]
