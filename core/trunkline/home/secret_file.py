"""A random secret in a file of the home that only the owner can read: the token, and the key of access tokens."""

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

from trunkline.errors import StorageError
from trunkline.home.paths import make_folder, storage_errors

log = logging.getLogger(__name__)

SHORTEST = 16


def load_secret(file: Path) -> str:
    """Return the secret in a file; create it if there is no file. The file appears with its whole content, so processes
    that start at the same time return the same secret, and a crash leaves no empty file.

    Raises:
      StorageError: the file cannot be read or written, or its content is too short for a secret.
    """
    make_folder(file.parent)
    with storage_errors(file):
        if not file.exists():
            fresh = _write_new(file)
            try:
                with suppress(FileExistsError):  # another process was first
                    os.link(fresh, file)
            finally:
                fresh.unlink()
    return read_secret(file)


def read_secret(file: Path) -> str:
    """Return the secret in a file. A file that others can read becomes private first.

    Raises:
      StorageError: the file is missing or cannot be read, or its content is too short for a secret.
    """
    with storage_errors(file):
        if file.stat().st_mode & 0o077:
            log.warning("the file %s could be read by others; it is now for its owner only", file)
            file.chmod(0o600)
        secret = file.read_text(encoding="utf-8", errors="replace").strip()
    if len(secret) < SHORTEST:
        raise StorageError(
            f"The {file.name} in {file} is shorter than {SHORTEST} characters.",
            hint="Delete the file; the next start makes a new one.",
        )
    return secret


def replace_secret(file: Path) -> str:
    """Write a new secret in place of the old one, in one step, and return it.

    Raises:
      StorageError: the file cannot be written; the old secret stays.
    """
    with storage_errors(file):
        _write_new(file).replace(file)
    return read_secret(file)


def _write_new(file: Path) -> Path:
    """Write a new secret to a new file beside a file, and return its path."""
    fresh = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as writer:
        writer.write(secrets.token_urlsafe(32) + "\n")
        writer.flush()
        os.fsync(descriptor)
    return fresh
