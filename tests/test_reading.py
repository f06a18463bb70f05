"""Files of every kind to documents with marks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore import Document, Span, get_chunker, load_benchmark
from chunkcore.boundaries.blocks import table_blocks
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.documents import load_documents
from chunkcore.files import NoTextError
from chunkcore.reading import Reader, Reading, UnreadError, read_file, readers
from chunkcore.reading import pdf as pdf_reader
from chunkcore.scale import Stream, StreamOptions
from tests.files import lines_of, paragraph, pdf_bytes, table, word_xml, write_docx, write_epub

needs_pdf = pytest.mark.skipif(not pytest.importorskip("pypdfium2"), reason="pypdfium2 is not installed")

LEFT = """The kettle stands on the stove and
sings while the water comes to heat.
Green tea wants less than boiling"""
RIGHT = """water, which is why the pot waits
for a minute before it is poured
over the leaves, and then steeps."""


def document_of(path):
    return read_file(path).document


def marks_of(document, kind):
    return [mark.span.slice(document.text) for mark in document.marks if mark.kind == kind]


# ---- PDF


def two_columns():
    rows = zip(lines_of(LEFT, top=700), lines_of(RIGHT, left=320, top=700), strict=True)
    return [(72, 740, 18, "Of tea and water, a title across"), *(line for row in rows for line in row)]


def test_a_pdf_in_reading_order_with_pages_headings_and_boxes(tmp_path):
    pages = [two_columns(), lines_of("Black tea.\nGreen tea.\n\nWhite tea."), lines_of("The end.")]
    file = tmp_path / "tea.pdf"
    file.write_bytes(pdf_bytes(pages, title="Of tea", outline=[("Of tea and water", 0), ("The End", 2)], roman=1))
    document = document_of(file)
    first = f"Of tea and water, a title across\n\n{LEFT}\n{RIGHT}"
    assert document.text == f"{first}\n\nBlack tea.\nGreen tea.\n\nWhite tea.\n\nThe end."
    assert marks_of(document, "page") == [first, "Black tea.\nGreen tea.\n\nWhite tea.", "The end."]
    assert [mark.data["label"] for mark in document.marks if mark.kind == "page"] == ["i", "1", "2"]
    assert marks_of(document, "heading") == ["Of tea and water", "The end"]
    assert document.metadata == {"format": "prose", "title": "Of tea"}
    place = document.text.index("boiling")
    boxes = document.boxes_of(Span(place, place + 13))  # from the first column into the second
    assert [box.page for box in boxes] == [1, 1]
    assert boxes[0].left < 306 < boxes[1].left
    assert boxes[0].top == pytest.approx(792 - 700 + 2 * 14.4 - 12, abs=5)
    assert document.pages_of(Span(place, len(document.text))) == (1, 2, 3)


def test_without_an_outline_large_lines_are_headings_and_lines_of_cells_a_table(tmp_path):
    prose = "Black tea is hot, and\ngreen tea is not so hot.\nWhite tea is rare."
    cells = [
        line
        for at, column in ((72, "Kind\nBlack\nGreen\nWhite"), (300, "Heat\n95\n80\n75"))
        for line in lines_of(column, left=at, top=600)
    ]
    pages = [
        [(72, 740, 24, "Of tea and of the water"), (72, 711.2, 24, "that it needs"), *lines_of(prose, top=680), *cells],
        [(72, 740, 16, "Cups"), *lines_of(prose, top=700), (72, 600, 16, "Pots"), *lines_of(prose, top=560)],
    ]
    file = tmp_path / "tea.pdf"
    file.write_bytes(pdf_bytes(pages))
    document = document_of(file)
    assert marks_of(document, "heading") == ["Of tea and of the water\nthat it needs", "Cups", "Pots"]
    assert [mark.data["level"] for mark in document.marks if mark.kind == "heading"] == [1, 2, 2]
    assert marks_of(document, "table") == ["Kind  Heat\nBlack  95\nGreen  80\nWhite  75"]
    file.write_bytes(pdf_bytes([lines_of(prose)]))
    assert marks_of(document_of(file), "heading") == []


@pytest.mark.parametrize(("turn", "left", "top"), [(0, 72, 92), (90, 700, 72), (180, 518, 697), (270, 80, 518)])
def test_boxes_of_a_turned_page_are_as_it_is_shown(tmp_path, turn, left, top):
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf_bytes([[(72, 700, 12, "Tea")]], rotate=turn))
    (box,) = document_of(file).boxes_of(Span(0, 3))
    assert abs(box.left - left) < 30
    assert abs(box.top - top) < 30


def test_cells_beside_each_other_are_rows(tmp_path):
    file = tmp_path / "prices.pdf"
    names, prices = "Sort\nblack\ngreen\nwhite", "Price\n10\n20\n30"
    file.write_bytes(pdf_bytes([[*lines_of(names), *lines_of(prices, left=300)]]))
    assert document_of(file).text == "Sort  Price\nblack  10\ngreen  20\nwhite  30"


def test_pages_without_text_keep_their_numbers_and_are_told(tmp_path):
    file = tmp_path / "scan.pdf"
    file.write_bytes(pdf_bytes([b"", lines_of("Tea."), b""]))
    reading = read_file(file)
    assert reading.document.pages_of(Span(0, 4)) == (2,)
    assert reading.notes == (
        "no text on pages 1, 3 of its 3 pages: they may be pictures; recognise their text first (OCR)",
    )
    file.write_bytes(pdf_bytes([b"", b""]))
    with pytest.raises(UnreadError, match=r"no text on its 2 pages.*OCR"):
        read_file(file)


def test_a_pdf_is_known_by_its_first_bytes(tmp_path):
    for name in ("tea", "tea.txt", "tea.docx"):
        (tmp_path / name).write_bytes(b"\n" * (name == "tea") + pdf_bytes([lines_of("Tea.")]))
        assert document_of(tmp_path / name).text == "Tea."
    (tmp_path / "page.pdf").write_text("<!DOCTYPE html><p>Not found")
    assert document_of(tmp_path / "page.pdf").text.endswith("Not found")


def test_a_locked_a_broken_and_a_slow_pdf_are_one_sentence(tmp_path, monkeypatch):
    file = tmp_path / "locked.pdf"
    lock = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (b"41" * 32, b"42" * 32)
    file.write_bytes(pdf_bytes([lines_of("Tea.")], trailer=lock))
    with pytest.raises(UnreadError, match="is encrypted: remove its password"):
        read_file(file)
    file.write_bytes(pdf_bytes([lines_of("Tea.")])[:200])
    with pytest.raises(UnreadError, match="is no PDF, or is broken"):
        read_file(file)
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    worker = subprocess.Popen(sleeping, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    monkeypatch.setattr(pdf_reader, "SECONDS", 0.1)
    monkeypatch.setattr(pdf_reader, "_started", lambda: worker)
    file.write_bytes(pdf_bytes([lines_of("Tea.")]))
    with pytest.raises(UnreadError, match="cannot be read within"):
        read_file(file)
    monkeypatch.undo()
    assert document_of(file).text == "Tea."  # by another process


def test_names_that_are_no_utf8_are_read(tmp_path):
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pdf"))
    try:
        file.write_bytes(pdf_bytes([lines_of("Tea.")]))
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert document_of(file).text == "Tea."


# ---- DOCX and EPUB


def test_a_docx_as_markdown_with_headings_lists_tables_and_notes(tmp_path):
    number = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="5"/></w:numPr>'
    body = (
        paragraph("Of tea", "Titel")
        + paragraph("Kinds", "berschrift1")
        + paragraph("Own style", "Own")
        + '<w:p><w:r><w:t xml:space="preserve">Black </w:t></w:r><w:del><w:r><w:t>gone</w:t></w:r></w:del><w:ins><w:r>'
        "<w:t>tea</w:t></w:r></w:ins><w:r><w:tab/><w:t>is</w:t><w:br/><w:t>hot.</w:t>"
        '<w:footnoteReference w:id="2"/></w:r></w:p>'
        + paragraph("Boil", more=number.format(0))
        + paragraph("water", more=number.format(1))
        + paragraph("Pour", more=number.format(0))
        + table([["Kind", "Heat"], ["a|b", ""]])
        + paragraph("The end.")
    )
    notes = word_xml(f'<w:footnote w:id="0">{paragraph("x")}</w:footnote>'.replace(">x<", "><"), "footnotes")
    notes = notes.replace("</w:footnotes>", f'<w:footnote w:id="2">{paragraph("Very.")}</w:footnote></w:footnotes>')
    document = document_of(write_docx(tmp_path / "tea.docx", body, footnotes=notes))
    assert document.text == (
        "# Of tea\n\n# Kinds\n\n# Own style\n\nBlack tea is\nhot.[^2]\n\n1. Boil\n  - water\n2. Pour\n\n"
        "| Kind | Heat |\n| --- | --- |\n| a\\|b |  |\n\nThe end.\n\n[^2]: Very."
    )
    assert marks_of(document, "heading") == ["# Of tea", "# Kinds", "# Own style"]
    assert marks_of(document, "table") == ["| Kind | Heat |\n| --- | --- |\n| a\\|b |  |"]
    chunk = get_chunker("auto:size=12").chunk(document)[-1]
    assert chunk.metadata["strategy"] == "markdown"


def test_a_docx_of_another_program(tmp_path):
    docx = pytest.importorskip("docx", reason="python-docx is not installed")
    written = docx.Document()
    written.add_heading("Tea", level=1)
    written.add_paragraph("Black tea is hot.")
    written.add_paragraph("first", style="List Bullet")
    for each in ("boil", "pour"):
        written.add_paragraph(each, style="List Number")
    written.add_table(rows=1, cols=2).rows[0].cells[1].text = "hot"
    written.save(tmp_path / "tea.docx")
    text = document_of(tmp_path / "tea.docx").text
    assert text.startswith("# Tea\n\nBlack tea is hot.\n\n- first\n1. boil\n2. pour\n\n|  | hot |")


def test_an_epub_as_markdown_in_the_order_of_its_spine(tmp_path):
    pytest.importorskip("justhtml")
    chapters = {
        "two.xhtml": "<?xml version='1.0' encoding='utf-8'?>\n<!DOCTYPE html>\n<html><head><title>x</title></head>"
        "<body><h1>Of tea</h1><p>Black &amp; <b>hot</b><?page 7?>.</p></body>",
        "one.xhtml": "<h2>Kinds</h2><ul><li>black<li>green<ol><li>sencha</ol></ul><table><caption>Heat</caption>"
        "<tr><th>Kind<th>Heat<tr><td><td>hot</table><pre>a\n  b</pre><img src='http://x.org/y.png' alt='A cup'>",
    }
    document = document_of(write_epub(tmp_path / "tea.epub", chapters))
    assert document.text == (
        "# Of tea\n\nBlack & hot.\n\n## Kinds\n\n- black\n- green\n  1. sencha\n\nHeat\n\n"
        "| Kind | Heat |\n| --- | --- |\n|  | hot |\n\n```\na\n  b\n```\n\nA cup"
    )
    assert document.metadata == {"format": "markdown", "title": "Of tea", "author": "A. Leaf"}
    assert marks_of(document, "chapter")[0] == "# Of tea\n\nBlack & hot."


def test_a_protected_epub_is_one_sentence(tmp_path):
    locked = '<encryption><CipherReference URI="OEBPS/a.xhtml"/></encryption>'
    file = write_epub(tmp_path / "tea.epub", {"a.xhtml": "<p>Tea"}, **{"META-INF_encryption.xml": locked})
    with pytest.raises(UnreadError, match="DRM"):
        read_file(file)


# ---- E-mail and notebooks

MAIL = """Subject: =?utf-8?q?Gr=C3=BCner?= Tee
From: Ada <ada@example.org>
To: Bob <bob@example.org>
Date: Sun, 22 Nov 2026 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: multipart/alternative; boundary=y

