"""Small files of every format, made when a test wants them."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

PNG = b"\x89PNG\r\n\x1a\n\0\0\0"

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def pdf(pages: Sequence[str], *, title: str = "", bookmarks: Mapping[str, int] | None = None) -> bytes:
    """A PDF with a line of text on each page; ``bookmarks`` lead to pages counted from 0."""
    marks = list((bookmarks or {}).items())
    first = 5 + 2 * len(pages)
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    outline = f"/Outlines {first} 0 R" if marks else ""
    bodies = [
        f"<< /Type /Catalog /Pages 2 0 R {outline} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    for number, text in enumerate(pages):
        shown = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        bodies.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {6 + 2 * number} 0 R >>"
        )
        bodies.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    if marks:
        bodies.append(f"<< /Type /Outlines /First {first + 1} 0 R /Last {first + len(marks)} 0 R >>")
        for place, (name, page) in enumerate(marks, start=first + 1):
            after = f"/Next {place + 1} 0 R" if place < first + len(marks) else ""
            bodies.append(
                f"<< /Title ({name}) /Parent {first} 0 R {after} /Dest [{5 + 2 * page} 0 R /Fit] >>"
            )
    return _with_table(bodies)


def _with_table(bodies: Sequence[str]) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(bodies, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start = len(out)
    out += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += f"trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def pdf_bomb() -> bytes:
    """Return a small PDF whose only page repeats the same text without end."""
    shown = zlib.compress(b"BT /F1 12 Tf 72 720 Td " + b"(x) Tj " * 16_000_000 + b"ET", 1).decode("latin-1")
    return _with_table(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 6 0 R >> >>"
            " /Contents 5 0 R >>",
            "<< /Title () >>",
            f"<< /Length {len(shown)} /Filter /FlateDecode >>\nstream\n{shown}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
    )


def scanned(picture: bytes) -> bytes:
    """A PDF whose only page is a grey picture in the PGM format."""
    head, data = picture.split(b"\n", 1)
    width, height = map(int, head.split()[1:3])
    placed = "q 612 0 0 792 0 0 cm /Im Do Q"
    return _with_table(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /XObject << /Im 6 0 R >> >>"
            " /Contents 5 0 R >>",
            "<< /Title () >>",
            f"<< /Length {len(placed)} >>\nstream\n{placed}\nendstream",
            f"<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray"
            f" /BitsPerComponent 8 /Length {len(data)} >>\nstream\n{data.decode('latin-1')}\nendstream",
        ]
    )


def docx() -> bytes:
    """Two headings, a list and a table."""
    from docx import Document

    word = Document()
    word.core_properties.title = "The allotment"
    word.add_heading("Garden", level=1)
    word.add_paragraph("The climbing frame is green.")
    word.add_heading("Tools", level=2)
    word.add_paragraph("A spade", style="List Bullet")
    table = word.add_table(rows=0, cols=2)
    for row in (("Plant", "Rows"), ("Beans", "4")):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    file = io.BytesIO()
    word.save(file)
    return file.getvalue()


def xlsx(rows: int = 3) -> bytes:
    """A sheet of plants and an empty one."""
    import datetime

    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Harvest"
    sheet.append(["Plant", "Kilos", "Day"])
    for number in range(1, rows):
        sheet.append([f"Plant {number}", number / 2, datetime.date(2026, 5, 1)])
    book.create_sheet("Empty")
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def pptx() -> bytes:
    """Two slides, the second shown first; one has a title and notes, the other a table."""

    def shape(kind: str, *lines: str) -> str:
        paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        holder = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        return f"<p:sp>{holder}<p:txBody>{paragraphs}</p:txBody></p:sp>"

    def slide(*shapes: str, root: str = "sld") -> str:
        spaces = f'xmlns:p="{PRESENTATION}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}"'
        return f"<p:{root} {spaces}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:{root}>"

    def relations(*targets: tuple[str, str, str]) -> str:
        inner = "".join(
            f'<Relationship Id="{id}" Type="{OFFICE}/{kind}" Target="{target}"/>'
            for id, kind, target in targets
        )
        return f'<Relationships xmlns="{PACKAGE}">{inner}</Relationships>'

    cells = "".join(f"<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>" for text in ("Beans", "4"))
    return packed(
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="{PRESENTATION}" xmlns:r="{OFFICE}"><p:sldIdLst>'
            '<p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": relations(
                ("rId1", "slide", "slides/slide1.xml"), ("rId2", "slide", "slides/slide2.xml")
            ),
            "ppt/slides/slide1.xml": slide(f"<a:tbl><a:tr>{cells}</a:tr></a:tbl>"),
            "ppt/slides/slide2.xml": slide(shape("title", "Spring"), shape("body", "Sow the beans.")),
            "ppt/slides/_rels/slide2.xml.rels": relations(
                ("rId1", "notesSlide", "../notesSlides/notesSlide1.xml")
            ),
            "ppt/notesSlides/notesSlide1.xml": slide(shape("body", "Mention the frost."), root="notes"),
        }
    )


HTML = """<!doctype html><html><head><title>All  about beans</title><style>p {color: red}</style></head><body>
<nav>Home</nav><h1>Beans</h1><p>Runner <b>beans</b> climb.</p><script>alert(1)</script>
<h2>Water</h2><ul><li>Daily</li><li>In the <i>evening</i></li></ul>
<table><tr><th>Week</th><th>Litres</th></tr><tr><td>1</td><td>10</td></tr></table>
<pre>if dry:
    water()</pre></body></html>"""


def epub() -> bytes:
    """Two chapters, the second of which comes first in the spine."""
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><body><h1>{0}</h1><p>{1}</p></body></html>"
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles>"
            "<rootfile full-path='book/package.opf'/></rootfiles></container>",
            "book/package.opf": "<package xmlns='http://www.idpf.org/2007/opf'>"
            "<metadata xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>The Bean Book</dc:title></metadata>"
            "<manifest><item id='a' href='a%20b.xhtml'/><item id='c' href='c.xhtml'/></manifest>"
            "<spine><itemref idref='c'/><itemref idref='a'/></spine></package>",
            "book/a b.xhtml": chapter.format("Second", "They climb poles."),
            "book/c.xhtml": chapter.format("First", "Beans are sown in May."),
        }
    )


def opendocument(body: str) -> bytes:
    """An OpenDocument file with this in its body."""
    names = ("office", "text", "table", "presentation")
    spaces = " ".join(f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"' for one in names)
    spaces += ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
    content = f"<office:document-content {spaces}><office:body>{body}</office:body></office:document-content>"
    meta = "<meta xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>The allotment</dc:title></meta>"
    return packed({"content.xml": content, "meta.xml": meta})


ODT = """<office:text><text:h text:outline-level="1">Garden</text:h>
<text:p>The frame<text:line-break/>is<text:tab/><text:span>green</text:span>.</text:p>
<text:list><text:list-item><text:p>A spade</text:p></text:list-item></text:list>
<table:table><table:table-row><table:table-cell><text:p>Plant</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>Beans</text:p></table:table-cell></table:table-row></table:table></office:text>"""
ODS = """<office:spreadsheet><table:table table:name="Harvest"><table:table-row><table:table-cell><text:p>Plant</text:p>
</table:table-cell><table:table-cell table:number-columns-repeated="16000"/></table:table-row><table:table-row
table:number-rows-repeated="1000000"><table:table-cell/></table:table-row><table:table-row><table:table-cell><text:p>Beans
</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>"""
ODP = """<office:presentation><draw:page><draw:frame presentation:class="title"><text:p>Spring</text:p></draw:frame>
<draw:frame presentation:class="outline"><text:p>Sow.</text:p></draw:frame></draw:page></office:presentation>"""

MAIL = b"""From: Ada <ada@example.org>
To: Ben <ben@example.org>
Subject: =?utf-8?q?B=C3=A4ume?=
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/html; charset=utf-8

<p>The <b>oak</b> stands.</p>
--x
Content-Type: application/pdf; name="plan.pdf"
Content-Disposition: attachment; filename="plan.pdf"

x
--x--
"""

NOTEBOOK = b"""{"cells": [{"cell_type": "markdown", "source": ["# Yield\\n", "Per bed."]},
{"cell_type": "code", "source": "print(4)", "outputs": [{"output_type": "stream", "text": ["4\\n"]}]}],
"nbformat": 4, "metadata": {}}"""


def laughs() -> str:
    """XML whose entities unfold to a billion words."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{entities}]><x>&l9;</x>'
