"""`read_file`: a file is opened once, its reader chosen by its name and first bytes; text in any encoding."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from chunkcore.errors import DataError
from chunkcore.files import NoTextError, UnreadError, decoded, empty, open_file, unreadable
from chunkcore.reading.base import Reader, Reading, read_guarded, readers
from chunkcore.text import Document, Mark, Span

# A fenced block, or headings with nothing between them.
_HEADINGS = re.compile(
    r"^(```|~~~)(?s:.*?)(?:^\1|\Z)|^#{1,6}[ \t].*(?:\s*\n#{1,6}[ \t].*)*", re.MULTILINE
)
LARGEST = 512 * 1024**2  # bytes of a file that is read whole
_HEAD = 1024


@lru_cache(maxsize=1)
def _by_ending() -> dict[str, type[Reader]]:
    return {ending: reader for _, reader in readers.items() for ending in reader.endings}


def has_reader(path: Path) -> bool:
    """Whether a reader takes files of this ending; others are read as text first."""
    return path.suffix[1:].lower() in _by_ending()


def read_file(path: Path | str, name: str = "", *, inside: Path | None = None) -> Reading:
    r"""The document of a file: a PDF, DOCX, PPTX, XLSX, EPUB, e-mail, notebook, or text in any encoding.

    The kind follows from the name's ending, else from the first bytes. Everything but text becomes Markdown or, of a
    PDF, plain text (``metadata["format"]``), with marks ``page`` and ``section``. Nothing in a file is executed, and
    nothing is fetched. The file is opened once; all but UTF-8 text is read in a process with limits of time and memory.

    `name` becomes the document's id; by default it is the file's. With `inside`, a link that leaves that folder is
    refused.

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
            return _read_open(path, file, name)
    except OSError as error:
        raise unreadable(path, error) from error
    except NoTextError:
        raise
    except DataError as error:  # damaged, or of an encoding that cannot be told
        raise UnreadError(path, str(error).removeprefix(f"{path} ")) from error


def _read_open(path: Path, file: BinaryIO, name: str) -> Reading:
    if os.fstat(file.fileno()).st_size > LARGEST:
        raise UnreadError(path, f"has over {LARGEST // 1024**2} MB: split it, or take it out")
    data = file.read()
    if not data:
        raise empty(path)
    reader = _reader_of(path, data[:_HEAD])
    if reader is not None:
        return _with_sections(read_guarded(reader, data, path, name))
    text, note = decode_text(data, path)
    return Reading(Document(name, text), (note,) if note else ())


def _with_sections(reading: Reading) -> Reading:
    """With a mark ``section`` from each heading of Markdown to the next, unless the reader has made such marks."""
    document = reading.document
    if document.metadata.get("format") != "markdown" or any(
        mark.kind == "section" for mark in document.marks
    ):
        return reading
    starts = [match.start() for match in _HEADINGS.finditer(document.text) if match[1] is None]
    sections = tuple(Mark("section", Span(*pair)) for pair in pairwise([*starts, document.size]))
    return reading._replace(document=replace(document, marks=document.marks + sections))


def _reader_of(path: Path, head: bytes) -> type[Reader] | None:
    reader = _by_ending().get(path.suffix[1:].lower())
    if reader is not None and not reader.magic:
        return reader
    recognised = next((kind for kind in _by_ending().values() if kind().recognises(head)), None)
    is_page = (
        head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))
    )  # an error page that is called .pdf
    return recognised or (None if is_page else reader)


_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_DECLARED = re.compile(
    rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE
)
# Python's codecs that are charsets of texts: not punycode, idna, unicode_escape, rot13, base64 and their like.
_CHARSETS = re.compile(
    r"ascii|utf-8(-sig)?|utf-(16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|gb2312|gbk|gb18030|big5(hkscs)?|johab|hz"
    r"|shift_jis(x0213|_2004)?|euc_\w+|iso2022_\w+|mac-\w+|tis-620|ptcp154|kz1048|hp-roman8"
)
_LOOKED_AT = 200_000  # bytes from which an encoding is guessed
# What Western European texts have beside ASCII. Others have more of cp1252's letters, or other letters in their place.
_WESTERN = re.compile(
    "[\t\n\r\x20-\x7eàâäçéèêëîïôöùûüßñáíóúæœÀÂÄÇÉÈÊËÎÏÔÖÙÛÜÑÁÍÓÚÆŒ¡¿“”‘’„–—…€£«»°§·©®\u00a0]*"
)
_KANA = re.compile("[\u3041-\u30fc]")
_NOT_ASCII = re.compile("[^\x00-\x7f]")


