"""Every format, read in a separate process: text, headings and pages, and broken files."""

import shutil

import pytest
import samples

from trunkline.api.documents import UnreadableDocument

SOUND = {
    "a.pdf": samples.pdf(["beans"]),
    "a.docx": samples.docx(),
    "a.xlsx": samples.xlsx(),
    "a.pptx": samples.pptx(),
    "a.epub": samples.epub(),
    "a.html": samples.HTML.encode(),
    "a.odt": samples.opendocument(samples.ODT),
    "a.eml": samples.MAIL,
    "a.ipynb": samples.NOTEBOOK,
}

pytestmark = pytest.mark.anyio


async def test_a_pdf_has_pages_and_bookmarks(read) -> None:
    """Each page is cited by its number, under the bookmark that holds there."""
    data = samples.pdf(
        ["Sow in May.", "Water daily.", "Eat."], title="Beans", bookmarks={"Spring": 0, "Summer": 1}
    )
    found = await read("a.pdf", data)
    assert (found.title, found.pages) == ("Beans", 3)
    assert [(one.page, one.heading, one.text) for one in found.sections] == [
        (1, ("Spring",), "Sow in May."),
        (2, ("Summer",), "Water daily."),
        (3, ("Summer",), "Eat."),
    ]


async def test_a_word_document_keeps_its_order(read) -> None:
    """Headings nest; lists and tables keep their positions."""
    found = await read("a.docx", SOUND["a.docx"])
    assert found.title == "The allotment"
    assert [(one.heading, one.text) for one in found.sections] == [
        (("Garden",), "The climbing frame is green."),
        (("Garden", "Tools"), "- A spade"),
        (("Garden", "Tools"), "| Plant | Rows |\n| --- | --- |\n| Beans | 4 |"),
    ]


async def test_a_spreadsheet_is_tables_with_their_header(read) -> None:
    """Every portion of a sheet says what its columns mean."""
    found = await read("a.xlsx", samples.xlsx(60))
    first, second = found.sections
    assert first.heading == ("Harvest", "Rows 2 to 41")
    assert second.heading == ("Harvest", "Rows 42 to 60")
    assert second.text.splitlines()[0] == "| Plant | Kilos | Day |"
    assert second.text.splitlines()[2] == "| Plant 41 | 20.5 | 2026-05-01 |"


async def test_slides_are_read_in_display_order(read) -> None:
    """A slide is a page under its title, with its notes; tables are read too."""
    found = await read("a.pptx", SOUND["a.pptx"])
    assert [(one.page, one.heading, one.text) for one in found.sections] == [
        (1, ("Spring",), "Sow the beans.\n\nNotes: Mention the frost."),
        (2, ("Slide 2",), "| Beans | 4 |\n| --- | --- |"),
    ]


async def test_a_web_page_is_its_content(read) -> None:
    """Headings, lists, tables and code; no script, no style, no navigation."""
    found = await read("a.html", SOUND["a.html"])
    assert found.title == "All about beans"
    assert [(one.heading, one.text) for one in found.sections] == [
        (("Beans",), "Runner beans climb."),
        (("Beans", "Water"), "- Daily\n- In the evening"),
        (("Beans", "Water"), "| Week | Litres |\n| --- | --- |\n| 1 | 10 |"),
        (("Beans", "Water"), "```\nif dry:\n    water()\n```"),
    ]


async def test_a_book_is_read_in_the_order_of_its_spine(read) -> None:
    """Chapters are under their headings, for any file names."""
    found = await read("a.epub", SOUND["a.epub"])
    assert found.title == "The Bean Book"
    assert [(one.heading, one.text) for one in found.sections] == [
        (("First",), "Beans are sown in May."),
        (("Second",), "They climb poles."),
    ]


async def test_opendocument_is_read(read) -> None:
    """Texts with headings, lists and tables; sheets of any declared size; slides as pages."""
    found = await read("a.odt", SOUND["a.odt"])
    assert found.title == "The allotment"
    assert [(one.heading, one.text) for one in found.sections] == [
        (("Garden",), "The frame is green.\n\n- A spade"),
        (("Garden",), "| Plant |\n| --- |\n| Beans |"),
    ]
    (sheet,) = (await read("a.ods", samples.opendocument(samples.ODS))).sections
    assert (sheet.heading, sheet.text) == (("Harvest", "Rows 2 to 2"), "| Plant |\n| --- |\n| Beans |")
    (slide,) = (await read("a.odp", samples.opendocument(samples.ODP))).sections
    assert (slide.page, slide.heading, slide.text) == (1, ("Spring",), "Sow.")


