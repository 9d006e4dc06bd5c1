"""The bytes of vectors on the bus: 32-bit floats, little-endian. Pure.

Vendors compute vectors in 32 bits, so nothing is lost, and a vector takes a quarter of its size as JSON.
"""

import struct
from collections.abc import Iterator, Sequence

MAX_PART_BYTES = 64 * 1024
"""The largest part in bytes. A part with a single vector may be larger."""


def pack_vectors(vectors: Sequence[Sequence[float]]) -> Iterator[tuple[int, bytes]]:
    """Yield the vectors in parts: the number of vectors of each part, and their bytes. Raises nothing."""
    per_part = max(1, MAX_PART_BYTES // (4 * max(map(len, vectors), default=1) or 1))
    for start in range(0, len(vectors), per_part):
        part = vectors[start : start + per_part]
        yield len(part), b"".join(struct.pack(f"<{len(one)}f", *one) for one in part)


def unpack_vectors(data: bytes, count: int) -> Iterator[tuple[float, ...]]:
    """Yield ``count`` vectors of the same length.

    Raises:
        ValueError: the bytes are not ``count`` vectors of the same length.
    """
    size, rest = divmod(len(data), 4 * count) if count else (0, len(data))
    if rest:
        raise ValueError(f"{len(data)} bytes are not {count} vectors")
    for number in range(count):
        yield struct.unpack_from(f"<{size}f", data, number * size * 4)
