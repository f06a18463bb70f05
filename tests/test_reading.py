"""Files of every kind to documents with marks."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
import tracemalloc
import warnings
from datetime import datetime, timedelta
from itertools import pairwise, product
from pathlib import Path
from zipfile import ZipFile

import pytest
from chunkcore import DataError, Document, MissingExtraError, OptionError, Span, get_chunker, load_documents
from chunkcore.boundaries import table_blocks
from chunkcore.files import NoTextError
from chunkcore.reading import Reader, Reading, UnreadError, base, read_file, readers
from chunkcore.reading.office import texts_apart
from chunkcore.text import text_of_spans
from hypothesis import given
from hypothesis import strategies as st

from tests.files import lines_of, paragraph, pdf_bytes, table, word_xml, write_docx, write_epub, write_zip

pytest.importorskip("pypdfium2")
pytest.importorskip("justhtml")


def document_of(path):
    return read_file(path).document


def told_of(folder, **options):
    """The documents of a folder, and what is told of its files."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what another test has left
        documents = load_documents(folder, **options)
    return documents, [str(warning.message) for warning in caught]


def test_a_pdf_is_its_lines_page_by_page(tmp_path):
    pages = [lines_of("Of tea and water\nGreen tea is not hot."), lines_of("White tea."), lines_of("The end.")]
    file = tmp_path / "tea.pdf"
    file.write_bytes(pdf_bytes(pages, title="Of tea", roman=1))
    document = document_of(file)
    assert document.text == "Of tea and water\nGreen tea is not hot.\n\nWhite tea.\n\nThe end."
    assert [mark.span.slice(document.text) for mark in document.marks] == document.text.split("\n\n")
    pages = [{"number": number, "label": label} for number, label in ((1, "i"), (2, "1"), (3, "2"))]
    assert [mark.data for mark in document.marks] == pages
    assert document.metadata == {"format": "prose", "title": "Of tea"}


@pytest.mark.parametrize("hyphen", ["-", "\u2010"])
def test_a_word_divided_between_lines_is_joined_and_marked(tmp_path, hyphen):
    file = tmp_path / "tea.pdf"
    data = pdf_bytes([lines_of("All infor-\nmation on x-ray tea.\nHamburg-\nAltona.\nTea-7.\nNo tea-\n7.")])
    names = {"\u2010": b"<</Differences[45/hyphentwo]>>"}
    file.write_bytes(data.replace(b"/WinAnsiEncoding", names.get(hyphen, b"/WinAnsiEncoding")))
    document = document_of(file)
    assert document.text.startswith(f"All information on x{hyphen}ray tea.\nHamburg{hyphen}")
    (_, mark, after) = document.marks
    assert mark.span.slice(document.text) == "information"
    assert after.span.slice(document.text) == "tea-7"
    assert mark.data["printed"] == f"infor{hyphen}\nmation"


@pytest.mark.parametrize("rows", ["Item 0|0|0\nItem 1|1|3", "1|Point|0.50\n2|Tea|5.00", "Q1|Q2|Q3\n5|6|7"])
def test_rows_of_short_cells_are_lines(rows):
    lines = [line.split("|") for line in rows.split("\n")]
    page = [(72 + 170 * x, 720 - 20 * y, 12, cell) for y, line in enumerate(lines) for x, cell in enumerate(line)]
    assert readers["PDF"]().read(pdf_bytes([page]), "a").document.text == rows.replace("|", " ")


def test_headers_and_footers_of_most_pages_are_marked_and_no_text(tmp_path):
    pages = [lines_of(f"Of tea\nPart {word} {n} is hot.\nPage {n} of 4") for n, word in enumerate("abcd", start=1)]
    file = tmp_path / "tea.pdf"
    file.write_bytes(pdf_bytes(pages))
    document = document_of(file)
    rest = "\n\n".join(f"Part {word} {n} is hot." for n, word in enumerate("bcd", start=2))
    assert document.text == f"Of tea\nPart a 1 is hot.\nPage 1 of 4\n\n{rest}"  # once, so that search finds it
    assert document.marks[1].data == {"number": 2, "header": "Of tea", "footer": "Page 2 of 4"}
    file.write_bytes(pdf_bytes(pages[:2]))  # of two pages nobody can say
    assert document_of(file).text.count("Of tea") == 2
    few = [lines_of(f"{'Of tea' if n < 3 else f'Kind {n}'}\nIt is hot.\nEnd {n * n}") for n in range(7)]
    file.write_bytes(pdf_bytes(few))  # three of seven are not most
    assert document_of(file).text.count("Of tea") == 3


@pytest.mark.parametrize("number", ["A | {}", "{} | A", "A · page {} sur 9", "A s. {} af 9", "{} / 9 A", "a://b {}/9"])
def test_headers_of_several_lines_and_titles_with_the_number_of_the_page(number):
    pages = [f"Leaf\nGreen\n{word}\nIt is {word}.\nGreen\n{number.format(n)}" for n, word in enumerate("abcd", 7)]
    pages += [f"Leaf\nGreen\nGreen\n{number.format(11)}", "Leaf\nIt is e.\nGreen"]  # no page loses all
    document = readers["PDF"]().read(pdf_bytes(list(map(lines_of, pages))), "a").document
    texts = [pages[0], *(f"{word}\nIt is {word}." for word in "bcd"), "Green\nGreen", "It is e.\nGreen"]
    assert document.text == "\n\n".join(texts)
    assert document.marks[2].data == {"number": 3, "header": "Leaf\nGreen", "footer": f"Green\n{number.format(9)}"}


CHECKED = "boxes of a form are left out; checked are 'agree'"


@pytest.mark.parametrize(
    ("annotation", "text", "notes"),
    [
        (b"/Subtype/FreeText/Contents(Signed by Ada)", "Signed by Ada", ()),
        (b"/Subtype/Widget/FT/Tx/T(name)/V(Ada Leaf)", "Ada Leaf", ()),
        (b"/Subtype/Widget/FT/Ch/Ff 131072/T(land)/V(DE)/Opt[[(DE)(Germany)][(FR)(France)]]", "Germany", ()),
        (b"/Subtype/Widget/FT/Tx/Ff 8192/T(code)/V(secret)", "", ()),
        (b"/Subtype/Widget/FT/Tx/F 2/T(name)/V(hidden)", "", ()),
        (b"/Subtype/Text/Contents(Is it?)", "", ("comments are left out: 'Is it?'",)),
        (b"/Subtype/Widget/FT/Btn/T(agree)/V/Yes/AS/Yes/AP<</N<</Yes null>>>>", "", (CHECKED,)),
    ],
)
def test_what_stands_over_a_page_is_text_or_told(annotation, text, notes):
    reading = readers["PDF"]().read(pdf_bytes([lines_of("Name:")], annotations=[annotation]), "a")
    assert (reading.document.text, reading.notes) == (f"Name:\n{text}".strip(), notes)


