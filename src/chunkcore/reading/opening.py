"""`read_file`: a file is opened once, and its reader chosen by its name and first bytes."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from chunkcore.boundaries.records import marked_headings
from chunkcore.errors import DataError
from chunkcore.files import NoTextError, UnreadError, empty, open_file, unreadable
from chunkcore.reading.base import Reader, Reading, read_guarded, readers
from chunkcore.reading.encodings import decode_text
from chunkcore.reading.visible import Html, html_setting
from chunkcore.text import Document, Mark, Span

LARGEST = 512 * 1024**2  # bytes of a file that is read whole
_HEAD = 1024
_PAGE = re.compile(rb"\s*<(?:!doctype )?html", re.IGNORECASE)


@lru_cache(maxsize=1)
def _by_ending() -> dict[str, type[Reader]]:
    return {ending: reader for _, reader in readers.items() for ending in reader.endings}


def read_file(
    path: Path | str, name: str = "", *, inside: Path | None = None, html: Html | None = None
) -> Reading:
    r"""The document of a file: a PDF, DOCX, PPTX, XLSX, EPUB, HTML, e-mail, notebook, or text in any encoding.

    The kind follows from the name's ending, else from the first bytes. Everything but text becomes Markdown or, of a
    PDF, plain text (``metadata["format"]``), with marks ``page`` and ``section``. Nothing in a file is executed, and
    nothing is fetched. The file is opened once; all but UTF-8 text is read in a process with limits of time and memory.

    `name` becomes the document's id; by default it is the file's. With `inside`, a link that leaves that folder is
    refused. `html`: "visible" reads a page as a reader sees it, with a mark ``source`` for `in_source`; "source" leaves
    its tags; by default `html_setting`.

    Raises:
        UnreadError: a file of a known kind that cannot be read, or a text whose encoding cannot be told.
        NoTextError: it is empty, or of no known kind.
        DataError: it cannot be opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "note.eml")
    ...     _ = file.write_text("Subject: Tea\n\nAt four.")
    ...     read_file(file).document.text
    '# Tea\n\nAt four.'
    """
    path = Path(path)
    name = name or path.name
    try:
        with open_file(path, inside=inside) as file:
            return _read_open(path, file, name, html or html_setting())
    except OSError as error:
        raise unreadable(path, error) from error
    except NoTextError:
        raise
    except DataError as error:  # damaged, or of an encoding that cannot be told
        raise UnreadError(path, str(error).removeprefix(f"{path} ")) from error


def _read_open(path: Path, file: BinaryIO, name: str, html: Html) -> Reading:
    if os.fstat(file.fileno()).st_size > LARGEST:
        raise UnreadError(path, f"has over {LARGEST // 1024**2} MB: split it, or take it out")
    data = file.read()
    if not data:
        raise empty(path)
    reader = _reader_of(path, data[:_HEAD])
    is_source = html == "source" and reader is not None and reader.name == "HTML"
    if reader is not None and not is_source:
        return _with_sections(read_guarded(reader, data, path, name))
    text, note = decode_text(data, path)
    metadata = {"html": "source"} if is_source else {}
    return Reading(Document(name, text, metadata), (note,) if note else ())


def _with_sections(reading: Reading) -> Reading:
    """With a mark ``section`` from each heading, or the first of several, to the next, unless a reader made some."""
    document = reading.document
    has_sections = any(mark.kind == "section" for mark in document.marks)
    if has_sections or document.metadata.get("format") != "markdown":
        return reading
    starts: list[int] = []
    end = 0
    for heading in marked_headings(document.text):
        if not starts or document.text[end : heading.start].strip():
            starts.append(heading.start)
        end = heading.end
    sections = tuple(Mark("section", Span(*pair)) for pair in pairwise([*starts, document.size]))
    return reading._replace(document=replace(document, marks=document.marks + sections))


def _reader_of(path: Path, head: bytes) -> type[Reader] | None:
    reader = _by_ending().get(path.suffix[1:].lower())
    if reader is not None and not reader.magic:
        return reader
    for kind in _by_ending().values():
        if kind().recognises(head):
            return kind
    if _PAGE.match(head):  # an error page that is called .pdf
        return _by_ending().get("html")
    return reader
