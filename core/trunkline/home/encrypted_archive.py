"""Encrypts an archive while it is written, and decrypts an archive into a private folder.

Unencrypted data is only in private folders.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trunkline._util.archives.encryption import DecryptionKeys, Recipients, decrypt, encrypt
from trunkline._util.private_folders import make_private
from trunkline.errors import StorageError


@contextmanager
def temporary_private_file(folder: Path, name: str) -> Iterator[Path]:
    """Yield a path for a file that is removed at the end of the block."""
    make_private(folder)
    with tempfile.TemporaryDirectory(prefix=".carry-", dir=folder) as private:
        yield Path(private) / name


def encrypt_file(plain: Path, target: Path, to: Recipients) -> None:
    """Write an encrypted copy to ``target``. The file appears when it is complete. Raises ArchiveEncryptionError and
    StorageError.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with plain.open("rb") as source, os.fdopen(handle, "wb") as file:
            encrypt(source, file, to)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        why = (error.strerror or "failed").lower()
        raise StorageError(f"{target} cannot be written: {why}.", hint="Choose another place.") from error
    finally:
        part.unlink(missing_ok=True)


def decrypt_file(locked: Path, target: Path, keys: DecryptionKeys) -> None:
    """Decrypt a file to a new file. Raises ArchiveEncryptionError and StorageError."""
    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with locked.open("rb") as source, os.fdopen(handle, "wb") as file:
            decrypt(source, file, keys)
    except OSError as error:
        raise StorageError(f"{locked} cannot be read: {(error.strerror or 'failed').lower()}.") from error
