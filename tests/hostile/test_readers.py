"""Files of strangers: bombs, entities, links, scripts, endless nesting. A sentence each, and other files are read."""

from __future__ import annotations

import json
import sys
import warnings
import zlib
from pathlib import Path

import pytest
from chunkcore import Document, Span
from chunkcore.errors import DataError
from chunkcore.reading import Reader, Reading, base, read_file
from chunkcore.reading.folders import load_documents

from tests.files import lines_of, paragraph, pdf_bytes, word_xml, write_docx, write_epub, write_zip

pytest.importorskip("pypdfium2")
pytest.importorskip("justhtml")
pytest.importorskip("markitdown")


def told(file: Path, text: str = "Tea.") -> str:
    """The one line that a folder's reader says of the file; the file beside it is read."""
    (file.parent / "good.txt").write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what another test has left
        documents = load_documents(file.parent)
    assert [each.text for each in documents] == [text]
    (one,) = [str(each.message) for each in caught]
    assert "\n" not in one
    assert len(one) < 400
    assert file.name in one
    return one


def outcome(file: Path) -> str:
    """The file's text, or "Tea." for an error of one sentence."""
    try:
        return read_file(file).document.text
    except DataError as error:
        return "Tea." if "\n" not in str(error) else "lines"


def deflated(size: int, unit: bytes) -> bytes:
    """A zlib stream that unpacks to some `size` bytes, made of one megabyte's block."""
    packer = zlib.compressobj(9)
    head = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (size // len(unit)) + packer.flush()


def pdf_with_stream(packed: bytes, filters: bytes) -> bytes:
    data = pdf_bytes([lines_of("Tea.")])
    start = data.index(b"<</Length")
    end = data.index(b"endstream")
    stream = b"<</Length %d/Filter[%s]>>stream\n%s\n" % (len(packed), filters, packed)
    return data[:start] + stream + data[end:]  # PDFium mends the table of places


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
@pytest.mark.parametrize("unit", [b" " * 2**20, b"BT /F1 9 Tf (tea) Tj ET " * 2**15])
def test_a_pdf_bomb_ends_in_a_sentence(tmp_path, unit, monkeypatch):
    monkeypatch.setattr(base, "SECONDS", 10.0)
    packed = zlib.compress(deflated(3 * 2**30, unit))
    (tmp_path / "bomb.pdf").write_bytes(pdf_with_stream(packed, b"/FlateDecode/FlateDecode"))
    assert (tmp_path / "bomb.pdf").stat().st_size < 200_000
    one = told(tmp_path / "bomb.pdf")
    assert "cannot be read within" in one or "without text" in one


def test_a_pdf_of_endless_pages_ends_in_a_sentence(tmp_path):
    data = pdf_bytes([lines_of("Tea.")])
    for number, pages in enumerate((b"/Count 2000000000/Kids[5 0 R]", b"/Count 9999999/Kids[2 0 R 2 0 R]")):
        start = data.index(b"/Count 1")
        bad = data[:start] + pages + data[data.index(b">>", start) :]
        (tmp_path / f"{number}.pdf").write_bytes(bad)
        assert outcome(tmp_path / f"{number}.pdf") == "Tea."


class Peak(Reader):
    """Tells how much memory the process of readers has had."""

    def read(self, data, name):
        return Reading(Document(name, Path("/proc/self/status").read_text()))


def test_a_pdf_of_2000_pages_is_read_in_bounded_memory(tmp_path):
    pages = [lines_of(f"Page {number} of tea.\nBlack.") for number in range(2000)]
    (tmp_path / "big.pdf").write_bytes(pdf_bytes(pages))
    document = read_file(tmp_path / "big.pdf").document
    assert document.text.count("of tea.") == 2000
    place = document.text.index("Page 1234")
    assert document.pages_of(Span(place, place + 4)) == (1235,)
    if sys.platform == "linux":
        peak = base.read_guarded(Peak, b"", Path("a"), "a").document.text
        assert int(peak.partition("VmHWM:")[2].split()[0]) < 300_000  # kB


def test_archives_that_are_bombs_are_not_unpacked(tmp_path):
    members = {"word/document.xml": word_xml("<w:body/>"), "word/styles.xml": word_xml(" " * 70_000_000)}
    assert "unpacks to over 50 times its size" in told(write_zip(tmp_path / "a.docx", members))
    (tmp_path / "a.docx").unlink()
    pages = {f"{number}.xhtml": "<p>" + " " * 10_000_000 for number in range(9)}
    assert "unpacks to over 50 times its size" in told(write_epub(tmp_path / "a.epub", pages))
    many = {f"{number}": "" for number in range(10_001)}
    file = write_zip(tmp_path / "a.epub", {"mimetype": "application/epub+zip", **many})
    assert "10,002 files" in told(file)


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("entities", [LAUGHS, OUTSIDE, '<!DOCTYPE x SYSTEM "http://example.org/x.dtd">'])
def test_xml_entities_bring_nothing_from_elsewhere(tmp_path, entities):
    body = word_xml(f"<w:body>{paragraph('Tea. &a;')}</w:body>").replace("?>", f"?>{entities}")
    file = write_docx(tmp_path / "a.docx", "")
    write_zip(file, {"word/document.xml": body})
    assert "root:" not in outcome(file)
    container = f"{entities}<container/>"
    write_zip(tmp_path / "b.epub", {"mimetype": "application/epub+zip", "META-INF/container.xml": container})
    assert outcome(tmp_path / "b.epub") == "Tea."


PAGE = """<html><head><link rel=stylesheet href="http://example.org/a.css"><script src="http://example.org/a.js">
</script><style>@import url(http://example.org/b.css)</style></head><body onload="e()">
<p>Tea <a href="javascript:e()">is</a>
hot.<script>evil()</script><img src="http://example.org/a.png" onerror="evil()"><iframe src="http://example.org"></iframe>
<object data="http://example.org/x"></object><template><p>evil()</template><noscript>evil()</noscript>
<xi:include href="file:///etc/passwd"/>"""


def test_scripts_do_not_run_and_links_are_not_followed(tmp_path):
    page = "<html><head><style>evil{}</style></head><body><p>Tea.</p><script>evil()</script>"
    page += "<xi:include href='/etc/passwd'/>"
    text = read_file(write_epub(tmp_path / "a.epub", {"a.xhtml": f"{page}</body></html>"})).document.text
    assert text.endswith("Tea.")
    assert "evil" not in text
    (tmp_path / "a.eml").write_text(f"Subject: Tea\nContent-Type: text/html\n\n{PAGE}")
    assert read_file(tmp_path / "a.eml").document.text == "# Tea\n\nTea is hot."


def test_endless_nesting_ends_in_a_sentence_or_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "SECONDS", 5.0)
    deep = 100_000
    assert outcome(write_docx(tmp_path / "a.docx", "<w:tbl>" * deep + "</w:tbl>" * deep)) == "Tea."
    mail = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5000))
    (tmp_path / "c.eml").write_text(f"Subject: Tea\n{mail}\nTea.")
    assert "Tea" in outcome(tmp_path / "c.eml")
    (tmp_path / "d.ipynb").write_text('{"cells": ' + "[" * deep)
    assert outcome(tmp_path / "d.ipynb") == "Tea."


def test_huge_cells_and_lines_are_read(tmp_path):
    cells = [{"cell_type": "markdown", "source": "tea " * 500_000}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    assert len(read_file(tmp_path / "a.ipynb").document.text) == 1_999_999
    (tmp_path / "a.eml").write_text("Subject: " + "=?utf-8?q?tea?= " * 20_000 + "\n\nTea.")
    assert read_file(tmp_path / "a.eml").document.text.endswith("Tea.")
