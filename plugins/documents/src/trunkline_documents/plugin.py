"""The plugin: declares its readers and tools and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline.api.documents import Reader
from trunkline.api.memory import Purger


@trunkline.hookimpl
def trunkline_readers() -> Iterable[Reader]:
    """The formats that are read. Their libraries are imported where they run."""
    from trunkline_documents.docx import DocxReader
    from trunkline_documents.epub import EpubReader
    from trunkline_documents.html import HtmlReader
    from trunkline_documents.images import ImageReader
    from trunkline_documents.mail import MailReader
    from trunkline_documents.notebooks import NotebookReader
    from trunkline_documents.opendocument import OpenDocumentReader
    from trunkline_documents.pdf import PdfReader
    from trunkline_documents.pptx import PptxReader
    from trunkline_documents.xlsx import XlsxReader

    return [
        PdfReader(), DocxReader(), XlsxReader(), PptxReader(), OpenDocumentReader(), EpubReader(), HtmlReader(),
        MailReader(), NotebookReader(), ImageReader(),
    ]  # fmt: skip


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """The document tools."""
    from trunkline_documents import ingest_tools, read_tools
    from trunkline_documents.summarization import summary_tool
    from trunkline_documents.summary_cache import SummaryCache

    return [
        read_tools.read_document,
        read_tools.search_in_documents,
        read_tools.list_documents,
        ingest_tools.ingest_document,
        ingest_tools.clear_documents,
        summary_tool(SummaryCache(settings.home)),
    ]


@trunkline.hookimpl
def trunkline_purgers(settings: trunkline.PluginSettings) -> Iterable[Purger]:
    """Summaries go with any purge."""
    from trunkline_documents.summary_cache import SummaryCache, SummaryPurger

    return [SummaryPurger(SummaryCache(settings.home))]
