"""Files of each format under limits of any size: read, or one sentence, within the time.

The files are harmless. What a converter of others may do with a hostile one (take all memory, run on, die) is caught by
the same limits, which are lowered here until a harmless file goes over them.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from chunkcore.errors import DataError
from chunkcore.reading import base, opening, read_file
from hypothesis import strategies as st

from tests.files import lines_of, paragraph, pdf_bytes, table, word_xml
from tests.fuzzing.targets import target

SENTENCE = "The harbour opens at nine."


def packed(members: Mapping[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def docx(body: str) -> bytes:
    return packed({"[Content_Types].xml": "<Types/>", "word/document.xml": word_xml(f"<w:body>{body}</w:body>")})


def mail(kind: str, body: str) -> bytes:
    return f"Subject: Tea\nContent-Type: text/{kind}\n\n{body}".encode()


def notebook(cells: int) -> bytes:
    return json.dumps({"cells": [{"cell_type": "markdown", "source": SENTENCE}] * cells, "metadata": {}}).encode()


# A family: the file's ending, and its content at a size.
FAMILIES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "paragraphs": ("docx", lambda n: docx(paragraph(SENTENCE) * n)),
    "table": ("docx", lambda n: docx(table([["tea", "heat"]] * n))),
    "pages": ("pdf", lambda n: pdf_bytes([lines_of(f"Page {page}") for page in range(n)])),
    "plain mail": ("eml", lambda n: mail("plain", f"{SENTENCE}\n" * n)),
    "mail of a page": ("eml", lambda n: mail("html", f"<p>{SENTENCE}</p>" * n)),
    "cells": ("ipynb", notebook),
    "page": ("html", lambda n: f"<h1>Tea</h1><p>{SENTENCE}</p>".encode() * n),
    "lines": ("txt", lambda n: f"{SENTENCE}\n".encode() * n),
    "two bytes a letter": ("txt", lambda n: (SENTENCE * n).encode("utf-16")),
}
LIMITS: dict[str, tuple[object, tuple[float, ...]]] = {
    "SECONDS": (base, (0.01, base.SECONDS)),
    "OUTPUT": (base, (10, 1000, base.OUTPUT)),
    "LARGEST": (opening, (10, 1000, opening.LARGEST)),
}


@target(
    share=0.003,
    family=st.sampled_from(sorted(FAMILIES)),
    size=st.sampled_from((1, 7, 30)),
    limits=st.fixed_dictionaries({name: st.sampled_from(values) for name, (_, values) in LIMITS.items()}),
)
def any_file_is_read_or_named_under_any_limits(family: str, size: int, limits: dict[str, float]) -> None:
    ending, content = FAMILIES[family]
    before = {name: getattr(place, name) for name, (place, _) in LIMITS.items()}
    for name, value in limits.items():
        setattr(LIMITS[name][0], name, value)
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
            assert sentence or len(content(size)) <= limits["LARGEST"]
            assert time.monotonic() - began < 30  # other programs may run beside this one
    finally:
        for name, value in before.items():
            setattr(LIMITS[name][0], name, value)
