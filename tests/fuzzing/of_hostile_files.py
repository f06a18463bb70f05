"""Hostile files by families, each at any size: read, or one sentence, within the limits of time and memory.

python -m tests.fuzzing.of_hostile_files FOLDER 3000    # write one file of each family, at this size
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from chunkcore.errors import DataError
from chunkcore.reading import base, read_file
from hypothesis import strategies as st

from tests.files import lines_of, paragraph, pdf_bytes, table, word_xml
from tests.fuzzing.targets import target

_SECONDS = 5.0  # for a file, here
_PARENT = 600_000  # kB that the program itself may have had at most, beyond what it had before


def packed(members: Mapping[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def docx(body: str, **parts: str) -> bytes:
    members = {"[Content_Types].xml": "<Types/>", "word/document.xml": word_xml(f"<w:body>{body}</w:body>")}
    return packed({**members, **{f"word/{name}.xml": part for name, part in parts.items()}})


def mail(head: str, body: str = "Tea.") -> bytes:
    return f"Subject: Tea\n{head}\n\n{body}".encode("utf-8", "surrogateescape")


def styles(size: int) -> str:
    """Each style is based on the next."""
    chain = (
        f'<w:style w:type="paragraph" w:styleId="s{n}"><w:name w:val="s{n}"/><w:basedOn w:val="s{n + 1}"/></w:style>'
        for n in range(size)
    )
    return word_xml("".join(chain), "styles")


def levels(size: int) -> str:
    item = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="{}"/><w:numId w:val="{}"/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p>'
    )
    return "".join(item.format(n, n) for n in range(size))


def nested_parts(size: int) -> bytes:
    parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(size))
    return mail(parts)


def bomb(size: int) -> bytes:
    content = zlib.compress(zlib.compress(b"BT (tea) Tj ET " * (100 * size)))
    data = pdf_bytes([lines_of("Tea.")])
    start, end = data.index(b"<</Length"), data.index(b"endstream")
    head = b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\n" % (len(content), content)
    return data[:start] + head + data[end:]


CHARSETS = ("punycode", "idna", "unicode_escape", "raw_unicode_escape", "rot13", "zlib", "base64", "utf-7", "x" * 99)

# A family: the file's ending, and its content at a size. Width, depth, chains, repeated tags, headers, charsets, bombs.
FAMILIES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "width": ("docx", lambda n: docx(table([["x"] * n, *[["y"]] * n]))),
    "depth": ("docx", lambda n: docx("<w:tbl><w:tr><w:tc>" * n + "</w:tc></w:tr></w:tbl>" * n)),
    "chain of styles": ("docx", lambda n: docx(paragraph("Tea.", "s0"), styles=styles(n))),
    "levels of lists": ("docx", lambda n: docx(levels(n))),
    "unpacked": ("docx", lambda n: docx(" " * (20_000 * n))),
    "sheet far away": ("xlsx", lambda n: sheet(f'<row r="{350 * n}"><c r="XFD{350 * n}"><v>1</v></c></row>')),
    "shared formula": ("xlsx", lambda n: sheet("<row>" + "<c><v>1</v></c>" * n + "</row>")),
    "pages": ("pdf", lambda n: pdf_bytes([lines_of(f"Page {page}") for page in range(n // 10 + 1)])),
    "bomb": ("pdf", bomb),
    "deep outline": ("pdf", lambda n: pdf_bytes([b"q " * (100 * n)])),
    "encoded words": ("eml", lambda n: mail("To: " + "=?utf-8?q?tea?= " * (10 * n))),
    "semicolons": ("eml", lambda n: mail("Content-Type: text/plain" + ";" * (20 * n))),
    "folded semicolons": ("eml", lambda n: mail("Content-Type: text/plain" + ";\n a=b" * (20 * n))),
    "parts in parts": ("eml", nested_parts),
    "fonts": ("eml", lambda n: mail("Content-Type: text/html", "".join(f"<font a={k}><p>x" for k in range(n)))),
    "divisions": ("eml", lambda n: mail("Content-Type: text/html", "<div><b>" * n)),
    "charset": ("eml", lambda n: mail(f"Content-Type: text/plain; charset={CHARSETS[n % len(CHARSETS)]}", "tea-" * n)),
    "declared charset": ("html", lambda n: f"<meta charset={CHARSETS[n % len(CHARSETS)]}>".encode() + b"\xe9-" * n),
    "brackets": ("ipynb", lambda n: b'{"cells": ' + b"[" * (50 * n)),
    "cells": ("ipynb", lambda n: json.dumps({"cells": [{"cell_type": "code", "source": "`" * n}] * n}).encode()),
    "letters": ("txt", lambda n: "\u0301\u200d\U0001f1e6[<".encode() * (100 * n)),
    "zeros": ("txt", lambda n: bytes([0, 65]) * n),
}


def sheet(rows: str) -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    relation = "http://schemas.openxmlformats.org/package/2006/relationships"
    return packed(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
            f'<Override PartName="/xl/s.xml" ContentType="{types}.worksheet+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{relation}"><Relationship Id="a" Type="{kind}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kind}"><sheets>'
            '<sheet name="S" sheetId="1" r:id="a"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{relation}"><Relationship Id="a" '
            f'Type="{kind}/worksheet" Target="s.xml"/></Relationships>',
            "xl/s.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
        }
    )


@target(share=0.003, family=st.sampled_from(sorted(FAMILIES)), size=st.sampled_from((1, 7, 100, 3_000)))
def any_hostile_file_is_read_or_named_within_the_limits(family: str, size: int) -> None:
    """The clock and the memory are those of the program that reads; the process with limits has its own."""
    ending, content = FAMILIES[family]
    before, base.SECONDS = base.SECONDS, _SECONDS
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"a.{ending}"
            file.write_bytes(content(size))
            began = time.monotonic()
            sentence = ""
            try:
                read_file(file)
            except DataError as error:
                sentence = str(error)
            assert "\n" not in sentence
            assert time.monotonic() - began < 4 * _SECONDS + 10  # other programs may run beside this one
    finally:
        base.SECONDS = before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < _PARENT


if __name__ == "__main__":
    place, size = Path(sys.argv[1]), int(sys.argv[2])
    place.mkdir(parents=True, exist_ok=True)
    for name, (ending, content) in FAMILIES.items():
        (place / f"{name.replace(' ', '_')}.{ending}").write_bytes(content(size))
    os.mkfifo(place / "pipe.txt")
    for name in ("/proc/self/environ", "/dev/zero", "/etc/hostname"):
        (place / f"link_{Path(name).name}.txt").symlink_to(name)