def test_pages_without_text_keep_their_numbers_and_are_told(tmp_path):
    file = tmp_path / "scan.pdf"
    file.write_bytes(pdf_bytes([b"", lines_of("Tea."), b""]))
    reading = read_file(file)
    assert reading.document.pages_of(Span(0, 4)) == (2,)
    assert reading.notes == ("scanned: no text on pages 1, 3 of 3; recognise it first (OCR)",)
    file.write_bytes(pdf_bytes([b"", b""]))
    with pytest.raises(UnreadError, match=r"is scanned: no text on pages 1, 2; recognise it first \(OCR\)"):
        read_file(file)
    file.write_bytes(pdf_bytes([lines_of("Tea."), b""]).replace(b"/Kids[6 0 R 8 0 R]", b"/Kids[6 0 R 1 0 R]"))
    assert read_file(file).notes == ("PDFium cannot read page 2 of 2: mend the file",)


def test_a_pdf_is_known_by_its_first_bytes(tmp_path):
    for name in ("tea", "tea.txt", "tea.docx"):
        (tmp_path / name).write_bytes(b"\n" * (name == "tea") + pdf_bytes([lines_of("Tea.")]))
        assert document_of(tmp_path / name).text == "Tea."
    data = pdf_bytes([lines_of("Tea.")]).replace(b"%PDF-1.4\n", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    (tmp_path / "sent").write_bytes(b"HTTP/1.1 200 OK\r\n\r\n" + data)
    assert document_of(tmp_path / "sent").text == "Tea."
    (tmp_path / "page.pdf").write_text("<!DOCTYPE html><p>Not found")
    assert document_of(tmp_path / "page.pdf").text.endswith("Not found")
    text = "Tea: a header such as %PDF-1.7 begins files, then “âãÏÓ”.\n\nReceived: by a mail.\n" * 40
    (tmp_path / "notes.txt").write_text(text, encoding="utf-8")
    assert document_of(tmp_path / "notes.txt").text == text


def test_a_locked_and_a_broken_pdf_are_one_sentence(tmp_path):
    file = tmp_path / "locked.pdf"
    lock = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (b"41" * 32, b"42" * 32)
    file.write_bytes(pdf_bytes([lines_of("Tea.")], trailer=lock))
    with pytest.raises(UnreadError, match="is encrypted: remove its password"):
        read_file(file)
    file.write_bytes(pdf_bytes([lines_of("Tea.")])[:200])
    with pytest.raises(UnreadError, match="is no PDF, or is broken"):
        read_file(file)


class Papyrus(Reader):
    name = "papyrus"

    def read(self, data, name):
        if data == b"large":
            return Reading(Document(name, "x" * 2_000_000))
        if data == b"greedy":
            bytearray(2**29)
        if data == b"slow":
            base.on_reached("page 7")
            time.sleep(10)
        if data == b"curious":
            socket.create_connection(("127.0.0.1", 9))
        return Reading(Document(name, str(os.getpid())))


def papyrus(data: bytes) -> str:
    return base.read_guarded(Papyrus, data, Path("a"), "a").document.text


def test_a_slow_file_is_named_with_what_was_reached_and_the_next_is_read(monkeypatch):
    before = papyrus(b"quick")
    monkeypatch.setattr(base, "SECONDS", 1.0)
    with pytest.raises(UnreadError, match=r"cannot be read within 1 s, .* \(page 7 was reached\): split it"):
        papyrus(b"slow")
    monkeypatch.undo()
    assert papyrus(b"quick") != before


def test_one_process_reads_a_folder(tmp_path):
    before = papyrus(b"quick")
    for number in range(4):
        (tmp_path / f"{number}.pdf").write_bytes(pdf_bytes([lines_of(f"Tea {number}.")]))
        (tmp_path / f"{number}.eml").write_text(f"Subject: Tea {number}\n\nHot.")
    assert len(load_documents(tmp_path)) == 8
    assert papyrus(b"quick") == before


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_memory_output_and_the_network_are_limited(monkeypatch):
    monkeypatch.setattr(base, "OUTPUT", 2**20)
    monkeypatch.setattr(base, "MEMORY", 2**28)
    base.stop_idle()  # which have the usual limit
    for data in (b"large", b"greedy"):
        with pytest.raises(UnreadError, match="cannot be read within 60 s, 0 GB of memory and 1 MB of text"):
            papyrus(data)
    with pytest.raises(UnreadError, match=r"is broken \(Papyrus: PermissionError: a file's reader may not use socket"):
        papyrus(b"curious")
    base.stop_idle()


def item(text: str, level: int, name: int = 5) -> str:
    return paragraph(text, more=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{name}"/></w:numPr>')


def test_a_docx_as_markdown(tmp_path):
    pytest.importorskip("markitdown")
    body = [paragraph("Of tea", "Titel"), paragraph("Kinds", "berschrift1"), paragraph("# A &amp; &lt;b>b&lt;/b>.")]
    steps = ("boil", 0), ("water", 1), ("pot", 1), ("pour", 0), ("cup", 1)
    deleted = item("", 0).replace("</w:numPr>", "</w:numPr><w:rPr><w:del/></w:rPr>")
    body += [deleted, *(item(*step) for step in steps), paragraph("Then:"), item("drink", 0), item("wash", 0, 6)]
    kinds = (f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="decimal"/></w:lvl>' for level in (0, 1))
    lists = f'<w:abstractNum w:abstractNumId="0">{"".join(kinds)}</w:abstractNum>'
    lists += '<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="6"><w:abstractNumId w:val="0"/>'
    lists += '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
    body += [table([["Kind", "Heat"], ["black", "hot"]])]
    file = write_docx(tmp_path / "tea.docx", "".join(body), numbering=word_xml(lists, "numbering"))
    text = (
        "# Of tea\n\n# Kinds\n\n\\# A & <b>b</b>.\n\n1. boil\n   1. water\n   2. pot\n2. pour\n   1. cup\n\nThen:\n\n"
        "3. drink\n1. wash\n\n| Kind | Heat |\n| --- | --- |\n| black | hot |"
    )
    assert document_of(file).text == text
    with ZipFile(file) as archive:  # Word in a browser has other names
        members = {name.replace("document", "document2"): archive.read(name) for name in archive.namelist()}
    space = "http://schemas.openxmlformats.org/{}/2006/relationships"
    kind = f'Type="{space.format("officeDocument")}/officeDocument" Target="word/document2.xml"'
    image = (
        f'<v:imagedata xmlns:v="urn:schemas-microsoft-com:vml" xmlns:r="{space.format("officeDocument")}" r:id="p"/>'
    )
    body = f"<w:body><w:p><w:r><w:pict>{image}</w:pict></w:r></w:p>"
    members["word/document2.xml"] = members["word/document2.xml"].replace(b"<w:body>", body.encode())
    rows = f'<R xmlns="{space.format("package")}"><Relationship Id="p" Type="p" Target="media/a.png"/></R>'
    members |= {"word/media/a.png": b"PNG", "word/_rels/document2.xml.rels": rows.encode()}
    members["_rels/.rels"] = f'<R xmlns="{space.format("package")}"><Relationship Id="r" {kind}/></R>'.encode()
    assert document_of(write_zip(tmp_path / "b.docx", members)).text == text


LEVEL = '<w:lvl w:ilvl="{}"><w:start w:val="{}"/>{}<w:numFmt w:val="{}"/><w:lvlText w:val="{}"/></w:lvl>'


def test_clauses_of_a_docx_keep_their_numbers(tmp_path):
    pytest.importorskip("markitdown")
    forms = [
        (1, "", "decimal", "%1."),
        (2, "", "decimal", "%1.%2"),
        (1, "", "lowerLetter", "(%3)"),
        (26, "", "upperLetter", "%4"),
        (4, "", "chineseCounting", "第%5条"),
        (1, "<w:isLgl/>", "decimal", "%5.%6"),
    ]
    levels = "".join(LEVEL.format(level, *form) for level, form in enumerate(forms))
    lists = f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
    lists += '<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num>'
    place = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="5"/></w:numPr>'
    body = [paragraph("Scope", "berschrift1", place), *(item("buy", level) for level in (1, 1, 2, 2, 3, 4, 5))]
    body += [paragraph("End", "berschrift1", place), item("go", 1), item("ox", 2)]
    file = write_docx(tmp_path / "a.docx", "".join(body), numbering=word_xml(lists, "numbering"))
    text = document_of(file).text
    assert "- (a) buy" in text  # an item of Markdown
    lines = re.findall(r"[^\s*-].*", text)
    texts = ["1.2 buy", "1.3 buy", "(a) buy", "(b) buy", "Z buy", "第四条 buy", "4.1 buy", "2. End", "2.2 go", "(a) ox"]
    assert [line.removeprefix("# ") for line in lines] == ["1. Scope", *texts]


def test_styles_of_ones_own_and_outlines_are_headings_and_a_layouts_tables_stand_alone(tmp_path):
    pytest.importorskip("markitdown")
    outline = '<w:outlineLvl w:val="1"/>'
    cells = f"<w:tc><w:tcPr/>{table([['Left']])}</w:tc><w:tc>{table([['Kind', 'Heat'], ['a', 'b|c']])}<w:p/></w:tc>"
    body = [paragraph("Kinds", "Own"), paragraph("Black", more=outline), paragraph("Long. " * 30, more=outline)]
    text = document_of(write_docx(tmp_path / "a.docx", "".join([*body, f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"]))).text
    assert text.startswith("# Kinds\n\n## Black\n\nLong. ")
    assert text.endswith("Left\n\n| Kind | Heat |\n| --- | --- |\n| a | b\\|c |")


def run(text: str, properties: str = "") -> str:
    return f"<w:p><w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r><w:r><w:t>!</w:t></w:r></w:p>"


MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
LETTERS = "<m:{0}><m:r><m:t>{1}</m:t></m:r></m:{0}>"
HIDDEN = ("texts marked as hidden are left out",)
MARK = "<w:r><w:fldChar w:fldCharType='{}'>{}</w:fldChar></w:r>"
FIELD = MARK.format("begin", "{}") + "{}" + MARK.format("separate", "") + "{}" + MARK.format("end", "")
CHOICES = (
    "<w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='a'/><w:listEntry w:val='hot'/></w:ddList></w:ffData>"
)
TEXT = "<w:r><w:t>{}</w:t></w:r>"
FIELDS = FIELD.format(CHOICES, "", "") + FIELD.format("", FIELD.format("", "", TEXT.format("no")), TEXT.format("Tea"))
BOX = "<w:r><w:pict><w:txbxContent>" + paragraph("{}") + "</w:txbxContent></w:pict></w:r>"


@pytest.mark.parametrize(
    ("body", "text", "notes"),
    [
        (run("secret", "<w:vanish/>"), "!", HIDDEN),
        (run("-6", '<w:vertAlign w:val="superscript"/>'), "⁻⁶!", ()),
        (run("nd", '<w:vertAlign w:val="superscript"/>'), "nd!", ()),
        (run("6", '<w:vertAlign w:val="subscript"/>'), "6!", ()),
        (paragraph("T", "", '<w:framePr w:dropCap="drop"/>') + run("ea", '<w:vanish w:val="0"/>'), "Tea!", ()),
        (run("secret", '<w:rStyle w:val="Based"/>'), "!", HIDDEN),
        (paragraph("secret", "Based") + paragraph("Tea"), "Tea", HIDDEN),
        ('<w:p><w:r><w:t>1</w:t><w:cr/><w:t>2</w:t><w:ptab/><w:t>3</w:t><w:br w:type="page"/><w:t>4</w:t></w:r></w:p>',
         "1 2 3 4", ()),
        ("<w:p><w:bdo><w:r><w:ruby><w:rt><w:r><w:t>cha</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>茶</w:t></w:r></w:rubyBase>"
         "</w:ruby></w:r></w:bdo></w:p>", "茶", ()),
        ('<w:p><w:fldSimple w:instr="REF t"><w:r><w:t>Tea</w:t></w:r></w:fldSimple></w:p>', "Tea", ()),
        (f"<w:p>{FIELDS}</w:p>", "hotTea", ()),
        (f"<w:p>{BOX.format('one')}{BOX.format('two')}{TEXT.format('Tea')}</w:p>", "Tea one two", ()),
        (paragraph("Tea") + "<w:altChunk/>", "Tea", ("documents inside it (altChunk) are left out",)),
        (table([["a", "b"], ["c"]]).replace("</w:tr><w:tr>", '</w:tr><w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>'),
         "| a | b | | --- | --- | | | c |", ()),
        (f"<w:p><m:oMath {MATH}><m:f>{LETTERS.format('num', 1)}{LETTERS.format('den', 2)}</m:f></m:oMath></w:p>",
         r"$\frac{1}{2}$", ()),
        (f"<w:p><m:oMath {MATH}><m:sPre>{LETTERS.format('sub', 1)}{LETTERS.format('e', 'H')}</m:sPre></m:oMath></w:p>",
         "$_{1}H$", ()),
        (f"<w:p><m:oMath {MATH}><m:limLow>{LETTERS.format('e', 'sup')}{LETTERS.format('lim', 'x')}</m:limLow></m:oMath>"
         "</w:p>", "$sup x$", ()),
    ],
)  # fmt: skip
def test_what_a_docx_hides_and_what_its_converter_loses(tmp_path, body, text, notes):
    pytest.importorskip("markitdown")
    style = '<w:style w:type="paragraph" w:styleId="{}">{}</w:style>'
    styles = "".join(style.format(name, "<w:rPr><w:vanish/></w:rPr>") for name in ("", "Secret"))  # "" as if without
    styles += style.format("Based", '<w:basedOn w:val="Secret"/>')
    file = write_docx(tmp_path / "a.docx", body + paragraph("End"), styles=word_xml(styles, "styles"))
    document, told = read_file(file)
    assert (" ".join(document.text.split()), told) == (f"{text} End", notes)


def test_texts_beside_that_of_an_office_file_are_told(tmp_path):
    pytest.importorskip("markitdown")
    header = "<w:p><w:r><w:t>Tea</w:t><w:tab/><w:t>2026</w:t></w:r></w:p>"
    remark = f"<w:comment w:id='1'>{paragraph('Is it?')}</w:comment>"
    parts = {"header1": word_xml(header, "hdr"), "comments": word_xml(remark, "comments")}
    parts["footnotes"] = word_xml(f"<w:footnote w:id='2'>{paragraph('Hot.')}</w:footnote>", "footnotes")
    body = f"<w:p>{TEXT.format('Tea.')}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
    notes = ("headers and footers of its pages are left out: 'Tea 2026'", "comments are left out: 'Is it?'")
    document, told = read_file(write_docx(tmp_path / "a.docx", body, **parts))
    assert (document.text, told) == ("Tea.¹\n\n1. Hot.", notes)
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Kind", "Price"])
    book.active["A2"], book.active["B2"] = "black", "=1+1"
    book.active["A2"].comment = openpyxl.comments.Comment("Is it?", "Ada")
    chart = openpyxl.chart.BarChart()
    chart.title = "Prices"
    book.active.add_chart(chart)
    book.create_sheet("Costs").append(["secret"])
    book["Costs"].sheet_state = "hidden"
    book.save(tmp_path / "a.xlsx")
    document, told = read_file(tmp_path / "a.xlsx")
    assert "secret" not in document.text
    shown = "no program has computed Sheet!B2: the formula is shown; open it and save it"
    others = ("comments are left out: 'Is it?'", "titles of charts are left out: 'Prices'")
    assert told == ("hidden sheets are left out: Costs", shown, *others)


APART = {  # members of Office files, as newer programs write them
    "ppt/charts/chartEx1.xml": ("titles of charts", "<x><title><rich><t>Costs</t></rich></title><t>2026</t></x>"),
    "xl/threadedComments/t1.xml": ("comments", "<x><threadedComment><text>Costs</text></threadedComment></x>"),
    "xl/comments1.xml": ("", "<x><comment><text><t>[Threaded comment] Costs</t></text></comment></x>"),
    "ppt/comments/modernComment_1.xml": ("comments", "<x><cm><txBody><t>Costs</t></txBody></cm></x>"),
    "xl/drawings/drawing2.xml": ("text boxes", "<x><txBody><t>Costs</t></txBody></x>"),
    "xl/diagrams/data1.xml": ("diagrams", "<x><pt><t>Costs</t></pt></x>"),
}


@pytest.mark.parametrize("member", APART)
def test_texts_that_newer_programs_put_beside_that_of_an_office_file_are_told(member: str) -> None:
    pytest.importorskip("lxml")
    kind, content = APART[member]
    assert texts_apart({member: content.encode()}) == ({kind: ["Costs"]} if kind else {})


RUNNING = "headers and footers of its pages"


@pytest.mark.parametrize(
    ("rtf", "text", "notes"),
    [
        (r"{\footnote Not today.} It is", "It is\n\nNot today.", {}),
        (r"It is{\v  (40)} {\deleted not}\v a \v0 hot.", "It is hot.", {"texts marked as hidden or deleted": ()}),
        (r"{\stylesheet{\s1\v Secret;}}{\header Of tea}It is", "It is", {RUNNING: ["Of tea"]}),
        (r"It is{\*\annotation {\*\atnref 1}True?}", "It is", {"comments": ["True?"]}),
        (r"It is {\shp{\*\shpinst{\sp{\sn a}}{\shptxt boxed}}{\shprslt old}}", "It is\n\nboxed", {}),
        (r"It is {\v not \plain hot.}", "It is hot.", {"texts marked as hidden or deleted": ()}),
        (r"{\pntext 1.\tab}It is {\pict\bin3 }}}{\mmath{\*\moMath {\mr E}}}", "1.\tIt is", {"equations": ()}),
        (r"It is {\footnote {\b hot {\header Tea", "It is\n\nhot", {RUNNING: ["Tea"]}),
        (r"It is{\bin-3 } hot", "It is hot", {}),
        (r"It is{\object{\*\objdata 0105}{\result {\b hot}}}", "It is\n\nhot", {}),
        (r"2{\super {\b 1}0}10\super\u8722?3\nosupersub 8m{\up6 2}{\super th}", "2¹⁰10⁻³8m²th", {}),
    ],
)
def test_an_rtf_is_what_a_reader_sees_and_a_note_of_the_rest(rtf, text, notes):
    pytest.importorskip("striprtf")
    reading = readers["RTF"]().read(rf"{{\rtf1\ansi {rtf}}}".encode(), "a")
    assert (reading.document.text, reading.notes) == (text, base.left_out(notes))


def test_slides_are_pages(tmp_path):
    pytest.importorskip("markitdown")
    pptx = pytest.importorskip("pptx")
    slides = pptx.Presentation()
    for title in ("Black tea", "Red tea", "Green tea"):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, "is hot, by 10"
        run = slide.placeholders[1].text_frame.paragraphs[0].add_run()
        run.text = "6"
        run.font._element.set("baseline", "30000")
        if title == "Red tea":
            slide.element.set("show", "0")
            slide.notes_slide.notes_text_frame.text = "Slowly."
    slides.save(tmp_path / "tea.pptx")
    kinds = b"presentation.main", b"slideshow.main"
    with ZipFile(tmp_path / "tea.pptx") as archive:  # a show
        members = {name: archive.read(name).replace(*kinds) for name in archive.namelist()}
    document, notes = read_file(write_zip(tmp_path / "tea.ppsx", members))
    assert notes == ("hidden slides are left out: 2",)
    assert document.text == "# Black tea\nis hot, by 10⁶\n\n# Green tea\nis hot, by 10⁶"
    assert get_chunker("sentence:size=50").chunk(document)[1].text == "# Green tea\nis hot, by 10⁶"
    assert document.pages_of(Span(document.text.index("Green"), len(document.text))) == (3,)
    films = {f"ppt/media/{number}.mp4": bytes(2**24) for number in range(3)}
    data = write_zip(tmp_path / "tea.ppsx", members | films).read_bytes()
    tracemalloc.start()
    readers["PPTX"]().read(data, "a")
    assert tracemalloc.get_traced_memory()[1] < 2**26, "no copy of the films is kept"
    tracemalloc.stop()


DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
NUMBER = '<p:ph xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" type="sldNum"/>'
FORMS = (
    '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
    f'<mc:Choice xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main" xmlns:a="{DRAWING}">{{}}</mc:Choice>'
    f'<mc:Fallback><a:r xmlns:a="{DRAWING}"><a:t>old</a:t></a:r></mc:Fallback></mc:AlternateContent>'
)


def test_a_slide_shows_its_shapes_from_top_to_bottom(tmp_path):
    pptx = pytest.importorskip("pptx")
    data = pytest.importorskip("pptx.chart.data")
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text = "Of\ntea"

    def box(text, top, shapes=slide.shapes):
        shape = shapes.add_textbox(0, top * 10**6, 9, 9)
        shape.text_frame.text = text
        return shape

    box("end <!-- Slide number: 7 -->\vline", 9)
    box("in a group", 4, slide.shapes.add_group_shape().shapes)
    box("12", 5).element.nvSpPr.nvPr.append(pptx.oxml.parse_xml(NUMBER))
    box("unseen", 5).element.nvSpPr.cNvPr.set("hidden", "1")
    sum_of = box("Sum: ", 3).text_frame.paragraphs[0]
    sum_of.add_run().text = "old"
    sum_of.runs[1].font._element.set("strike", "sngStrike")
    math = f"<a14:m><m:oMath {MATH}><m:r><m:t>r+1</m:t></m:r></m:oMath></a14:m>"
    sum_of._p.append(pptx.oxml.parse_xml(FORMS.format(math)))
    newer = pptx.oxml.parse_xml(FORMS.format(""))
    newer[0].append(box("newer", 2).element)
    slide.shapes._spTree.append(newer)
    cells = slide.shapes.add_table(1, 2, 0, 6 * 10**6, 9, 9).table
    cells.cell(0, 0).text, cells.cell(0, 1).text = "a|b", "c"
    points = data.XyChartData(number_format="d.m.yy")
    series = points.add_series("Heat")
    list(map(series.add_data_point, (45292, 45294), (45293, 45295)))
    kinds = pptx.enum.chart.XL_CHART_TYPE
    chart = slide.shapes.add_chart(kinds.XY_SCATTER, 0, 7 * 10**6, 9, 9, points).chart
    for place in (chart.chart_title, chart.value_axis.axis_title):
        place.text_frame.text = "Heat"
    bars = data.CategoryChartData(number_format="0%")
    for kind in ("East", "West"):
        bars.add_category(kind).add_sub_category("tea")
    bars.add_series("One", (1, None))
    bars.add_series("Two", (None, 4))
    slide.shapes.add_chart(kinds.COLUMN_CLUSTERED, 0, 8 * 10**6, 9, 9, bars)
    slides.save(tmp_path / "a.pptx")
    table = "| a\\|b | c |\n| --- | --- |"
    days = "| 2024-01-01 | 2024-01-02 |\n| 2024-01-03 | 2024-01-04 |"
    heat = f"### Chart: Heat: Heat\n\n| Category | Heat |\n| --- | --- |\n{days}"
    both = "### Chart\n\n| Category | One | Two |\n| --- | --- | --- |\n| East tea | 100% |\n| West tea |  | 400% |"
    texts = "# Of tea\nnewer\nSum: ~~old~~$r+1$\nin a group", table, heat, both, "end <!-- Slide number: 7 -->\nline"
    assert document_of(tmp_path / "a.pptx").text == "\n\n".join(texts)


def test_headings_end_units_and_begin_the_next(tmp_path):
    pytest.importorskip("markitdown")
    texts = ("Tea", "Kinds", "Black is hot.", "Price", "one euro")
    pages = {"a.xhtml": "<h1>Tea</h1><h2>Kinds</h2><p>Black is hot.</p><pre># no heading</pre><h1>Price</h1><p>One."}
    write_docx(tmp_path / "tea.docx", "".join(paragraph(text, "berschrift1" * text.istitle()) for text in texts))
    write_epub(tmp_path / "tea.epub", pages)
    (tmp_path / "tea.html").write_text(f"<html><body>{pages['a.xhtml']}</body>")
    for name, options in product(("docx", "epub", "html"), ("", ",overlap_sentences=1,minimum=25")):
        chunks = get_chunker(f"sentence:size=50{options}").chunk(document_of(tmp_path / f"tea.{name}"))
        one, other = (chunk.text for chunk in chunks[-2:])
        assert ["Tea" in one, "hot" in one, "Price" in one, "Price" in other, "hot" in other] == [1, 1, 0, 1, 0]
    assert "| a\\|b | c |" in document_of(write_docx(tmp_path / "b.docx", table([["a|b", "c"]]))).text
    text = document_of(write_docx(tmp_path / "a.docx", table([["x"] * 200, *[["y"]] * 200]))).text
    assert (len(text) < 5_000, text.count("y")) == (True, 200)  # rows are not padded


def test_sheets_are_tables_of_their_values(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for row in (["Kind", "Price|EUR"], ["black", 1.5], [None, None], ["NA", None]):
        book.active.append([None, *row])
    book.create_sheet("Empty")
    lists = [["Report"], [], ["", "Q1"], ["North", 5], [], ["Sum", 9], [], ["Stock"], ["Kind", "Place"], ["tea", 7]]
    list(map(book.create_sheet("Lists").append, lists))
    book["Lists"]["B6"].font = openpyxl.styles.Font(strike=True)
    book["Lists"]["B4"].font = openpyxl.styles.Font(vertAlign="superscript")
    book.save(tmp_path / "tea.xlsx")
    assert document_of(tmp_path / "tea.xlsx").text == (
        "## Prices\n\n| Kind | Price\\|EUR |\n| --- | --- |\n| black | 1.5 |\n| NA |\n\n## Lists\n\n### Report\n\n"
        "|  | Q1 |\n| --- | --- |\n| North | ⁵ |\n| Sum | ~~9~~ |\n\n### Stock\n\n| Kind | Place |\n"
        "| --- | --- |\n| tea | 7 |"
    )


def test_a_formula_that_gives_nothing_is_empty_and_texts_of_several_fonts_are_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    list(map(book.active.append, [["Size", "Note"], ["106", "=A1"]]))
    book.save(tmp_path / "a.xlsx")
    with ZipFile(tmp_path / "a.xlsx") as file:
        members = {name: file.read(name) for name in file.namelist()}
    sheet, types = "xl/worksheets/sheet1.xml", "[Content_Types].xml"
    cell = b'<c r="A2" t="inlineStr"><is><t>106</t></is></c>'
    members[sheet] = members[sheet].replace(cell, b'<c r="A2" t="s"><v>0</v></c>').replace(b'"B2"', b'"B2" t="str"')
    raised = b'<r><rPr><vertAlign val="superscript"/></rPr><t>2</t></r>'
    members[sheet] = members[sheet].replace(b"<t>Note</t>", b"<r><t>m</t></r>" + raised)
    named = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s.sharedStrings+xml"/></Types>'
    office = b"application/vnd.openxmlformats-officedocument.spreadsheetml"
    members[types] = members[types].replace(b"</Types>", named % office)
    fonts = '<r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r>'
    fonts += "<r><rPr><strike/></rPr><t>old</t></r>"
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members["xl/sharedStrings.xml"] = f'<sst xmlns="{space}"><si>{fonts}</si></sst>'.encode()
    document, notes = read_file(write_zip(tmp_path / "a.xlsx", members))
    assert document.text.endswith("| Size | m² |\n| --- | --- |\n| 10⁶~~old~~ |")
    assert notes == ()


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (0.07, "0.0%", "7%"), (5, r"0\%", "5 %"), (12, r"0\-0", "1-2"), (3, '"No 0"" "0', "No 0 3"),
        (0.5, "0%_)", "50%"), (-0.5, "0%;[Red]-0%", "-50%"), (7, "000", "007"), (True, "General", "True"),
        (12.5, '[$€-407] #,##0.00', "€ 12.5"), (12.5, '_-* #,##0.00 [$€-407]_-', "12.5 €"), (5, "[Blue]0 [$-409]", "5"),
        (1_200_000, '0.0,,"M"', "1200000"), (3, '"Part "0', "Part 3"), (2021, "General", "2021"), ("007", "@", "007"),
        (datetime(2024, 3, 5), "d.m.yy", "2024-03-05"), (datetime(2024, 3, 5), "d.m.yy hh:mm", "2024-03-05 00:00:00"),
        (timedelta(hours=30, minutes=5), "[h]:mm", "30:05:00"), (7, "0", "7"),
        (timedelta(minutes=-30), "[h]:mm", "-0:30:00"), (0, '0;0;"nil"', "nil"), (-2, '"$"0', "-$2"),
        (3, '0;0;"nil"', "3"), (0.1 + 0.2, "General", "0.3"), (7.000000000000001, "0.0", "7"), (5, '"CHF" 0', "CHF 5"),
        (-2, r'_("$"* #,##0_);_("$"* \(#,##0\);"-"??_)', "-$2"), (12345678, "000-00-0000", "012-34-5678"),
        (5, 'General" kg"', "5 kg"), (-7, "000", "-007"), (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (7, "##-##", "7"), (5, "[>4]0-0", "5"), (2.5, "00-00", "2.5"),
    ],
)  # fmt: skip
def test_cells_keep_what_their_format_says_about_them(tmp_path, value, form, shown):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Kind", value])
    book.active["B1"].number_format = form
    book.save(tmp_path / "a.xlsx")
    assert document_of(tmp_path / "a.xlsx").text == f"## Sheet\n\n| Kind | {shown} |\n| --- | --- |"


def test_an_epub_in_the_order_of_its_spine(tmp_path):
    pytest.importorskip("markitdown")
    chapters = {
        "two.xhtml": "<html><body><h1>Of tea</h1><p><b>H</b><i>o</i>t &amp; sweet.</p><p hidden=>Жno</p></body></html>",
        "one%201.xhtml": "",
        "no.xhtml": "",
    }
    page = "<?xml version='1.0'?><title/><nav>No</nav><p><a href='#n'><sup>1</sup></a> End.<br/>Is it?</p>"
    file = write_epub(tmp_path / "tea.epub", chapters, **{"OEBPS_one 1.xhtml": page})
    document, notes = read_file(file)
    text = "**Title:** Of tea\n**Authors:** A. Leaf\n\n# Of tea\n\nHot & sweet.\n\n¹ End.\nIs it?"
    assert (document.text, notes) == (text, ("lacks its part no.xhtml",))
    locked = '<encryption><CipherReference URI="OEBPS/a.xhtml"/></encryption>'
    file = write_epub(tmp_path / "tea.epub", {"a.xhtml": "<p>Tea"}, **{"META-INF_encryption.xml": locked})
    with pytest.raises(UnreadError, match="DRM"):
        read_file(file)


NEEDED = ["pypdfium2 PDF files", "markitdown DOCX office", "pptx PPTX office", "openpyxl XLSX office"]


@pytest.mark.parametrize("needed", NEEDED)
def test_a_missing_extra_is_named(tmp_path, monkeypatch, needed):
    module, kind, extra = needed.split()
    monkeypatch.setitem(sys.modules, module, None)
    data = write_docx(tmp_path / "a.docx", paragraph("Tea.")).read_bytes()
    with pytest.raises(MissingExtraError, match=rf"chunkadapters\[{extra}\]"):
        readers[kind]().read(data, "a")


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


@pytest.mark.parametrize("name", ["tea.eml", "Message-ID: <tea>", "X-Received: by tea", "received: from a"])
def test_an_email_is_its_headers_and_its_text(tmp_path, name):
    (tmp_path / "tea.eml").write_text(f"{name}\n{MAIL}".removeprefix("tea.eml\n"), encoding="utf-8")
    document, notes = read_file((tmp_path / "tea.eml").rename(tmp_path / name.partition(":")[0]))
    assert document.text == (
        "# Grüner Tee\n\nFrom: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nDate: Sun, 22 Nov 2026 10:00:00 +0000"
        "\n\nDer Tee ist heiß.\n> Wie heiß?\n\n# Before\n\nFrom: Bob <bob@example.org>\n\nWie warm?"
    )
    assert document.metadata["attachments"] == ["tee.png"]
    assert notes == ("attachments are left out, save them as files: tee.png",)


@pytest.mark.parametrize(("disposition", "more"), [("inline", "are blue"), ("attachment", ""), ("", "are blue")])
def test_a_named_text_is_shown_but_as_an_attachment(disposition, more):
    part = f'Content-Type: text/plain; name="a.txt"\nContent-Disposition: {disposition}; filename="a.txt"\n\nare blue'
    mail = f"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nCups\n--x\n{part}\n--x--"
    document, notes = readers["e-mail"]().read(mail.encode(), "a")
    assert (document.text, len(notes)) == (f"Cups\n\n{more}".strip(), disposition == "attachment")


PART = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nStatus: 5.1.1\n"
REPORT = f"Content-Type: multipart/report; boundary=x\n\n--x\n\nReturned.\n--x\n{PART}\n--x--".encode()


@pytest.mark.parametrize(
    ("mail", "text"),
    [
        (b"25    \nSubject: Tea\n\nIt is hot.\n<plist/>", "# Tea\n\nIt is hot."),  # of Apple's program
        (b"Content-Type: text/plain; charset=ANSI_X3.4-1968\n\n\xef\xbb\xbfT\xc3\xa9", "Té"),
        (b"Content-Type: text/plain; charset=utf-16-le\n\n\xff\xfeT\0e\0a\0", "Tea"),
        (REPORT, "Returned.\n\nReporting-MTA: dns; x\nStatus: 5.1.1"),
    ],
)
def test_what_programs_put_around_the_text_of_a_mail(mail, text):
    assert readers["e-mail"]().read(mail, "a").document.text == text


@pytest.mark.parametrize(
    ("parameters", "lines", "text"),
    [
        ("format=flowed", ["Tea is ", "hot.", "And", " sweet.", "-- ", "Ada"], "Tea is hot.\nAnd\nsweet.\n\n-- \nAda"),
        ("format=Flowed; delsp=Yes", ["Ein Was ", "serkes ", "sel", "-- ", "ok "], "Ein Wasserkessel\n\n-- \nok"),
        ("format=flowed", ["> Is it ", "> hot? ", ">> It ", "> is."], "> Is it hot? \n>> It \n> is."),
        ("format=fixed", ["Hi,", "-", "Tea is ", "hot.", "----", "It"], "Hi,\n-\nTea is \nhot.\n\n----\nIt"),
    ],
)
def test_paragraphs_of_a_mail_that_flow_over_lines_are_joined(parameters, lines, text):
    mail = "\r\n".join([f"Content-Type: text/plain; {parameters}", "", *lines])
    assert readers["e-mail"]().read(mail.encode(), "a").document.text == text


DATES = ["Sun Nov 22 10:00:00 2026", "Mon Nov  2 10:00:00 CET 2026", "Mon, 2 Nov 2026 10:00 +0100"]


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mailbox_is_its_mails_and_loses_no_line(tmp_path, date, end):
    body = f"Dear all,\n\nFrom 1 March 2024 the fee is 90 euro.\nFrom Ada {DATES[0]}\n\n>From Bob {DATES[0]}"
    mails = [f"Subject: One\n\n{body}", MAIL, "Subject: \n\n"]
    text = "\n\n".join(f"From ada@example.org {date}\n{mail}" for mail in mails)
    (tmp_path / "tea").write_bytes(text.replace("\n", end).encode())
    document, notes = read_file(tmp_path / "tea")
    assert document.text.startswith(f"# One\n\n{body.replace('>', '')}\n\n# Grüner Tee\n")
    assert document.metadata["attachments"] == ["tee.png"]
    told = ("message 3: is an e-mail without a text", "attachments are left out, save them as files: tee.png")
    assert notes == told
    (tmp_path / "tea").write_bytes(f"From ada@example.org {date}\nSubject: \n\nTé à part".encode() + b"\xff")
    with pytest.raises(UnreadError, match="has no text; message 1: is not UTF-8 text"):
        read_file(tmp_path / "tea")


def test_a_saved_page_has_the_pages_of_its_frames():
    page = "--x\nContent-Type: text/html\n\n<p>{}</p>\n"
    saved = "Subject: Tea\nContent-Type: multipart/related; boundary=x\n\n" + "".join(map(page.format, ("Tea", "Cups")))
    assert readers["saved page"]().read(f"{saved}--x--".encode(), "a").document.text == "Tea\n\nCups"


@pytest.mark.parametrize("kind", ["text/html", "application/xhtml+xml"])
def test_an_invitation_is_what_it_shows_and_no_calendars_data(kind):
    page = f"Content-Type: {kind}\n\n<p>Tea at noon.</p>\n"
    mixed = f"Content-Type: multipart/mixed; boundary=y\n\n--y\n{page}--y\nContent-Type: application/pdf\n\n--y--\n"
    parts = f"--x\n{page}--x\n{mixed}--x\nContent-Type: text/calendar\n\n{'BEGIN:VCALENDAR' * 9}\n--x--"
    notes = ("attachments are left out, save them as files: application/pdf, text/calendar",)
    for mail, told in (page, ()), (f"Content-Type: multipart/alternative; boundary=x\n\n{parts}", notes):
        reading = readers["e-mail"]().read(f"Subject: Tea\n{mail}".encode(), "a")
        assert (reading.document.text, reading.notes) == ("# Tea\n\nTea at noon.", told)


STUBS = ["This message needs an HTML reader.", "", "View this email in your browser.", "--", "表示できません。"]


@pytest.mark.parametrize("stub", STUBS)
def test_html_wins_over_a_stub_of_text(tmp_path, stub):
    page = "<style>x{}</style><nav>Home</nav><h1>Tea &amp; cups</h1><p>It is <b>hot</b>.<table><tr><td>a<td>b</table>"
    parts = f"--x\n\n{stub}\n--x\nContent-Type: text/html\n\n{page + 'long ' * 50}\n--x--"
    mail = f"Subject: Tea\nContent-Type: multipart/alternative; boundary=x\n\n{parts}"
    (tmp_path / "a.eml").write_text(mail)
    text = document_of(tmp_path / "a.eml").text
    assert text.startswith("# Tea\n\n# Tea & cups\n\nIt is hot.\n\n| a | b |\n| --- | --- |")
    assert not re.search("Home|browser", text)


def test_a_notebook_is_its_texts_and_code_without_pictures(tmp_path):
    pytest.importorskip("markitdown")
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "![x](data:image/png;base64," + "A" * 99 + ")\n~~~ r"]},
        {"cell_type": "code", "source": "print('hot')", "outputs": [{"output_type": "stream", "text": "hot\n"}]},
    ]
    file = tmp_path / "tea.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}), "utf-16")
    document, notes = read_file(file)
    assert document.text == "# Tea\n![x](data:)\n~~~ r\n~~~\n\n```python\nprint('hot')\n```"
    assert notes == ("outputs of its cells are left out",)
    cells = [{"cell_type": "heading", "level": level, "source": "Tea"} for level in (2, 7)]
    cells.append({"cell_type": "code", "input": ["x <- 1"]})
    file.write_text(json.dumps({"worksheets": [{"cells": cells}], "metadata": {"kernelspec": {"language": "R"}}}))
    assert document_of(file).text == "## Tea\n\n###### Tea\n\n```r\nx <- 1\n```"
    long = [{"cell_type": "code", "source": "x = 1\n" * 50_000}]
    file.write_text(json.dumps({"cells": long, "metadata": {}, "nbformat": 4}))
    tracemalloc.start()
    document_of(file)
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()
    for damaged in ("[]", "{", '{"cells": [7]}'):
        file.write_text(damaged)
        with pytest.raises(UnreadError):
            read_file(file)


# ---- Encodings

TEXTS = {
    "cp1252": ["¿CÓMO ESTÁ, SEÑOR? QUÉ DÍA MÁS", "Thé;m³h\nMüller;12,50 €\n", "“Où ?”, dit-elle à l’école."],
    "cp932": ["緑茶は冷たくても美味しいです。紅茶は熱いお湯で入れます。"],
    "iso2022_jp_ext": ["緑茶は冷たくても美味しいです。紅茶は熱いお湯で入れます。"],
    "iso2022_kr": ["녹차는 차가워도 맛있습니다. 홍차는 뜨거운 물로 우립니다."],
    "euc_jp": ["緑茶は冷たくても美味しいです。紅茶は熱いお湯で入れます。"],
    "utf-16-le": ["Tea is hot.", "Чай горячий, и чашка тоже. Tea!" * 2],
    "utf-16-be": ["Tea is hot, café."],
    "utf-16": ["Чай", "緑茶"],
    "utf-32": ["Чай"],
    "cp1255": ["הישיבה תתקיים במאי. התשלום הוא חמישה אירו."],
    "cp1251": ["Чай бывает чёрный и зелёный. Вода должна быть горячей."],
    "koi8_r": ["Чай бывает чёрный и зелёный. Вода должна быть горячей."],
    "gb18030": ["绿茶不需要沸水。红茶需要热水，请注意温度。"],
    "big5": ["綠茶不需要沸水。紅茶需要熱水，請注意溫度。"],
    "cp949": ["녹차는 끓는 물이 필요하지 않습니다. 홍차는 뜨거운 물이 필요합니다."],
    "cp1250": [
        "Zelený čaj není horký. Příliš žluťoučký kůň úpěl ďábelské ódy.",
        "A zöld tea nem forró. Árvíztűrő tükörfúrógép; kérünk öt csésze teát.",
        "Zebranie odbędzie się w maju. Opłata wynosi pięć euro, proszę się nie spóźnić.",
    ],
    "iso8859-15": ["Grüner Tee kostet fünf €, süß oder nicht."],
    "mac_roman": ["die Äpfel"],
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


def test_signs_of_windows_tell_its_charset_and_an_escape_in_utf_8_no_other(tmp_path):
    texts = {"It’s “hot” – so… €5": "cp1252", "«Tea» – yes": "cp1252", "Café \x1b$B": "utf-8"}
    for text, encoding in (texts | {f"From Ada {DATES[0]}\nNo mailbox.": "utf-8"}).items():
        (tmp_path / "a.txt").write_bytes(text.encode(encoding))
        assert document_of(tmp_path / "a.txt").text == text


def test_tables_and_pages_that_a_program_gives_endings_of_office_are_read(tmp_path):
    saved = "MIME-Version: 1\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\nTea\n--x--"
    pages = (saved, "\ufeff<html>Tea", "<!-- till --><html>Tea", "<meta charset=utf-8>Tea", "<table><td>Tea")
    files = {page.encode(): "Tea" for page in pages}
    for data, text in (files | {"Öl\tTee\n".encode(name): "Öl\tTee\n" for name in ("utf-16", "cp1252")}).items():
        (tmp_path / "a.xls").write_bytes(data)
        assert document_of(tmp_path / "a.xls").text == text


def test_a_page_declares_its_encoding(tmp_path):
    file = tmp_path / "a.html"
    pages = ("iso-8859-2", "iso-8859-2", "Zelený čaj"), ("iso-8859-8-i", "iso8859-8", "תה"), ("none", "cp1252", "Café")
    for name, codec, text in pages:
        file.write_bytes(f'<meta charset="{name}"><p>{text}'.encode(codec))
        assert document_of(file).text.endswith(text)
    file.write_text("if a < b:\n    tea()")  # of no tag
    assert document_of(file).text == "if a < b:\n    tea()"


def test_binary_files_are_no_text(tmp_path):
    picture = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256))
    for data in (picture, b"PK\x03\x04\x00\x00\x00\xff\xfe\x00", b"a.txt" + bytes(9)):
        (tmp_path / "a.bin").write_bytes(data)
        with pytest.raises(NoTextError):
            read_file(tmp_path / "a.bin")


# A codec that is no charset is not obeyed: what it would make of the bytes is not what they say.
@pytest.mark.parametrize("codec", ["unicode_escape", "punycode", "idna", "rot13", "utf-7", "zlib", "base64"])
def test_codecs_that_are_no_charsets_are_not_obeyed(tmp_path, codec):
    (tmp_path / "a.html").write_bytes(f'<meta charset="{codec}"><p>Caf'.encode() + b"\xe9 \\x41")
    assert document_of(tmp_path / "a.html").text.endswith("Café \\x41")
    mail = f"Subject: =?{codec}?q?Tea?=\nContent-Type: text/plain; charset={codec}\n\nTea \\x41"
    (tmp_path / "a.eml").write_bytes(mail.encode())
    assert document_of(tmp_path / "a.eml").text.endswith("Tea \\x41")


@pytest.fixture
def folder(tmp_path):
    """A folder as people have it."""
    (tmp_path / "a.md").write_text("# Tea\n\nBlack tea is hot.")
    (tmp_path / "b.pdf").write_bytes(pdf_bytes([lines_of("Green tea is not."), b""]))
    pytest.importorskip("markitdown")
    write_docx(tmp_path / "c.docx", paragraph("Of tea", "Titel") + paragraph("White tea is rare."))
    (tmp_path / "d.eml").write_text(MAIL, encoding="utf-8")
    (tmp_path / "e.csv").write_bytes("kind;heat\nMüller;hot\n".encode("cp1252"))
    (tmp_path / "f.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / "g.png").write_bytes(b"\x89PNG\x00\xff")
    (tmp_path / "h.txt").write_text("")
    (tmp_path / "i.docx").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "j.html").write_text("<html><script>draw()</script></html>")
    return tmp_path


READ = ["a.md", "b.pdf", "c.docx", "d.eml", "e.csv"]
TOLD = [
    "left out of {}: f.pdf: is no PDF, or is broken: mend it, or take it out",
    "left out of {}: g.png: is no text, and there is no reader for .png: convert it, or take it out",
    "left out of {}: h.txt: is empty: fill it or take it out",
    "left out of {}: i.docx: is damaged or encrypted, or no ZIP file: File is not a zip file",
    "left out of {}: j.html: has no text that a reader sees: it may hold pictures only",
    "in {}, b.pdf: scanned: no text on page 2 of 2; recognise it first (OCR)",
    "in {}, d.eml: attachments are left out, save them as files: tee.png",
    "in {}, e.csv: is no UTF-8, and was read as cp1252",
]


def test_a_mixed_folder_is_read_and_each_other_file_told_once(folder):
    documents, told = told_of(folder)
    assert [document.id for document in documents] == READ
    assert told == [line.format(folder) for line in TOLD]


def test_a_named_file_that_cannot_be_read_is_an_error(folder):
    with pytest.raises(DataError, match=r"f.pdf is no PDF"):
        load_documents(folder / "f.pdf")


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither")
def test_links_out_of_the_folder_devices_and_pipes_are_no_documents(tmp_path):
    docs, outside = tmp_path / "docs", tmp_path / "outside"
    docs.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("A secret.")
    (docs / "tea.txt").write_text("Tea is hot.")
    (docs / "same.txt").symlink_to(docs / "tea.txt")
    (docs / "secret.txt").symlink_to(outside / "secret.txt")
    (docs / "linked").symlink_to(outside)
    (docs / "circle").symlink_to(docs)
    (docs / "self.txt").symlink_to("self.txt")
    (docs / "gone.txt").symlink_to("nowhere")
    (docs / "env.txt").symlink_to("/proc/self/environ")
    (docs / "zero.txt").symlink_to("/dev/zero")
    os.mkfifo(docs / "pipe.txt")
    documents, told = told_of(docs)
    assert [document.id for document in documents] == ["same.txt", "tea.txt"]
    refused = "\n".join(told)
    assert "env.txt, secret.txt: is a link out of the folder: copy the file in, or allow links" in refused
    documents, told = told_of(docs, follow_links=True)
    assert [document.id for document in documents] == ["linked/secret.txt", "same.txt", "secret.txt", "tea.txt"]
    if sys.platform == "linux":
        assert "env.txt: is a device: expected a file" in "\n".join(told)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be read")
def test_a_folder_that_cannot_be_read_ends_nothing(tmp_path):
    (tmp_path / "tea.txt").write_text("Tea.")
    (tmp_path / "locked").mkdir(mode=0o000)
    documents, told = told_of(tmp_path)
    assert [document.id for document in documents] == ["tea.txt"]
    assert "locked: cannot be read" in told[0]


def test_another_package_can_add_a_reader(tmp_path):
    assert {"PDF", "DOCX", "PPTX", "XLSX", "EPUB", "e-mail", "notebook"} <= set(readers)
    with pytest.raises(OptionError, match="unknown reader"):
        readers.get("papyrus")

    class Local(Reader):
        def read(self, data, name):
            return Reading(Document(name, data.decode()[::-1]))

    assert base.read_guarded(Local, b"aeT", Path("a"), "a").document.text == "Tea"  # in this process


def test_a_table_is_cut_by_rows_with_its_header():
    text = 'kind,heat\n"black\ntea",hot\n' + "".join(f"tea {n},warm\n" for n in range(9))
    chunks = get_chunker("auto:size=8,counter=words").chunk(Document("tea.csv", text))
    assert chunks[0].text == 'kind,heat\n"black\ntea",hot\ntea 0,warm\ntea 1,warm'
    assert len(chunks) > 2
    assert all(chunk.text.startswith("kind,heat\ntea ") for chunk in chunks[1:])
    assert all(chunk.metadata == {"chunker": "table"} for chunk in chunks[1:])
    unclosed = get_chunker("auto:size=8,counter=words").chunk(Document("tea.csv", text + '"'))
    assert "".join(chunk.text for chunk in unclosed).count("warm") == 9


@given(st.text(alphabet='a,"\n\r \té', max_size=60))
def test_the_rows_of_a_table_leave_nothing_out(text):
    rows = table_blocks(text)
    kept = "".join(text[row.start : row.end] for row in rows)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(one.end <= other.start for one, other in pairwise(rows))


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.svg"])
@pytest.mark.parametrize("after", ["'/> <p>It runs at night.</p>", ""])
def test_a_picture_as_base64_is_in_no_chunk_and_places_stay(name, after):
    picture = "iVBORw0KGgo" * 2000
    text = f"<p>The pump is blue.</p> <img src='data:image/png;base64,{picture}{after}"
    for spec in ("auto:size=9", "recursive:size=9", "sentence:size=9", "fixed_token:size=9"):
        chunks = get_chunker(spec).chunk(Document(name, text))
        assert len(chunks) < 12
        assert all(chunk.text == text_of_spans(text, chunk.spans) for chunk in chunks)
        assert not any(picture[:30] in chunk.text for chunk in chunks)
