"""The manifest, which is the first member of a memory archive. Plain data.

::

    manifest.json  README.txt  memory/.git/…  memory/…  [derived/…]  SHA256SUMS

``SHA256SUMS`` is the last member. ``sha256sum -c SHA256SUMS`` verifies all others, and an archive without it is
truncated.
"""

from datetime import UTC, datetime

import msgspec

MANIFEST, README, SUMS, MEMORY, DERIVED = "manifest.json", "README.txt", "SHA256SUMS", "memory", "derived"

SCHEMA = 1
"""The version of the archive format. It increases when older versions of Trunkline cannot use newer archives; they
refuse such an archive."""

OWN = "trunkline"
"""The name of the system whose archives include their history."""


class ImportGap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Data that could not be imported or exported. ``hint`` states the remedy."""

    what: str
    why: str
    hint: str = ""


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content and the origin of an archive.

    ``system`` is the system that the memory comes from. ``head`` is the exported commit; "" without a history.
    ``plugins`` are the installed distributions with their versions. ``sources`` gives the location of each file in
    the other system, and ``gaps`` the data that was not exported from there. Both are empty for a memory of
    Trunkline.
    """

    format: str = msgspec.field(default="trunkline-memory", name="form")
    schema: int = SCHEMA
    version: str
    created: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))
    system: str = OWN
    head: str = ""
    commits: int = 0
    files: int = 0
    conversations: int = 0
    blocks: tuple[str, ...] = ()
    plugins: dict[str, str] = {}
    sources: dict[str, str] = {}
    gaps: tuple[ImportGap, ...] = ()

    def encode(self) -> bytes:
        """Return the bytes of the member: indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