async def test_an_e_mail_is_read(read) -> None:
    """The text has sender, date and body, and the names of the attachments."""
    found = await read("a.eml", samples.MAIL)
    assert found.title == "Bäume"
    head, body, attached = (one.text for one in found.sections)
    assert "- From: Ada <ada@example.org>" in head
    assert (body, attached) == ("The oak stands.", "Attachments: plan.pdf")


async def test_a_notebook_is_read(read) -> None:
    """The text has prose, code, and the output of the code."""
    found = await read("a.ipynb", samples.NOTEBOOK)
    assert [one.text for one in found.sections] == [
        "# Yield\nPer bed.",
        "```\nprint(4)\n```\n\nIt printed:\n\n```\n4\n\n```",
    ]


@pytest.mark.skipif(shutil.which("tesseract") is not None, reason="tesseract is installed")
async def test_a_picture_without_tesseract_names_the_missing_program(read) -> None:
    """A picture, and a PDF of pictures, are refused with the name of the missing program."""
    for name, data in (("a.png", samples.PNG), ("a.pdf", samples.pdf([""]))):
        with pytest.raises(UnreadableDocument, match="apt install tesseract-ocr"):
            await read(name, data)


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="needs tesseract (apt install tesseract-ocr)")
async def test_the_text_of_a_picture_is_read(read) -> None:
    """With tesseract a picture of a page is read as its text, and so is a PDF whose pages are pictures."""
    import pypdfium2

    from trunkline_documents.pdf import _picture

    picture = _picture(pypdfium2.PdfDocument(samples.pdf(["Water the beans"]))[0])
    for name, data in (("a.png", picture), ("a.pdf", samples.scanned(picture))):
        found = await read(name, data)
        assert "Water the beans" in found.sections[0].text
    assert (found.pages, found.sections[0].page) == (1, 1)


@pytest.mark.parametrize("name", SOUND)
async def test_a_broken_file_is_refused_with_a_reason(read, name: str) -> None:
    """An empty file, a truncated one, one with noise inside and another format: the result is one sentence, or the
    readable part, and the next file is read."""
    sound = SOUND[name]
    middle = len(sound) // 2
    harms = {
        "empty": b"",
        "half": sound[:middle],
        "noise": sound[:middle] + bytes(range(256)) + sound[middle + 256 :],
        "wrong": b"\0\1\2 this is none of them",
    }
    for harm, broken in harms.items():
        try:
            found = await read(name, broken)
            assert found.sections
            assert name in ("a.html", "a.pdf", "a.eml") or harm == "noise"
        except UnreadableDocument as error:
            assert error.sentence.startswith("it ")
            assert "\n" not in error.sentence
    assert (await read(name, sound)).sections


async def test_xml_that_unfolds_without_end_is_refused(read) -> None:
    """A billion laughs in a part of a presentation or of a book costs nothing."""
    for name, part in (("a.pptx", "ppt/presentation.xml"), ("a.epub", "META-INF/container.xml")):
        with pytest.raises(UnreadableDocument):
            await read(name, samples.packed({part: samples.laughs()}))


async def test_an_archive_that_unpacks_without_end_is_refused(read) -> None:
    """520 MB of zeros in a file of some megabytes."""
    bomb = samples.packed({"word/document.xml": bytes(520 * 1024 * 1024)})
    assert len(bomb) < 4_000_000
    for name in ("a.docx", "a.xlsx", "a.pptx", "a.epub"):
        with pytest.raises(UnreadableDocument, match="unpack"):
            await read(name, bomb)


async def test_a_pdf_that_unpacks_without_end_is_refused(read) -> None:
    """A page of some kilobytes that holds a hundred million letters."""
    bomb = samples.pdf_bomb()
    assert len(bomb) < 1_000_000
    with pytest.raises(UnreadableDocument, match=r"memory|longer|characters"):
        await read("a.pdf", bomb)


async def test_a_page_nested_without_end_is_read(read) -> None:
    """Depth costs no stack."""
    found = await read("deep.html", b"<div>" * 2_000 + b"deep" + b"</div>" * 2_000)
    assert "deep" in found.sections[0].text
