"""A document's format (Markdown, HTML, code, a table, prose) from its metadata, its name or its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from chunkcore.boundaries import HTML_PAGE, pairs, words
from chunkcore.boundaries.code import LANGUAGE_OF_ENDING, LANGUAGES
from chunkcore.text import Document

_NAME_KEYS = ("file_path", "file_name", "filename", "path", "source", "url")
_TYPE_KEYS = ("mime_type", "mimetype", "content_type", "format", "file_type", "filetype")
Kind = Literal["markdown", "html", "code", "table", "prose"]
_ENDINGS: dict[str, Kind] = {
    **dict.fromkeys(words("md markdown mdown mdx mkd qmd rmd"), "markdown"),
    **dict.fromkeys(("htm", "html", "xhtml"), "html"),
    **dict.fromkeys(words("csv psv tab tsv"), "table"),
    **dict.fromkeys(words("org tex wiki mediawiki adoc asciidoc rst"), "prose"),
}
_TYPES: dict[str, Kind] = {
    **_ENDINGS,
    "tab-separated-values": "table",
    "prose": "prose",
    "vtt": "prose",
    "rtf": "prose",
}
_LANGUAGES_OF_TYPES = pairs("csrc=c c++src=cpp java-source=java sh=bash")
_PROGRAMS_OF_SITES = words("php pl cgi sh jsp js")  # an address of these shows a page
_LOOKED_AT = 20_000  # code points

_NAMES = words("Dockerfile Makefile")  # of files that have no ending
_ADDRESS = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]*://|www\.)[^/?#]*(?P<path>[^?#]*)")
_PRODUCT = re.compile(r"[A-Z0-9]\w*\.js$")  # "Node.js" is no file
_CODE_LINE = re.compile(r"[;{}):,]$|^(?:#!|//|/\*|import |from |def |class |function |use |<\?)")
_TAGS = re.compile(r"(?i)</(?:p|div|h[1-6]|li|table|tr|td|section|article|main|span|a)\s*>")
_MARKDOWN = re.compile(
    r"(?m)^(?:#{1,6}[ \t]+\S|```|~~~|[ \t]*(?:\|[ \t]*)?:?-{3,}:?[ \t]*\|[-:| \t]*$|\S.*\n(?:={3,}|-{3,})[ \t]*$|> \S)"
)
_WEAK_MARKDOWN = re.compile(
    r"(?m)^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?=\S)(?![* \t]+$)|\]\([^()\s]+\)|\*\*(?!\* )\S"
)


class Format(NamedTuple):
    """A format; code also has a language of `LANGUAGES`."""

    kind: Kind
    language: str = "other"


def format_of(text: str, document: Document | None = None) -> Format:
    r"""The format of a text: from the metadata, else the file name, else the text.

    Metadata keys: ``mime_type``, ``mimetype``, ``content_type``, ``format``, ``file_type``, ``filetype``. File
    names: ``file_path``, ``file_name``, ``filename``, ``path``, ``source``, ``url``, then the id. The address of a page
    that a program writes (``https://example.org/index.php``) and a title ("Intro to Node.js") name no program, unless
    the text looks like code. Of the text, the first 20,000 code points are read; the default is prose.

    >>> format_of("# Tea\n\nTwo kinds."), format_of("Tea", Document("tea.go", "Tea"))
    (Format(kind='markdown', language='other'), Format(kind='code', language='go'))
    """
    stated = None if document is None else _stated(document)
    if stated:
        return stated
    text = text[:_LOOKED_AT]
    if HTML_PAGE.match(text) or (text.lstrip().startswith("<") and len(_TAGS.findall(text)) >= 3):
        return Format("html")
    if _MARKDOWN.search(text) or len(_WEAK_MARKDOWN.findall(text)) >= 3:
        return Format("markdown")
    return Format("prose")


def document_language(document: Document) -> str | None:
    """The language from the metadata key ``language`` or the file name's ending; None without either."""
    stated = document.metadata.get("language")
    if isinstance(stated, str) and stated.lower() in LANGUAGES:
        return stated.lower()
    for ending in _endings(document):
        if ending in LANGUAGE_OF_ENDING:
            return LANGUAGE_OF_ENDING[ending]
    return None


def _stated(document: Document) -> Format | None:
    """What a MIME type says, such as ``text/x-python`` or ``image/svg+xml``, else the name of the file."""
    for key in _TYPE_KEYS:
        stated = document.metadata.get(key)
        if not isinstance(stated, str):
            continue
        mime_type = stated.partition(";")[0].strip().lower()
        kind = mime_type.rpartition("/")[2].removeprefix("x-").lstrip(".")
        for name in (kind, *reversed(kind.split("+"))):
            if name in _TYPES:
                return Format(_TYPES[name])
            language = _LANGUAGES_OF_TYPES.get(name, name)
            if language in LANGUAGES and language != "other":
                return Format("code", language)
    for ending in _endings(document):
        if ending in _ENDINGS:
            return Format(_ENDINGS[ending])
    code = document_language(document)
    return Format("code", code) if code else None


def _endings(document: Document) -> Iterator[str]:
    """The endings of the names that can be a file's; of an address, of its path."""
    for name in (*map(document.metadata.get, _NAME_KEYS), document.id):
        if not isinstance(name, str):
            continue
        address = _ADDRESS.match(name)
        path = name if address is None else str(address["path"])
        file = re.split(r"[/\\]", path)[-1]
        ending = file.lower().rpartition(".")[2]
        is_doubtful = ending in _PROGRAMS_OF_SITES if address else " " in file
        written = file if address else path  # a file of a folder is no product
        is_doubtful |= _PRODUCT.match(written) is not None
        is_format = _ENDINGS.get(ending, "prose") != "prose"  # "csv"
        is_name = "." in file or is_format or file in _NAMES
        if is_name and (not is_doubtful or _looks_like_code(document.text)):
            yield ending


def _looks_like_code(text: str) -> bool:
    rows = [line.strip() for line in text[:_LOOKED_AT].splitlines() if line.strip()]
    code = len([*filter(_CODE_LINE.search, rows)])
    return code > 0.3 * len(rows)
