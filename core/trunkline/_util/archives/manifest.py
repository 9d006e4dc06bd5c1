"""The manifest of a memory archive, its first member. Plain data.

::

    manifest.json  README.txt  memory/.git/…  memory/…  [derived/…]  SHA256SUMS

``SHA256SUMS`` is the last member: ``sha256sum -c SHA256SUMS`` checks all others, and an archive without it is
truncated.
"""

from datetime import UTC, datetime

import msgspec

MANIFEST, README, SUMS, MEMORY, DERIVED = "manifest.json", "README.txt", "SHA256SUMS", "memory", "derived"

SCHEMA = 1
"""The version of the format. It increases when an older Trunkline could not use a newer archive, which is
then refused."""

OWN = "trunkline"
"""The name of the system whose archives include their history."""


class ImportGap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that could not be imported or exported. ``hint`` states what to do about it."""

    what: str
    why: str
    hint: str = ""


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content and the origin of an archive.

    ``system`` is the system that the memory comes from. ``head`` is the exported commit; "" without a
    history. ``plugins`` are the installed distributions with their versions. ``sources`` gives for each file
    its place in the other system, and ``gaps`` what was left behind there; both are empty for a memory of
    Trunkline.
    """

    form: str = "trunkline-memory"
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
        """Return the member's bytes: JSON that people can read."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