--y
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Der Tee ist hei=DF.
> Wie hei=DF?

--y
Content-Type: text/html; charset=utf-8

<p>Der Tee ist <b>hei\u00df</b>.<script>alert(1)</script>
--y--

--x
Content-Type: image/png; name="tee.png"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="tee.png"

iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
--x
Content-Type: message/rfc822

Subject: Before
From: Bob <bob@example.org>
Content-Type: text/html

<p>Wie <i>warm</i>?
--x--
"""


def test_an_email_is_its_headers_and_its_text(tmp_path):
    file = tmp_path / "tea.eml"
    file.write_text(MAIL, encoding="utf-8")
    document = document_of(file)
    assert document.text == (
        "# Grüner Tee\n\nFrom: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nDate: Sun, 22 Nov 2026 10:00:00 +0000"
        "\n\nDer Tee ist heiß.\n> Wie heiß?\n\n# Before\n\nFrom: Bob <bob@example.org>\n\nWie warm?"
    )
    assert document.metadata["attachments"] == ["tee.png"]
    assert document.metadata["subject"] == "Grüner Tee"


def test_a_notebook_is_its_cells_without_pictures(tmp_path):
    picture = {"image/png": "iVBORw0KGgo" * 9, "text/plain": ["<Figure>"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "![x](data:image/png;base64," + "A" * 99 + ")"]},
        {
            "cell_type": "code",
            "source": "print('```')",
            "outputs": [{"output_type": "stream", "text": "\x1b[31mhot\x1b[0m\n"}, {"data": picture}],
        },
        "no cell",
    ]
    file = tmp_path / "tea.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}))
    document = document_of(file)
    assert document.text == (
        "# Tea\n![x](data:)\n\n````python\nprint('```')\n````\n\n```\nhot\n```\n\n```\n<Figure>\n```"
    )
    assert [(mark.kind, mark.data) for mark in document.marks] == [
        ("cell", {"number": 1, "type": "markdown"}),
        ("cell", {"number": 2, "type": "code"}),
    ]
    for text in ("[]", "{}", '{"cells": 7}', '{"cells": []}', "[" * 99_999):
        file.write_text(text)
        with pytest.raises(DataError):
            read_file(file)


# ---- Encodings

TEXTS = {
    "cp1252": ["Café crème", "name;preis\nMüller;12,50 €\n", "“Où ?”, dit-elle à l’école."],
    "cp932": ["緑茶は冷たくても美味しいです。紅茶は熱いお湯で入れます。"],
    "euc_jp": ["緑茶は冷たくても美味しいです。紅茶は熱いお湯で入れます。"],
    "utf-16-le": ["Tea is hot.", "Чай горячий, и чашка тоже. Tea!" * 2],
    "utf-16-be": ["Tea is hot, café."],
    "utf-16": ["Чай", "緑茶"],
    "utf-32": ["Чай"],
    "cp1251": ["Чай бывает чёрный и зелёный. Вода должна быть горячей."],
    "koi8_r": ["Чай бывает чёрный и зелёный. Вода должна быть горячей."],
    "gb18030": ["绿茶不需要沸水。红茶需要热水，请注意温度。"],
    "big5": ["綠茶不需要沸水。紅茶需要熱水，請注意溫度。"],
    "cp949": ["녹차는 끓는 물이 필요하지 않습니다. 홍차는 뜨거운 물이 필요합니다."],
    "cp1250": ["Zelený čaj není horký. Příliš žluťoučký kůň úpěl ďábelské ódy."],
    "cp1253": ["Το πράσινο τσάι δεν είναι ζεστό. Το μαύρο τσάι είναι."],
}


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_encodings_are_told_apart(tmp_path, encoding, text):
    pytest.importorskip("charset_normalizer")
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode(encoding))
    reading = read_file(file)
    assert reading.document.text == text
    assert len(reading.notes) == 1


def test_a_page_declares_its_encoding(tmp_path):
    file = tmp_path / "a.html"
    file.write_bytes('<meta charset="iso-8859-2"><p>Zelený čaj'.encode("iso-8859-2"))
    assert document_of(file).text.endswith("Zelený čaj")
    file.write_bytes(b'<meta charset="no-such"><p>Caf\xe9')  # and another that is wrong
    assert document_of(file).text.endswith("Café")


def test_binary_files_are_no_text(tmp_path):
    for data in (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), b"PK\x03\x04\x00\x00\x00\xff\xfe\x00"):
        (tmp_path / "a.bin").write_bytes(data)
        with pytest.raises(NoTextError):
            read_file(tmp_path / "a.bin")


def test_a_text_that_speaks_of_the_mark_of_pdf_is_a_text(tmp_path):
    text = "A header such as %PDF-1.7 begins each file, then “âãÏÓ”.\n" * 40
    (tmp_path / "notes.txt").write_text(text, encoding="utf-8")
    assert read_file(tmp_path / "notes.txt").document.text == text
    (file,) = load_documents(tmp_path)
    assert file.text == text


def test_a_pdf_of_any_name_may_begin_with_other_bytes(tmp_path):
    (tmp_path / "plain").write_bytes(b"\r\n" + pdf_bytes([lines_of("Green tea is not.")]))
    assert read_file(tmp_path / "plain").document.text == "Green tea is not."
    data = pdf_bytes([lines_of("Green tea is not.")]).replace(b"%PDF-1.4\n", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    (tmp_path / "sent").write_bytes(b"HTTP/1.1 200 OK\r\n\r\n" + data)
    assert read_file(tmp_path / "sent").document.text == "Green tea is not."


# ---- Folders


@pytest.fixture
def folder(tmp_path):
    """A folder as people have it."""
    (tmp_path / "a.md").write_text("# Tea\n\nBlack tea is hot.")
    (tmp_path / "b.pdf").write_bytes(pdf_bytes([lines_of("Green tea is not."), b""]))
    write_docx(tmp_path / "c.docx", paragraph("Of tea", "Titel") + paragraph("White tea is rare."))
    (tmp_path / "d.eml").write_text(MAIL, encoding="utf-8")
    (tmp_path / "e.csv").write_bytes("kind;heat\nMüller;hot\n".encode("cp1252"))
    (tmp_path / "f.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / "g.png").write_bytes(b"\x89PNG\x00\xff")
    (tmp_path / "h.txt").write_text("")
    (tmp_path / "i.docx").write_bytes(b"PK\x03\x04 no archive")
    return tmp_path


READ = ["a.md", "b.pdf", "c.docx", "d.eml", "e.csv"]
TOLD = [
    "2 files are left out of {}, being empty or no text: g.png, h.txt",
    "left out of {}: f.pdf: is no PDF, or is broken: mend it, or take it out",
    "left out of {}: i.docx: is damaged, or no ZIP file: File is not a zip file",
    "in {}, b.pdf: no text on page 2 of its 2 pages: they may be pictures; recognise their text first (OCR)",
    "in {}, e.csv: is no UTF-8, and was read as cp1252",
]


def test_a_mixed_folder_is_read_and_each_other_file_told_once(folder):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what another test has left
        documents = load_documents(folder)
    assert [document.id for document in documents] == READ
    assert [str(each.message) for each in told] == [each.format(folder) for each in TOLD]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("part_size", [64, 8_000_000])
def test_a_mixed_folder_streams_to_the_same_documents(folder, processes, part_size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        texts = {document.id: document for document in load_documents(folder)}
    stream = Stream(
        [folder], get_chunker("auto:size=8,counter=words"), StreamOptions(processes=processes, part_size=part_size)
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what another test has left
        rows = [json.loads(line) for step in stream for lines in step.lines for line in lines.splitlines()]
    assert list(dict.fromkeys(row["document_id"] for row in rows)) == READ
    for row in rows:
        document = texts[row["document_id"]]
        if len(row["spans"]) == 1:
            assert document.text[slice(*row["spans"][0])] == row["text"]
        spans = [Span(*pair) for pair in row["spans"]]
        assert row["metadata"].get("pages", []) == list(document.pages_of(spans))
    assert [str(each.message) for each in told] == [each.format(folder) for each in TOLD]


def test_a_named_file_that_cannot_be_read_is_an_error(folder):
    with pytest.raises(DataError, match=r"f.pdf is no PDF"):
        load_documents(folder / "f.pdf")
    with pytest.raises(DataError, match=r"f.pdf is no PDF"):
        list(Stream([folder / "f.pdf"], get_chunker("auto")))


def test_questions_about_a_pdf_name_its_pages(folder):
    questions = [{"question": "What is not hot?", "evidence": ["Green tea is not"]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        benchmark = load_benchmark(folder, questions)
    (query,) = benchmark.queries
    document = next(each for each in benchmark.documents if each.id == query.evidence[0].document_id)
    assert document.pages_of(query.evidence[0].span) == (1,)
    assert len(document.boxes_of(query.evidence[0].span)) == 1


def test_a_missing_extra_is_named(folder, monkeypatch):
    monkeypatch.setattr(pdf_reader, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r'b.pdf, f.pdf: cannot be read: pypdfium2 .* "chunkadapters\[files\]"'):
        load_documents(folder)
    monkeypatch.setitem(sys.modules, "justhtml", None)
    with pytest.raises(UnreadError, match=r'justhtml is needed .* "chunkadapters\[files\]"'):
        document_of(write_epub(folder / "g.epub", {"a.xhtml": "<p>Tea.</p>"}))


def test_a_table_is_cut_by_rows_with_its_header():
    text = 'kind,heat\n"black\ntea",hot\n' + "".join(f"tea {n},warm\n" for n in range(9))
    chunks = get_chunker("auto:size=8,counter=words").chunk(Document("tea.csv", text))
    assert chunks[0].text == 'kind,heat\n"black\ntea",hot\ntea 0,warm\ntea 1,warm'
    assert len(chunks) > 2
    for chunk in chunks[1:]:
        assert chunk.text.startswith("kind,heat\ntea ")
        assert chunk.metadata == {"strategy": "table"}
    unclosed = get_chunker("auto:size=8,counter=words").chunk(Document("tea.csv", text + '"'))
    assert "".join(chunk.text for chunk in unclosed).count("warm") == 9


@given(st.text(alphabet='a,"\n\r \té', max_size=60))
def test_the_rows_of_a_table_leave_nothing_out(text):
    rows = table_blocks(text)
    kept = "".join(text[row.start : row.end] for row in rows)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(one.end <= other.start for one, other in pairwise(rows))


def test_another_package_can_add_a_reader(tmp_path):
    assert {"PDF", "DOCX", "EPUB", "e-mail", "notebook"} <= set(readers)
    with pytest.raises(OptionError, match="unknown reader"):
        readers.get("papyrus")
    assert issubclass(readers["PDF"], Reader)
    assert isinstance(read_file(__file__), Reading)
