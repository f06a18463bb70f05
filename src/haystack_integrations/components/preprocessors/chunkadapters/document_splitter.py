"""The Haystack component that cuts documents with any chunkcore strategy.

It is defined in this namespace because `Pipeline.loads` imports components from ``haystack_integrations``
without being told to trust them, and writes down the module in which a class is defined.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from hashlib import blake2b
from typing import Any, ClassVar

from haystack import Document, component, default_from_dict, default_to_dict, logging

import chunkcore.chunkers  # noqa: F401  # registers the strategies
from chunkadapters._haystack.models import as_model, restored, written
from chunkadapters.configuration import build, one_strategy, watched, workers_for
from chunkadapters.places import DERIVED, Origin, decode_spans, encode_spans, told, unused_id
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Chunk, Span
from chunkcore.document import Document as Source
from chunkcore.errors import OptionError
from chunkcore.models import get_embedder
from chunkcore.spans import intersect

__all__ = [
    "ChunkcoreDocumentSplitter",
    "ClusterSemanticSplitter",
    "LumberSplitter",
    "RecursiveSplitter",
    "SemanticSplitter",
    "origin_of",
    "place",
    "shared",
]

Range = tuple[int, int]


def place(spans: Sequence[Span], prefix: str, several: str) -> dict[str, Any]:
    """Spans as metadata: the first and the last offset, and every span where there are several.

    >>> from chunkcore.document import Span
    >>> place([Span(0, 5), Span(9, 12)], "split_idx_", "spans")
    {'split_idx_start': 0, 'split_idx_end': 12, 'spans': '0-5,9-12'}
    """
    if len(spans) == 1:
        return {f"{prefix}start": spans[0].start, f"{prefix}end": spans[0].end}
    told: dict[str, Any] = {
        f"{prefix}start": min(span.start for span in spans),
        f"{prefix}end": max(span.end for span in spans),
    }
    told[several] = encode_spans(spans)
    return told


def origin_of(meta: Mapping[str, Any], length: int) -> tuple[str, Origin] | None:
    """The document at the root of the chain that a parent belongs to, and where in it the parent stands.

    None where the parent is no chunk. An unknown origin where the metadata do not fit a text of `length`
    code points: where another splitter stood in between, or the text was altered, they speak of another text,
    and no place is better than a wrong one.
    """
    derived = meta.get(DERIVED) is True
    if "root_source_id" in meta:
        spans = decode_spans(meta.get("root_spans"))
        start, end = meta.get("root_idx_start"), meta.get("root_idx_end")
        return meta["root_source_id"], _stated(length, start, end, spans, derived)
    if "source_id" not in meta or "split_idx_start" not in meta:
        return None
    if "spans" in meta:  # handed down by a chunk of several places, whose own root is not known
        return meta["source_id"], Origin.unknown()
    return meta["source_id"], _stated(length, meta["split_idx_start"], meta.get("split_idx_end"), (), derived)


def _stated(length: int, start: object, end: object, spans: Sequence[Span], derived: bool) -> Origin:
    if not isinstance(start, int) or not isinstance(end, int | None):
        return Origin.unknown()
    return Origin.stated(length, start, end, spans, derived=derived)


def shared(left: Sequence[Span], right: Sequence[Span], gap: int) -> list[tuple[Range, Range]]:
    """What two chunks share, each time as a range in the left one's text and one in the right one's.

    A chunk of several spans has their slices as text, joined by `gap` characters.

    >>> from chunkcore.document import Span
    >>> shared([Span(0, 10)], [Span(8, 15)], 1)
    [((8, 10), (0, 2))]
    """
    if len(left) == 1 == len(right):
        if left[0].end <= right[0].start or right[0].end <= left[0].start:
            return []
    elif not intersect(left, right):
        return []
    found = []
    for a, a_shift in _shifts(left, gap):
        for b, b_shift in _shifts(right, gap):
            start, end = max(a.start, b.start), min(a.end, b.end)
            if start < end:
                found.append(((start - a_shift, end - a_shift), (start - b_shift, end - b_shift)))
    return found


def _shifts(spans: Sequence[Span], gap: int) -> list[tuple[Span, int]]:
    """Each span, and what its offsets in the source are over those in the chunk's text."""
    found, position = [], 0
    for span in spans:
        found.append((span, span.start - position))
        position += len(span) + gap
    return found


logger = logging.getLogger(__name__)

