"""`Piece`: one result of a retriever, as a framework returned it, and the place that its metadata states."""

from __future__ import annotations

from dataclasses import dataclass

from chunkadapters._origin import decode_spans
from chunkcore.document import Span

__all__ = ["Piece", "names", "stated_spans"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One result, as a framework returned it.

    Attributes:
        text: the source text, without what a framework wrote around it.
        score: the retriever's own, higher is better; 0 where there is none.
        document_ids: what may name the source document, the most telling first.
        spans: where in that document the framework's metadata says that it stands.
        derived: whether a model wrote the text; the spans are then the passage that it was written from.
    """

    text: str
    score: float = 0.0
    document_ids: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    derived: bool = False


def names(*candidates: object) -> tuple[str, ...]:
    """Those of the candidates that can name a document, each once."""
    return tuple(dict.fromkeys(each for each in candidates if isinstance(each, str) and each))


def stated_spans(spans: object, start: object, end: object, text: str) -> tuple[Span, ...]:
    """The spans that metadata states: the adapters' own, or a start with an end or the text's length.

    Several spans that were handed down, by somebody's splitter that did not know them, do not have the
    start and the end.
    """
    found = decode_spans(spans)
    if found and (start, end) in ((None, None), (min(found).start, max(each.end for each in found))):
        return found
    if type(start) is not int or start < 0:
        return ()
    stop = end if type(end) is int else start + len(text)
    return (Span(start, stop),) if stop > start else ()
