"""Small real files, written by hand: PDF, DOCX, EPUB."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

# A text's left edge, its height over the page's foot, the size of its letters, and itself.
Line = tuple[float, float, float, str]


def lines_of(text: str, *, left: float = 72, top: float = 720, size: float = 12) -> list[Line]:
    return [(left, top - 1.2 * size * number, size, line) for number, line in enumerate(text.split("\n")) if line]


def content_of(lines: Iterable[Line]) -> bytes:
    shown = [
        b"BT /F1 %.1f Tf %.1f %.1f Td (%s) Tj ET"
        % (size, left, height, line.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)"))
        for left, height, size, line in lines
    ]
    return b"\n".join(shown)


def pdf_bytes(
    pages: Sequence[Iterable[Line] | bytes],
    *,
    title: str = "",
    outline: Sequence[tuple[str, int]] = (),
    roman: int = 0,
    rotate: int = 0,
    trailer: bytes = b"",
    annotations: Sequence[bytes] = (),
) -> bytes:
    """A PDF. A page is its lines, or a content stream; `outline` has titles with their pages from 0.

    Annotations, of which some may be fields of a form, stand on each page.
    """
    objects: list[bytes] = []

    def add(data: bytes) -> int:
        objects.append(data)
        return len(objects)

    catalog, tree, font, info = (add(b"") for _ in range(4))
    kids = []
    over = b" ".join(b"%d 0 R" % add(b"<</Type/Annot/Rect[72 600 99 620]%s>>" % each) for each in annotations)
    for page in pages:
        content = page if isinstance(page, bytes) else content_of(page)
        packed = zlib.compress(content)
        stream = add(b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed))
        kids.append(
            add(
                b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 612 792]/Rotate %d/Contents %d 0 R/Annots[%s]"
                b"/Resources<</Font<</F1 %d 0 R>>>>>>" % (tree, rotate, stream, over, font)
            )
        )
    more = b"/AcroForm<</Fields[%s]>>" % over if annotations else b""
    if outline:
        root = len(objects) + 1
        items = range(root + 1, root + 1 + len(outline))
        add(b"<</First %d 0 R/Last %d 0 R/Count %d>>" % (items[0], items[-1], len(items)))
        for number, (name, page) in zip(items, outline, strict=True):
            links = b"/Next %d 0 R" % (number + 1) if number < items[-1] else b""
            links += b"/Prev %d 0 R" % (number - 1) if number > items[0] else b""
            add(b"<</Title(%s)/Parent %d 0 R%s/Dest[%d 0 R/Fit]>>" % (name.encode("cp1252"), root, links, kids[page]))  # type: ignore[call-overload]
        more += b"/Outlines %d 0 R" % root
    if roman:
        more += b"/PageLabels<</Nums[0<</S/r>>%d<</S/D>>]>>" % roman
    objects[catalog - 1] = b"<</Type/Catalog/Pages %d 0 R%s>>" % (tree, more)
    named = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[tree - 1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), named)
    objects[font - 1] = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    objects[info - 1] = b"<</Title(%s)>>" % title.encode("cp1252")
    data = b"%PDF-1.4\n"
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    begin = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer<</Size %d/Root %d 0 R/Info %d 0 R%s>>\n" % (len(objects) + 1, catalog, info, trailer)
    return data + b"startxref\n%d\n%%%%EOF\n" % begin


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STYLES = """<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>
</w:style><w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/></w:style>"""
_LISTS = """<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num>"""


def word_xml(body: str, root: str = "document") -> str:
    return f'<?xml version="1.0"?><w:{root} xmlns:w="{_WORD}">{body}</w:{root}>'


def paragraph(text: str, style: str = "", more: str = "") -> str:
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def write_docx(path: Path, body: str, **parts: str) -> Path:
    """A DOCX of a body, and other parts by their names (``footnotes``)."""
    members = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": word_xml(f"<w:body>{body}</w:body>"),
        "word/styles.xml": word_xml(_STYLES, "styles"),
        "word/numbering.xml": word_xml(_LISTS, "numbering"),
        **{f"word/{name}.xml": part for name, part in parts.items()},
    }
    return write_zip(path, members)


def write_epub(path: Path, chapters: Mapping[str, str], **more: str) -> Path:
    """An EPUB of XHTML by names, in this order; its spine names each twice, against the rules."""
    items = "".join(
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>Of tea</dc:title><dc:creator>A. Leaf</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{order}{order}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
    )
    members = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "OEBPS/content.opf": package}
    members |= {f"OEBPS/{name}": page for name, page in chapters.items() if page}
    return write_zip(path, members | {name.replace("_", "/", 1): part for name, part in more.items()})


def write_zip(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data, compress_type=0 if name == "mimetype" else None)
    return path
