"""Files of strangers: bombs, entities, links, scripts, endless nesting. A sentence each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from chunkcore import DataError, Document, Span
from chunkcore.reading import Reader, Reading, UnreadError, base, office, read_file

from tests.files import lines_of, paragraph, pdf_bytes, word_xml, write_docx, write_epub, write_zip

pytest.importorskip("pypdfium2")
pytest.importorskip("justhtml")
pytest.importorskip("markitdown")


def outcome(file: Path) -> str:
    """The file's text, or "Tea." for an error of one sentence."""
    try:
        return read_file(file).document.text
    except DataError as error:
        return "Tea." if "\n" not in str(error) else "lines"


class Odd(Reader):
    """Fails as parsers of others fail on files that nest or unfold without end."""

    def read(self, data, name):
        raise {b"deep": RecursionError, b"greedy": MemoryError}[data]("as a parser would")


@pytest.mark.parametrize(
    ("data", "sentence"), [(b"deep", "is broken .Odd: RecursionError"), (b"greedy", "cannot be read within")]
)
def test_a_parser_that_gives_up_is_a_sentence(data, sentence):
    with pytest.raises(UnreadError, match=sentence):
        base.read_guarded(Odd, data, Path("a"), "a")


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


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [({"ALWAYS": 1000, "RATIO": 2}, "unpacks to over 2 times its size"), ({"MEMBERS": 3}, "has 4 files, over 3")],
)
def test_archives_over_a_limit_are_not_unpacked(tmp_path, monkeypatch, limits, sentence):
    data = write_zip(tmp_path / "a.zip", dict.fromkeys("abcd", " " * 1000)).read_bytes()
    assert list(office.unpacked(data, "a")) == list("abcd")
    for name, value in limits.items():
        monkeypatch.setattr(office, name, value)
    with pytest.raises(UnreadError, match=sentence):
        office.unpacked(data, "a")


ENTITY = '<!DOCTYPE x [<!ENTITY a "ha">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("entities", [ENTITY, OUTSIDE, '<!DOCTYPE x SYSTEM "http://example.org/x.dtd">'])
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


def test_huge_cells_and_lines_are_read(tmp_path):
    cells = [{"cell_type": "markdown", "source": "tea " * 500_000}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    assert len(read_file(tmp_path / "a.ipynb").document.text) == 1_999_999
    (tmp_path / "a.eml").write_text("Subject: " + "=?utf-8?q?tea?= " * 100 + "\n\nTea.")
    assert read_file(tmp_path / "a.eml").document.text.endswith("Tea.")
