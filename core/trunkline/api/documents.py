"""Readers of documents, and the text and sections that they extract."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.documents.collections import DocumentCollections as DocumentCollections
    from trunkline.contracts.documents.messages import CollectedDocument as CollectedDocument
    from trunkline.contracts.documents.messages import Excerpt as Excerpt
    from trunkline.contracts.documents.reader import Document as Document
    from trunkline.contracts.documents.reader import Documents as Documents
    from trunkline.contracts.documents.reader import DocumentText as DocumentText
    from trunkline.contracts.documents.reader import Reader as Reader
    from trunkline.contracts.documents.reader import Section as Section
    from trunkline.documents.excerpts import page_of as page_of
    from trunkline.documents.excerpts import text_around as text_around
    from trunkline.documents.markdown import parse_origin as parse_origin
    from trunkline.errors import UnreadableDocument as UnreadableDocument
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
