"""`join_pages`: what a framework's loader read page by page, as one document that knows its pages.

Works on LangChain's, LlamaIndex' and Haystack's documents by their attributes: no framework is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from chunkcore.document import Document, Mark, Span
from chunkcore.errors import DataError

_PAGE_KEYS = ("page", "page_label", "page_number")
_NAMES = ("source", "file_path", "file_name", "path", "url")


class _Page(NamedTuple):
    source: str
    text: str
    metadata: Mapping[Any, Any]
    number: int | None = None
    label: str = ""


def join_pages(documents: Any, *, separator: str = "\n") -> Document:
    r"""One chunkcore `Document` of a file's pages, with page marks, so that chunks cross pages and still name them.

    Args:
        documents: LangChain's documents of a file (``page`` from 0, ``page_label`` or ``page_number``), LlamaIndex'
            (``page_label``), Haystack's (``page_number``, or form feeds in one document), or a ``DoclingDocument``,
            whose text becomes Markdown with page, heading and table marks.
        separator: between pages.

    The id is the pages' ``source``, ``file_path`` or ``file_name``; the metadata are those that all pages share.

    Raises:
        DataError: no text, several sources (see `join_pages_by_source`), or not documents of these kinds.

    >>> from types import SimpleNamespace
    >>> page = lambda text, number: SimpleNamespace(page_content=text, metadata={"source": "a.pdf", "page": number})
    >>> joined = join_pages([page("Black", 0), page("tea", 1)])
    >>> joined.text, joined.pages_of(Span(3, 7)), joined.id
    ('Black\ntea', (1, 2), 'a.pdf')
    """
    joined = join_pages_by_source(documents, separator=separator)
    if len(joined) > 1:
        names = ", ".join(repr(document.id) for document in joined[:3])
        raise DataError(f"expected the pages of one file, got {len(joined)} ({names}, ...): use join_pages_by_source")
    return joined[0]


def join_pages_by_source(documents: Any, *, separator: str = "\n") -> list[Document]:
    """`join_pages` for the pages of several files, in the order of their first pages."""
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
        raise DataError(f"expected a list of documents, got {type(documents).__name__}")
    sources: dict[str, list[_Page]] = {}
    for place, document in enumerate(documents):
        for page in _pages(document, place):
            sources.setdefault(page.source, []).append(page)
    if not sources:
        raise DataError("expected at least one document, got none")
    return [_joined(source, pages, separator) for source, pages in sources.items()]


def _pages(document: Any, place: int) -> list[_Page]:
    metadata = getattr(document, "metadata", None)
    if not isinstance(metadata, Mapping):
        metadata = getattr(document, "meta", None)
    text = next((x for x in (getattr(document, key, None) for key in ("page_content", "text", "content")) if x), "")
    if not isinstance(metadata, Mapping) or not isinstance(text, str):
        raise DataError(
            f"document {place} is a {type(document).__name__}: expected one of LangChain's, LlamaIndex' or "
            "Haystack's documents"
        )
    name = next((metadata[key] for key in _NAMES if isinstance(metadata.get(key), str) and metadata[key]), "")
    is_page = any(key in metadata for key in _PAGE_KEYS)
    source = name or ("document" if is_page else str(getattr(document, "id", None) or f"document-{place}"))
    first = metadata.get("page_number")
    if "\f" in text and hasattr(document, "meta"):
        begin = first if type(first) is int else 1
        return [_Page(source, part, metadata, begin + turn) for turn, part in enumerate(text.split("\f"))]
    label = str(metadata.get("page_label") or "")
    if type(first) is int:
        return [_Page(source, text, metadata, first, label)]
    if type(metadata.get("page")) is int:
        return [_Page(source, text, metadata, metadata["page"] + 1, label)]
    if not label and type(first) is str:
        label = first
    return [_Page(source, text, metadata, int(label) if label.isdecimal() and label.isascii() else None, label)]


def _joined(source: str, pages: Sequence[_Page], separator: str) -> Document:
    texts: list[str] = []
    marks: list[Mark] = []
    end = number = 0
    # Elements of one page, as some loaders give, are one page.
    for (stated, label), group in groupby(pages, key=lambda page: (page.number, page.label)):
        text = separator.join(page.text for page in group if page.text)
        number = number + 1 if stated is None else stated
        if not text.strip():
            continue  # a picture: it has a number and no text
        start = end + len(separator) if texts else 0
        end = start + len(text)
        texts.append(text)
        marks.append(Mark("page", Span(start, end), {"number": number, **({"label": label} if label else {})}))
    if not texts:
        raise DataError(f"the pages of {source!r} have no text: they may be pictures; recognise their text first (OCR)")
    first, *others = [page.metadata for page in pages]
    shared = {
        key: value
        for key, value in first.items()
        if key not in _PAGE_KEYS and all(key in other and other[key] == value for other in others)
    }
    return Document(source, separator.join(texts), shared, tuple(marks))
