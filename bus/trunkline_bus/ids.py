"""Identifiers: ids that sort by time, and subject keys made from any text. No I/O."""

import base64
import hashlib
import os
import threading
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_RANDOM_BITS = 80
_DRAWN_BYTES = 1_000


class _UlidSource:
    """Makes ULIDs that increase within a process, even if the clock steps back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._pid = 0
        self._random = b""

    def next(self) -> int:
        with self._lock:
            floor = (time.time_ns() // 1_000_000) << _RANDOM_BITS
            if os.getpid() != self._pid:
                self._pid, self._last, self._random = os.getpid(), 0, b""
            if floor > self._last:
                self._last = floor | (self._drawn(10) >> 1)
            else:
                self._last += 1 + self._drawn(4)
            return self._last

    def _drawn(self, count: int) -> int:
        """Return random bytes as a number. The bytes are read from the system in bulk, because each read lets other
        threads run.
        """
        if len(self._random) < count:
            self._random = os.urandom(_DRAWN_BYTES)
        drawn, self._random = self._random[:count], self._random[count:]
        return int.from_bytes(drawn)


_next_ulid = _UlidSource().next  # the only process-wide state: ids that increase within a process need it


def new_id(prefix: str = "") -> str:
    """Return a new unique id: 26 characters of Crockford base32 (a ULID) that sort by time and increase within a
    process.

    With a prefix, ``new_id("conv")`` is ``"conv_01J…"``. The id is a valid subject key.
    """
    number = _next_ulid()
    text = "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])
    return f"{prefix}_{text}" if prefix else text


def key_of(*parts: str) -> str:
    """Return a subject key made from any text: 26 characters of base32 of the SHA-256 of the length-prefixed parts.

    Equal parts give equal keys; ``key_of("ab", "c")`` and ``key_of("a", "bc")`` differ.
    """
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8))
        digest.update(raw)
    return base64.b32encode(digest.digest())[:26].decode().lower()