def charset(name: str | None) -> str | None:
    """Python's name of a charset that a file declares; None for an unknown one and for codecs that are no charsets.

    >>> charset("Latin-1"), charset("punycode"), charset("unicode_escape"), charset("no-such")
    ('iso8859-1', None, None, None)
    """
    with suppress(LookupError, ValueError, TypeError):
        codec = codecs.lookup(str(name)[:40]).name if name else ""
        return codec if _CHARSETS.fullmatch(codec) else None
    return None


def decode_text(data: bytes, path: Path) -> tuple[str, str]:
    """The text, and a note if it is not UTF-8.

    A byte order mark, zeros in every second byte, or a charset that the text declares tell the encoding; else Western
    European and Japanese texts are told by their letters, and others by charset-normalizer. Damaged UTF-8 is no other
    encoding.

    Raises `NoTextError`: binary data; or `DataError`: the encoding cannot be told.

    >>> decode_text("Crème brûlée".encode("cp1252"), Path("menu.txt"))
    ('Crème brûlée', 'is no UTF-8, and was read as cp1252')
    """
    encoding = _by_zeros(data[:_LOOKED_AT])
    if encoding is None:
        try:
            return decoded(data, path), ""
        except NoTextError:
            raise
        except DataError as error:
            encoding = next(
                (name for mark, name in _BOMS if data.startswith(mark)), None
            ) or _encoding_of(data)
            if encoding is None:
                missing = (
                    ""
                    if find_spec("charset_normalizer")
                    else '; pip install "chunkadapters[files]" tells encodings'
                )
                raise DataError(f"{error}{missing}") from None
    try:
        return data.decode(encoding), f"is no UTF-8, and was read as {encoding}"
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text, and damaged as {encoding} (byte {error.start}): convert it"
        ) from None


def _by_zeros(data: bytes) -> str | None:
    """UTF-16 without a byte order mark, of a script that needs few high bytes, zero among them."""
    if b"\x00" not in data[:1000] or data.startswith(tuple(mark for mark, _ in _BOMS)):
        return None
    for encoding, high, low in (
        ("utf-16-le", data[1::2], data[::2]),
        ("utf-16-be", data[::2], data[1::2]),
    ):
        is_likely = 0 in high and 0 not in low and len(set(high)) <= 4 < len(set(low))
        text = data.decode(encoding, "replace") if is_likely else ""
        shown = sum(letter.isprintable() or letter.isspace() for letter in text)
        if len(text) > 3 and shown > 0.95 * len(text) and "\ufffd" not in text[:-1]:
            return encoding
    return None


def is_utf8(blocks: Iterable[bytes], *, whole: bool = False) -> bool:
    """Whether a text in UTF-8 may begin with these bytes, the last of which may be half a character; or is `whole`."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with suppress(UnicodeDecodeError):
        for block in blocks:
            decoder.decode(block)
        decoder.decode(b"", final=whole)
        return True
    return False


def _encoding_of(data: bytes) -> str | None:
    text = data.decode("utf-8", "replace")
    if 2 * text.count("\ufffd") <= len(_NOT_ASCII.findall(text)) - 1:
        return None  # damaged UTF-8
    with suppress(UnicodeDecodeError):
        data.decode("utf-8", "surrogatepass")
        return None  # UTF-8 with surrogates
    return _declared(data) or _by_letters(data[:_LOOKED_AT]) or _guessed(data[:_LOOKED_AT])


def _declared(data: bytes) -> str | None:
    match = _DECLARED.search(data[:2048])
    encoding = charset(match[1].decode("ascii")) if match else None
    with suppress(UnicodeDecodeError):
        if encoding is not None:
            data.decode(encoding)
            return encoding
    return None


def _by_letters(data: bytes) -> str | None:
    """Encodings that charset-normalizer confuses with others."""
    for encoding in ("cp932", "euc_jp"):
        text = data.decode(encoding, "ignore")
        kana, foreign = len(_KANA.findall(text)), len(_NOT_ASCII.findall(text))
        if kana > 0.2 * foreign and len(text.encode(encoding, "ignore")) >= len(data) - 2:
            return encoding
    text = data.decode("cp1252", "replace")
    letters = sum(map(str.isalpha, text))
    if _WESTERN.fullmatch(text) and 3 * sum(map(str.isalpha, _NOT_ASCII.findall(text))) <= letters:
        return "cp1252"
    return None


def _guessed(data: bytes) -> str | None:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    enough = len(data) - len(data.translate(None, bytes(range(128, 256)))) > 3
    best = from_bytes(data).best() if enough else None
    return None if best is None else charset(best.encoding)
