"""Unpacks a body as it comes, never more of it than there is room for: a small one may stand for gigabytes. No I/O."""

import zlib

from trunkline import ToolError

ENCODINGS = "gzip, deflate"
"""The value of Accept-Encoding: the encodings that this module unpacks."""

_EITHER = 32 + zlib.MAX_WBITS
"""zlib or gzip, whichever it begins like."""


class Decompressor:
    """Unpacks what came by one ``Content-Encoding``. Raises ToolError for one that is not known."""

    def __init__(self, packing: str) -> None:
        names = [
            name.strip().lower()
            for name in packing.split(",")
            if name.strip().lower() not in ("", "identity")
        ]
        if names not in ([], ["gzip"], ["x-gzip"], ["deflate"]):
            raise ToolError(
                f"The page is compressed as {packing[:80]!r}, which was not requested.", kind="upstream_error"
            )
        self._plain = not names
        self._may_be_bare = names == ["deflate"]
        self._inner = zlib.decompressobj(_EITHER)
        self._begun = False

    def feed(self, data: bytes, room: int) -> bytes:
        """Return the decompressed data, at most ``room`` bytes (above 0); the rest is dropped. Raises ToolError."""
        if self._plain:
            return data[:room]
        try:
            out = self._decompress(data, room)
        except zlib.error as error:
            raise ToolError(
                "The page is compressed, and the compressed data is damaged.", kind="upstream_error"
            ) from error
        self._begun = self._begun or bool(data)
        return out

    def _decompress(self, data: bytes, room: int) -> bytes:
        try:
            return self._inner.decompress(data, room)
        except zlib.error:
            if self._begun or not self._may_be_bare:
                raise
            self._inner = zlib.decompressobj(
                -zlib.MAX_WBITS
            )  # "deflate" without the wrapping, as some send it
            return self._inner.decompress(data, room)
