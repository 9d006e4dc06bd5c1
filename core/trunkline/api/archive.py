"""Memory archives: writing an archive, and unpacking an untrusted archive."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.archives.manifest import DERIVED as DERIVED
    from trunkline._util.archives.manifest import MANIFEST as MANIFEST
    from trunkline._util.archives.manifest import MEMORY as MEMORY
    from trunkline._util.archives.manifest import OWN as OWN
    from trunkline._util.archives.manifest import README as README
    from trunkline._util.archives.manifest import ArchiveManifest as ArchiveManifest
    from trunkline._util.archives.reader import InvalidArchive as InvalidArchive
    from trunkline._util.archives.reader import is_safe as is_safe
    from trunkline._util.archives.reader import unpack as unpack
    from trunkline._util.archives.writer import ArchiveWriter as ArchiveWriter
    from trunkline._util.archives.writer import write_archive as write_archive
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
