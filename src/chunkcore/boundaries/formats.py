"""A document's format (Markdown, HTML, code, a table, prose) from its metadata, its name or its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from chunkcore.boundaries import HTML_PAGE
from chunkcore.boundaries.code import LANGUAGES, language_of
from chunkcore.text import Document

_NAME_KEYS = ("file_path", "file_name", "filename", "path", "source", "url")
_TYPE_KEYS = ("mime_type", "mimetype", "content_type", "format")
_ENDINGS: dict[str, Literal["markdown", "html", "table"]] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mdx", "mkd", "qmd", "rmd"), "markdown"),
    **dict.fromkeys(("htm", "html", "xhtml"), "html"),
    **dict.fromkeys(("csv", "tsv"), "table"),
}
_LOOKED_AT = 20_000  # code points

_TAGS = re.compile(
    r"</(?:p|div|h[1-6]|li|table|tr|td|section|article|main|span|a)\s*>", re.IGNORECASE
)
_MARKDOWN = re.compile(
    r"^(?:#{1,6}[ \t]+\S|```|~~~|[ \t]*(?:\|[ \t]*)?:?-{3,}:?[ \t]*\|[-:| \t]*$|\S.*\n(?:={3,}|-{3,})[ \t]*$|> \S)",
    re.MULTILINE,
)
_WEAK_MARKDOWN = re.compile(
    r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S|\]\([^()\s]+\)|\*\*\S", re.MULTILINE
)


class Format(NamedTuple):
    """A format; code also has a language of `LANGUAGES`."""

    kind: Literal["markdown", "html", "code", "table", "prose"]
    language: str = "other"


def format_of(text: str, document: Document | None = None) -> Format:
    r"""The format of a text: from the metadata, else the file name, else the text.

    Metadata keys: ``mime_type``, ``mimetype``, ``content_type``, ``format``. File names: ``file_path``, ``file_name``,
    ``filename``, ``path``, ``source``, ``url``, then the id. Of the text, the first 20,000 code points are read; the
    default is prose.

    >>> format_of("# Tea\n\nTwo kinds."), format_of("Tea", Document("tea.go", "Tea"))
    (Format(kind='markdown', language='other'), Format(kind='code', language='go'))
    """
    if document is not None:
        for key in _TYPE_KEYS:
            stated = document.metadata.get(key)
            if isinstance(stated, str):
                for kind in ("markdown", "html"):
                    if kind in stated.lower():
                        return Format(kind)
                if stated == "prose":
                    return Format("prose")
        for name in _names(document):
            if named := _ENDINGS.get(name.lower().rpartition(".")[2]):
                return Format(named)
        if language := document_language(document):
            return Format("code", language)
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
    return next(filter(None, map(language_of, _names(document))), None)


def _names(document: Document) -> Iterator[str]:
    for key in _NAME_KEYS:
        if isinstance(name := document.metadata.get(key), str):
            yield name
    yield document.id
