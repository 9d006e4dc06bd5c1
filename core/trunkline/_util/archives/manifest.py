"""What an archive of memory says of itself, in its first member. Plain data.

::

    manifest.json  README.txt  memory/.git/…  memory/…  [derived/…]  SHA256SUMS

``SHA256SUMS`` is the last member: ``sha256sum -c SHA256SUMS`` checks all others, and an archive without it was cut.
"""

from datetime import UTC, datetime

import msgspec

MANIFEST, README, SUMS, MEMORY, DERIVED = "manifest.json", "README.txt", "SHA256SUMS", "memory", "derived"

SCHEMA = 1
"""Goes up when an older Trunkline could not use a newer archive; such a one is refused."""

OWN = "trunkline"
"""The system whose archives bring their history along."""


class ImportGap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that could not come along, or is not here. ``hint`` says what to do about it."""

    what: str
    why: str
    hint: str = ""


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in an archive, and what made it.

    ``system`` is whose memory it was. ``head`` is the commit of which it is a picture; "" when it has no history.
    ``plugins`` are the distributions that were installed, with their versions. ``sources`` tells for each file where
    in the other system it was, and ``gaps`` what of that was left behind; both are empty for a memory of Trunkline.
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
        """The member's bytes: JSON that a person can read."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
