"""Which texts something is about, as a few digits: what was made from other texts is told, not mixed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from chunkcore.document import Document, Span

__all__ = ["ChangedDocumentsWarning", "documents_digest", "slices_digest", "warn_where_they_differ"]


class ChangedDocumentsWarning(UserWarning):
    """Results that are set side by side are of different texts."""


def documents_digest(documents: Iterable[Document]) -> str:
    """32 hexadecimal digits of all ids and texts, in their order.

    >>> before, after = Document("fox.txt", "The fox naps."), Document("fox.txt", "The fox sleeps.")
    >>> documents_digest([before]) == documents_digest([after])
    False
    """
    digest = blake2b(digest_size=16)
    for document in documents:
        for text in (document.id, document.text):
            _add(digest, text)
    return digest.hexdigest()


def warn_where_they_differ(digests: Iterable[str], message: str) -> None:
    """Give a `ChangedDocumentsWarning` where two of the digests are known and not the same; "" is not known."""
    if len(set(digests) - {""}) > 1:
        warnings.warn(message, ChangedDocumentsWarning, stacklevel=3)


def slices_digest(text: str, spans: Sequence[Span]) -> str:
    """16 hexadecimal digits of what stands at some spans.

    >>> slices_digest("The fox naps.", [Span(4, 7)]) == slices_digest("A red fox naps.", [Span(6, 9)])
    True
    """
    digest = blake2b(digest_size=8)
    for span in spans:
        _add(digest, span.slice(text))
    return digest.hexdigest()


def _add(digest: blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "little") + data)
