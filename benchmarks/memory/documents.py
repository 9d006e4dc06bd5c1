"""``documents``: a thousand files of several formats in one command, and the same command when nothing has changed."""

import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

import anyio.to_thread

from benchmarks.memory.bench import Bench, BenchRow

FILES = 1_000
TEXT = "The runner beans climb the frame behind the shed, and want water in the evening. " * 40


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """``trunkline memory add`` from start to end, the start of a platform included."""
    files = bench.sized(FILES, least=20)
    folder = bench.folder / "documents"
    await anyio.to_thread.run_sync(_make, folder, files)
    for what in ("brought", "looked at again, unchanged"):
        began = perf_counter()
        said = await anyio.to_thread.run_sync(_add, bench.folder / "home", folder)
        seconds = perf_counter() - began
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        yield BenchRow(
            f"{files} documents (PDF, DOCX, XLSX, HTML, text) {what}",
            f"{seconds:.1f} s, {files / seconds:.0f} files/s, {most:.0f} MB in the largest process; {said}",
        )


def _add(home: Path, folder: Path) -> str:
    argv = [sys.executable, "-m", "trunkline.cli.main", "memory", "add", str(folder)]
    env = {**os.environ, "TRUNKLINE_HOME": str(home)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=1_800)
    return done.stdout.strip()


def _make(folder: Path, files: int) -> None:
    folder.mkdir(parents=True)
    makers = (_pdf, _docx, _xlsx, _html, _text)
    for number in range(files):
        name, data = makers[number % len(makers)](number)
        (folder / f"{number}{name}").write_bytes(data)


def _text(number: int) -> tuple[str, bytes]:
    return ".md", f"# Note {number}\n\n{TEXT}\n".encode()


def _html(number: int) -> tuple[str, bytes]:
    return ".html", f"<h1>Page {number}</h1><p>{TEXT}</p>".encode()


def _docx(number: int) -> tuple[str, bytes]:
    from io import BytesIO

    from docx import Document

    word = Document()
    word.add_heading(f"Letter {number}", level=1)
    for _ in range(10):
        word.add_paragraph(TEXT)
    file = BytesIO()
    word.save(file)
    return ".docx", file.getvalue()


def _xlsx(number: int) -> tuple[str, bytes]:
    from io import BytesIO

    from openpyxl import Workbook

    book = Workbook()
    for row in range(200):
        book.active.append([f"Plant {row}", row * number, TEXT[:60]])
    file = BytesIO()
    book.save(file)
    return ".xlsx", file.getvalue()


def _pdf(number: int) -> tuple[str, bytes]:
    """Ten pages, written by hand."""
    pages = 10
    kids = " ".join(f"{4 + 2 * page} 0 R" for page in range(pages))
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for page in range(pages):
        lines = "".join(f"({TEXT[:80]}) Tj 0 -14 Td " for _ in range(40))
        shown = f"BT /F1 9 Tf 40 760 Td (Report {number}, page {page + 1}) Tj 0 -14 Td {lines}ET"
        bodies.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {5 + 2 * page} 0 R >>"
        )
        bodies.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    out, places = bytearray(b"%PDF-1.4\n"), []
    for place, body in enumerate(bodies, start=1):
        places.append(len(out))
        out += f"{place} 0 obj\n{body}\nendobj\n".encode()
    start = len(out)
    out += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += f"trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return ".pdf", bytes(out)
