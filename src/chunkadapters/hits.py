"""Hits: what a retriever returned, the documents that they name, late vectors, and segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from chunkadapters.places import SEGMENTS, Origin, decode_segments
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import DataError
from chunkcore.models import Embedder, LateEmbedder

SEPARATOR = "\n"


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a retriever, as its framework returned it.

    Attributes:
        text: the source text, without anything that the framework wrote around it.
        score: the retriever's score, higher is better; 0 if there is none.
        document_ids: candidate names of the source document, the most telling first.
        spans: the place that the metadata states.
        derived: whether a model wrote the text; `spans` are then the passage it was written from.
        document: the document that `spans` refer to; "" if nothing names it.
    """

    text: str
    score: float = 0.0
    document_ids: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    derived: bool = False
    document: str = ""

    def parts(self) -> list[tuple[Span, str]]:
        """The spans with their texts; [] if the text does not fit them or is derived."""
        if not self.spans or not self.document or self.derived:
            return []
        start, end = min(self.spans).start, max(span.end for span in self.spans)
        origin = Origin.stated(len(self.text), start, end, self.spans)
        if origin.shift is not None:
            return [(Span(start, end), self.text)]
        return [(span, self.text[offset : offset + len(span)]) for offset, span in origin.parts or ()]


def names(*candidates: object) -> tuple[str, ...]:
    """The non-empty strings among the candidates, each once."""
    return tuple(dict.fromkeys(name for name in candidates if isinstance(name, str) and name))


# ---- Documents by the names that hits have for them


class DocumentNames:
    """Finds documents by names: the id, else a path that ends as the id does, with or without suffix.

    A path that ends as several ids do names no document.

    >>> names = DocumentNames(["files/tea.md", "ice.md", "old/ice.md"])
    >>> names.matching(["/srv/files/tea.md"]), names.matching(["ice"]), names.matching(["other/tea.md", "ice.md"])
    (['files/tea.md'], [], ['ice.md'])
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = dict.fromkeys(ids)
        self._by_name: dict[str, list[str]] = {}
        for document_id in self._ids:
            path = _path(document_id)
            for name in {path.name, path.stem}:
                self._by_name.setdefault(name, []).append(document_id)

    def matching(self, candidates: Iterable[str], *, loosely: bool = False) -> list[str]:
        """The documents that the candidates name, in the candidates' order, exact ids first.

        `loosely`: a file's name is enough, whatever its folders and suffix.
        """
        names = list(candidates)
        exact = [name for name in names if name in self._ids]
        by_path = [self._by_path(name, loosely) for name in names if name not in self._ids]
        return list(dict.fromkeys([*exact, *filter(None, by_path)]))

    def _by_path(self, name: str, loosely: bool) -> str | None:
        path = _path(name)
        for key in (path.name, path.stem):
            same = [
                document_id
                for document_id in self._by_name.get(key, ())
                if loosely or _same_file(path, _path(document_id))
            ]
            if same:
                return same[0] if len(same) == 1 else None
        return None


def _path(name: str) -> PurePosixPath:
    return PurePosixPath(name.replace("\\", "/"))


def _same_file(one: PurePosixPath, other: PurePosixPath) -> bool:
    """Whether the shorter path is the end of the longer one; one of them may lack the suffix."""
    depth = min(len(one.parts), len(other.parts)) - 1
    folders = one.parts[:-1][-depth:] == other.parts[:-1][-depth:] if depth > 0 else True
    return folders and (one.name in (other.name, other.stem) or other.name == one.stem)


# ---- Late chunking


def late_vectors(
    chunks: Sequence[Hit], texts: Mapping[str, str], model: LateEmbedder | Embedder | str
) -> list[list[float]]:
    """One vector a chunk, in the context of its whole document.

    Args:
        chunks: with their documents and spans.
        texts: the documents' texts by name.
        model: a model with token vectors; see `LateEmbedder`.

    Raises:
        DataError: a chunk states no place, or its text is not at that place in one of the documents.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or gave a wrong answer, twice.
    """
    late = model if isinstance(model, LateEmbedder) else LateEmbedder(model)
    for chunk in chunks:
        _check(chunk, texts)
    pieces = [Chunk(chunk.document, number, chunk.spans, chunk.text, 0) for number, chunk in enumerate(chunks)]
    documents = [Document(name, text) for name, text in texts.items()]
    vectors: list[list[float]] = late.embed_chunks(documents, pieces).tolist()
    return vectors


def _check(chunk: Hit, texts: Mapping[str, str]) -> None:
    shown = f"the chunk that begins with {chunk.text[:40]!r}"
    if not chunk.document or not chunk.spans:
        raise DataError(f"{shown} does not say where in its document it stands: cut it with chunkadapters' splitter")
    if chunk.document not in texts:
        raise DataError(
            f"{shown} is of {chunk.document!r}, which is not among the documents: give those it was cut from"
        )
    text = texts[chunk.document]
    if any(span.slice(text) != part for span, part in chunk.parts()):
        raise DataError(f"{shown} does not stand where it says in {chunk.document!r}: give the text it was cut from")


# ---- Segments: small texts to search, for chunks to answer with


def segments_of(chunk: Hit, metadata: Mapping[Any, Any]) -> list[tuple[tuple[Span, ...], str]]:
    """The place and text of each of a chunk's segments; the chunk itself if it has none.

    >>> chunk = Hit("Tea is hot. It boils", spans=(Span(10, 30),), document="d")
    >>> segments_of(chunk, {"segments": "10-21;22-30"})[1]
    ((Span(start=22, end=30),), 'It boils')
    """
    parts = chunk.parts()
    segments = []
    for segment in decode_segments(metadata.get(SEGMENTS)) if parts else ():
        slices = [
            text[max(span.start, part.start) - part.start : min(span.end, part.end) - part.start]
            for span in segment
            for part, text in parts
            if max(span.start, part.start) < min(span.end, part.end)
        ]
        if slices:
            segments.append((segment, SEPARATOR.join(slices)))
    return segments or [(chunk.spans, chunk.text)]
