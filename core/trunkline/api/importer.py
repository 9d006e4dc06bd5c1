"""Importers: how the data of other programs becomes files and conversations of memory."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.archives.manifest import ImportGap as ImportGap
    from trunkline.contracts.memory.importer import ImportedConversation as ImportedConversation
    from trunkline.contracts.memory.importer import ImportedFile as ImportedFile
    from trunkline.contracts.memory.importer import Importer as Importer
    from trunkline.contracts.memory.importer import Source as Source
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
