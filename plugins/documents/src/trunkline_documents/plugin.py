"""The plugin: declares its readers and tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_readers() -> Iterable[trunkline.Reader]:
    """The formats that are read (MN-F13, MN-F21). Their libraries are imported where they run."""
    from trunkline_documents.books import EpubReader
    from trunkline_documents.mail import MailReader
    from trunkline_documents.notebooks import NotebookReader
    from trunkline_documents.opendocument import OpenDocumentReader
    from trunkline_documents.pages import HtmlReader
    from trunkline_documents.pdf import PdfReader
    from trunkline_documents.pictures import PictureReader
    from trunkline_documents.sheets import XlsxReader
    from trunkline_documents.slides import PptxReader
    from trunkline_documents.words import DocxReader

    return [
        PdfReader(), DocxReader(), XlsxReader(), PptxReader(), OpenDocumentReader(), EpubReader(), HtmlReader(),
        MailReader(), NotebookReader(), PictureReader(),
    ]  # fmt: skip


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """The document tools (MN-F16, MN-F21)."""
    from trunkline_documents import changing, looking
    from trunkline_documents.summaries import Summaries
    from trunkline_documents.summarizing import summary_tool

    return [
        looking.read_document,
        looking.search_in_documents,
        looking.list_documents,
        changing.ingest_document,
        changing.clear_documents,
        summary_tool(Summaries(settings.home)),
    ]


@trunkline.hookimpl
def trunkline_purgers(settings: trunkline.PluginSettings) -> Iterable[trunkline.Purger]:
    """Summaries go with any purge."""
    from trunkline_documents.summaries import Forgetting, Summaries

    return [Forgetting(Summaries(settings.home))]