# What a chunk says about itself, and chunks that are cut from it must not inherit.
_OF_THE_PARENT = frozenset(
    ["spans", "segments", "_split_overlap", "root_source_id", "root_idx_start", "root_idx_end", "root_spans"]
)


@component
class ChunkcoreDocumentSplitter:
    r"""Splits documents with any chunkcore strategy; every chunk says exactly where it stands in its source.

    The metadata of a chunk are a deep copy of its parent's, and:

    - ``source_id``: the id of the document that was given in, as Haystack's own splitters say it.
    - ``split_id``: the chunk's place among that document's chunks, from 0.
    - ``split_idx_start``, ``split_idx_end``: ``source.content[start:end] == chunk.content``, in code points.
    - ``spans``: ``"0-12,40-55"``, only where a chunk is made of several places; the content is their texts
      joined, and ``split_idx_start`` and ``split_idx_end`` are the first and the last offset.
    - ``page_number``: the page of the chunk's first character that is no form feed, counted from 1 or, where the
      parent has a whole ``page_number``, from that.
    - ``_split_overlap``: as `DocumentSplitter` has it, ``[{"doc_id": neighbour, "range": (start, end)}]``; the range
      is in the characters of the neighbour that ``doc_id`` names. On every chunk where the strategy overlaps.
    - what the strategy tells: ``headings`` (as ``"Tea > Green tea"``), ``language``, ``fallback`` and the like;
      ``context``, where one was written about the chunk, for an embedder's ``meta_fields_to_embed=["context"]``; and
      ``segments`` (``"0-12;12-30"``), where parts are searched on their own. Where the document itself has
      metadata of such a name, they stay, and the chunk's begins with ``chunk_``.
    - ``derived``: true, only where a model wrote the text; the offsets are then those of the passage that it was
      written from, and no overlap is told.
    - ``root_source_id``, ``root_idx_start``, ``root_idx_end`` (and ``root_spans``): where the chunk stands in the
      document at the root of a chain of splitters. Where the parent is a chunk that says its own place
      (``source_id`` and ``split_idx_start``), and then as right as what it says; and on chunks of several places.

    Ids are the same in every run: of source id, strategy with its options, spans and content, not of metadata.

    Args:
        chunker: a chunker, or a spec string such as ``"recursive:size=200,overlap=20"``.
        strategy: instead of it, a strategy's name; ``recursive`` when neither is given.
        options: the strategy's options; ``chunk_size`` and ``chunk_overlap`` are understood as well.
            Where a strategy takes a model, Haystack's embedders and chat generators are welcome; they are written into
            YAML as Haystack writes them, their keys as the names of environment variables.
        fit_to: the model that is to embed the chunks, as Haystack's embedder, a chunkcore one or its name: a size that
            is left out is 60 % of what it reads, in its own tokens, and a `TruncationWarning` tells how many chunks,
            and how many of its tokens, it would cut off.

    Raises:
        OptionError: a `ValueError`: no such strategy or option, a value out of range, or options given twice.

    >>> from haystack import Document
    >>> splitter = ChunkcoreDocumentSplitter(strategy="recursive", options={"size": 3, "counter": "words"})
    >>> chunks = splitter.run([Document(content="One two three. One two three.")])["documents"]
    >>> [(chunk.meta["split_idx_start"], chunk.meta["split_idx_end"]) for chunk in chunks]
    [(0, 14), (15, 29)]
    """

    def __init__(
        self,
        chunker: Chunker | str | None = None,
        *,
        strategy: str | None = None,
        options: dict[str, Any] | None = None,
        fit_to: Any = None,
    ) -> None:
        if not isinstance(options, dict | None):
            raise OptionError(f"options is a dictionary, got {type(options).__name__}: {{'name': value, ...}}")
        self._fit_to = None if fit_to is None else get_embedder(as_model(restored(fit_to)))
        given = {name: restored(value) for name, value in (options or {}).items()}
        self._chunker = build(chunker, strategy, given, self._fit_to, as_model)
        self._warm = False

    @property
    def chunker(self) -> Chunker:
        """What cuts."""
        return self._chunker

    @property
    def strategy(self) -> str:
        """The strategy's name."""
        return self.chunker.name

    @property
    def options(self) -> dict[str, Any]:
        """All of the strategy's options as plain values, Haystack's own components as they describe themselves.

        Raises:
            OptionError: an option holds an object that has no name to be built from again.
        """
        options = self.chunker.to_dict()
        del options["strategy"]
        return {name: written(getattr(self.chunker, name), value) for name, value in options.items()}

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values; every option is written out, so that other defaults change nothing.

        Raises:
            OptionError: the strategy is not registered, or an option cannot be written down.
        """
        if not self.strategy:
            raise OptionError(
                f"{type(self.chunker).__qualname__} has no name to be built from again; "
                "decorate it with @chunkcore.strategies.register"
            )
        for name, value in self.options.items():
            if isinstance(value, str) and value.startswith("function:"):
                raise OptionError(f"{name} is a function, which cannot be written down: name a strategy without one")
        # A component that fits no model is written as it always was.
        fit_to = {} if self._fit_to is None else {"fit_to": written(self._fit_to, self._fit_to.name)}
        return default_to_dict(self, strategy=self.strategy, options=self.options, **fit_to)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreDocumentSplitter:
        """The component that `to_dict` described.

        Raises:
            DeserializationError: an option describes a component of a module that Haystack was not told to trust.
        """
        return default_from_dict(cls, data)

    def warm_up(self) -> None:
        """Load the tokenizer, and every model among the options that can be warmed up. Once."""
        if self._warm:
            return
        self.chunker.token_counter.boundaries("warm")
        for name in self.chunker.option_names():
            warm_up = getattr(getattr(self.chunker, name), "warm_up", None)
            if callable(warm_up):
                warm_up()
        self._warm = True

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Split documents.

        Args:
            documents: the documents, with text as content. One with empty content is left out, with a warning.

        Returns:
            ``{"documents": chunks}``, in the documents' order.

        Raises:
            TypeError: not a list of `Document`.
            ValueError: a document has no text (``content is None``).
        """
        _check(documents)
        self.warm_up()
        kept = [document for document in documents if _has_text(document)]
        # Strategies may read metadata: of which format or language a text is.
        sources = [Source(document.id, document.content or "", document.meta) for document in kept]
        chunked = self.chunker.chunk_each(sources, workers=workers_for(self.chunker, len(sources)))
        pairs = zip(kept, watched(chunked, self._fit_to), strict=True)
        return {"documents": [split for document, chunks in pairs for split in self._documents(document, chunks)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """`run` in a thread: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.run, documents)

    def _documents(self, document: Document, chunks: list[Chunk]) -> list[Document]:
        """The chunks of a document as Haystack's documents."""
        taken: set[str] = set()
        ids = [_id(chunk, taken) for chunk in chunks]
        pages = _pages(document, chunks)
        overlaps = _overlaps(self.chunker, chunks, ids)
        given = _handed_down(document.meta)
        parent_meta = _copier(given)
        chained = origin_of(document.meta, len(document.content or ""))
        root_id, origin = chained or (document.id, Origin.at(0))
        parent = Origin.at(0)
        found = []
        for chunk, name, page, overlap in zip(chunks, ids, pages, overlaps, strict=True):
            meta = parent_meta()
            meta |= told(chunk, given, parent)
            meta["source_id"] = document.id
            meta["split_id"] = chunk.index
            meta |= place(chunk.spans, "split_idx_", "spans")
            meta["page_number"] = page
            if overlap is not None:
                meta["_split_overlap"] = overlap
            root = origin.place(chunk.spans)
            if root and (chained or len(root) > 1):
                meta |= {"root_source_id": root_id, **place(root, "root_idx_", "root_spans")}
            found.append(Document(id=name, content=chunk.text, meta=meta))
        return found


def _has_text(document: Document) -> bool:
    if document.content:
        return True
    logger.warning("Document ID {doc_id} has an empty content. Skipping this document.", doc_id=document.id)
    return False


def _check(documents: object) -> None:
    if not isinstance(documents, list):
        raise TypeError(
            f"ChunkcoreDocumentSplitter expects a list of Documents as input, got {type(documents).__name__}"
        )
    for position, document in enumerate(documents):
        if not isinstance(document, Document):
            raise TypeError(
                "ChunkcoreDocumentSplitter expects a list of Documents as input, "
                f"got {type(document).__name__} at place {position}"
            )
        if document.content is None:
            raise ValueError(
                "ChunkcoreDocumentSplitter only works with text documents, but the content of document ID "
                f"{document.id} is None; convert it to text first"
            )


def _id(chunk: Chunk, taken: set[str]) -> str:
    """64 hexadecimal digits, as many as Haystack's ids have.

    Haystack hashes content and metadata: that fails on unpaired surrogates, and differs from run to run
    where metadata hold a set or an object. An edited text must still get a new id under an old name, or
    a store that skips duplicates would keep the old text. Two chunks of a document can have the same span,
    where an overlap is stripped of its white space; their ids differ.
    """
    named = f"{unused_id(chunk.id, taken)}{len(chunk.context)}:{chunk.context}{chunk.text}"
    return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _handed_down(meta: dict[str, Any]) -> dict[str, Any]:
    """A document's metadata without what a chunk says about its own place."""
    if "split_idx_start" not in meta:
        return meta
    return {key: value for key, value in meta.items() if key not in _OF_THE_PARENT}


def _copier(meta: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """What gives a deep copy of a parent's metadata each time; a plain copy where nothing inside can change."""
    if all(value is None or isinstance(value, str | int | float) for value in meta.values()):
        return meta.copy
    return lambda: deepcopy(meta)


def _pages(document: Document, chunks: Sequence[Chunk]) -> list[int]:
    """The page on which each chunk begins: of its first character that is no form feed, as Haystack counts.

    A parent's own page number stands for its first such character too, so its leading form feeds are
    in that number already.
    """
    text = document.content or ""
    first = document.meta.get("page_number")
    if not isinstance(first, int) or isinstance(first, bool):
        first = 1
    else:
        first -= _leading_breaks(text)
    if "\f" not in text:
        return [first] * len(chunks)
    breaks = [place for place, character in enumerate(text) if character == "\f"]
    return [
        first + bisect_left(breaks, chunk.spans[0].start) + (0 if chunk.derived else _leading_breaks(chunk.text))
        for chunk in chunks
    ]


def _leading_breaks(text: str) -> int:
    """How many form feeds stand before the first other character; none where there is no other."""
    leading = len(text) - len(text.lstrip("\f"))
    return leading if leading < len(text) else 0


def _overlaps(chunker: Chunker, chunks: Sequence[Chunk], ids: Sequence[str]) -> Sequence[list[dict[str, Any]] | None]:
    """Each chunk's ``_split_overlap``; None throughout where the strategy does not overlap."""
    found: list[list[dict[str, Any]]] = [[] for _ in chunks]
    for i in range(1, len(chunks)):
        if chunks[i - 1].derived or chunks[i].derived:
            continue  # ranges are in the chunks' characters, and those are not the source's
        for before, here in shared(chunks[i - 1].spans, chunks[i].spans, len(chunker.separator)):
            found[i].append({"doc_id": ids[i - 1], "range": before})
            found[i - 1].append({"doc_id": ids[i], "range": here})
    configured = getattr(chunker, "overlap", 0) != 0  # a number, or a semantic one
    return found if configured or any(found) else [None] * len(chunks)


class _Named(ChunkcoreDocumentSplitter):
    """One strategy, which needs no naming; YAML names it all the same."""

    _own: ClassVar[str]

    def __init__(
        self, *, strategy: str | None = None, options: dict[str, Any] | None = None, fit_to: Any = None
    ) -> None:
        super().__init__(strategy=one_strategy(self, self._own, strategy), options=options, fit_to=fit_to)


@component
class RecursiveSplitter(_Named):
    """The strategy ``recursive``: separators from large to small; `ChunkcoreDocumentSplitter` tells the rest.

    >>> from haystack import Document
    >>> splitter = RecursiveSplitter(options={"size": 3, "counter": "words"})
    >>> len(splitter.run([Document(content="One two three. One two three.")])["documents"])
    2
    """

    _own = "recursive"


@component
class SemanticSplitter(_Named):
    """The strategy ``breakpoint``, known as embedding-based splitting: cuts where neighbouring sentences differ most.

    >>> SemanticSplitter(options={"max_size": 200, "embedder": "all-MiniLM-L6-v2"}).strategy
    'breakpoint'
    """

    _own = "breakpoint"


@component
class ClusterSemanticSplitter(_Named):
    """The strategy ``cluster_semantic`` of the Chroma report: chunks of the most similarity inside, up to ``max_size``.

    >>> ClusterSemanticSplitter(options={"max_size": 200, "embedder": "all-MiniLM-L6-v2"}).chunker.max_size
    200
    """

    _own = "cluster_semantic"


@component
class LumberSplitter(_Named):
    """The strategy ``lumber``, known as LumberChunker: a language model says where the content changes.

    >>> LumberSplitter(options={"llm": "openai:qwen3:8b@http://localhost:11434/v1"}).strategy
    'lumber'
    """

    _own = "lumber"
