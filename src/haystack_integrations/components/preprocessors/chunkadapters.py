"""chunkcore's chunkers, exact splitters and index updates as Haystack components.

They are in this namespace because `Pipeline.loads` trusts ``haystack_integrations`` by default, and YAML holds the
module that defines a class.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from haystack import Document, component
from haystack.core.component import Component
from haystack.core.serialization import component_to_dict
from haystack.document_stores.types import DocumentStore
from typing_extensions import Unpack

from chunkadapters.configuration import (
    DEFAULT_CHUNKER,
    ChunkerOptions,
    build,
    chunkable,
    chunks_of,
    embedder_of,
    merged,
    options_of,
)
from chunkadapters.exact import SplitPiece, Unplaced, placed_records
from chunkadapters.haystack.documents import (
    KEYS,
    OF_ONE_CHUNK,
    ROOT,
    DocumentLists,
    Serialized,
    Values,
    check_documents,
    core_document,
    has_text,
    root_of,
    takes_and_gives_documents,
    warm_up,
)
from chunkadapters.haystack.models import restored, written
from chunkadapters.places import (
    CONTEXT,
    WHITE_SPACE,
    WHOLE,
    Metadata,
    MetadataLike,
    Origin,
    chunk_place,
    chunk_records,
    inherited,
    with_white_space,
)
from chunkcore.chunkers import Chunker
from chunkcore.errors import OptionError
from chunkcore.locating import whole_number
from chunkcore.plain import digest, plain
from chunkcore.retrieval.where import own_copy
from chunkcore.text import Chunk, Span
from chunkcore.text import Document as CoreDocument


@component
class ChunkcoreDocumentSplitter(Serialized):
    r"""Splits documents with any chunkcore chunker; every chunk states its exact place in its source.

    A chunk's metadata are a deep copy of its parent's, and:

    - ``source_id``: the id of the incoming document, as in Haystack's own splitters.
    - ``split_id``: the chunk's position among that document's chunks, from 0.
    - ``split_idx_start``, ``split_idx_end``: ``source.content[start:end] == chunk.content``, in code points.
    - ``spans``: ``"0-12,40-55"``, only on a chunk of several places; the content is their texts, joined, and
      ``split_idx_start`` and ``split_idx_end`` are the first and the last offset.
    - ``page_number``: the page of the chunk's first character that is no form feed, counted from 1 or from the
      parent's whole ``page_number``; or, of a document from `from_document`, by its marks, with ``pages`` (``"3, 4"``).
    - the chunker's metadata: ``headings`` (``"Tea > Green tea"``), ``language``, ``fallback``; ``context``, text
      written about the chunk, for an embedder's ``meta_fields_to_embed=["context"]``. If the
      document has the key, the chunk's gets the prefix ``chunk_``.
    - ``white_space``: the white space between the chunk and the next one, if the content does not end with it.
    - ``derived``: true if a model wrote the text; the offsets are then those of the passage it was written from.
    - ``root_source_id``, ``root_idx_start``, ``root_idx_end`` (and ``root_spans``): the place in the first document of
      a chain of splitters, if the parent is a chunk that states its own place (``source_id`` and ``split_idx_start``);
      also on chunks of several places.

    Ids are the same in every run: of source id, chunker with its options, spans and content, not of metadata.

    Args:
        chunker: a chunker, its name, or a spec string such as ``"recursive:size=200,overlap=20"``.
        options: the chunker's options, here or as keywords; ``chunk_size`` and ``chunk_overlap`` work too. Haystack's
            embedders and chat generators work as options; YAML holds them as Haystack writes them.
        fit_to: the model that will embed the chunks (Haystack's embedder, a chunkcore one or its name). It sets a
            missing size to 60 % of its token limit, in its tokens; a `TruncationWarning` counts what it would cut off.
        keep_white_space: a chunk keeps the white space before the next one, which Haystack's `SentenceWindowRetriever`
            needs: it joins neighbours' texts by nothing. A chunk may exceed a maximum by that white space.

    Raises `OptionError` (a `ValueError`): unknown chunker or option, a value out of range, or options given twice.

    >>> from haystack import Document
    >>> splitter = ChunkcoreDocumentSplitter("recursive", options={"size": 3, "counter": "words"})
    >>> chunks = splitter.run([Document(content="One two three. One two three.")])["documents"]
    >>> [(chunk.meta["split_idx_start"], chunk.meta["split_idx_end"]) for chunk in chunks]
    [(0, 15), (15, 29)]
    """

    def __init__(
        self,
        chunker: Chunker | str = DEFAULT_CHUNKER,
        *,
        options: Mapping[str, object] | None = None,
        fit_to: object = None,
        keep_white_space: bool = True,
        **more: Unpack[ChunkerOptions],
    ) -> None:
        values = {name: restored(value) for name, value in merged(options, more).items()}
        self._fit_to = embedder_of(restored(fit_to), "haystack")
        self.chunker = build(chunker, values, self._fit_to, "haystack")
        self.keep_white_space = keep_white_space

    @property
    def options(self) -> dict[str, Any]:
        """The chunker's options as plain values, Haystack's components serialised. Raises `OptionError`."""
        options = options_of(self.chunker).items()
        return {name: written(getattr(self.chunker, name), value) for name, value in options}

    def _arguments(self) -> Values:
        """All options, so that changed defaults do not change a stored pipeline."""
        options = self.options
        arguments: Values = {"chunker": self.chunker.name, "options": options}
        for name, value in options.items():
            if str(value).startswith("function:"):
                raise OptionError(
                    f"{name} is a function, which cannot be written down: name a chunker without one"
                )
        if self._fit_to is not None:
            arguments["fit_to"] = written(self._fit_to, self._fit_to.name)
        if not self.keep_white_space:
            arguments["keep_white_space"] = False
        return arguments

    def warm_up(self) -> None:
        self.chunker.token_counter.boundaries("warm")
        for name in self.chunker.option_names():
            warm_up(getattr(self.chunker, name))

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> DocumentLists:
        """Split documents. Returns ``{"documents": chunks}``, in the documents' order.

        Documents with empty content are skipped with a warning. Raises `TypeError`: not a list of `Document`; or
        `ValueError`: a document has no text (``content is None``).
        """
        check_documents(self, documents)
        for document in documents:
            if document.content is None:
                raise ValueError(
                    "ChunkcoreDocumentSplitter only works with text documents, but the content of document ID "
                    f"{document.id} is None; convert it to text first"
                )
        self.warm_up()
        sources = [core_document(document) for document in documents if has_text(document)]
        shown = [chunkable(source, is_chunk=KEYS.start in source.metadata) for source in sources]
        chunked = chunks_of(self.chunker, shown, self._fit_to)
        taken: set[str] = set()
        split = []
        for source, chunks in zip(sources, chunked, strict=True):
            split += self._documents(source, chunks, taken)
        return {"documents": split}

    def _documents(
        self, source: CoreDocument, chunks: Sequence[Chunk], taken: set[str]
    ) -> list[Document]:
        chain = root_of(source)
        # What stands between the spans of a chunk that is cut again has no place in the root.
        if self.keep_white_space and len(chain[1].parts) < 2:
            chunks = _with_white_space(source.text, chunks)
        is_chunk = KEYS.start in source.metadata
        parent = inherited(source.metadata, of_a_chunk=is_chunk, drop=OF_ONE_CHUNK)
        records = chunk_records(source, chunks, WHOLE, parent, KEYS, taken)
        pages, roots = page_numbers(source, chunks), root_places(chain, chunks)
        context = f"chunk_{CONTEXT}" if CONTEXT in parent else CONTEXT
        split: list[Document] = []
        for (text, chunk_id, record), page, root in zip(records, pages, roots, strict=True):
            meta = own_copy(parent)
            meta |= {"source_id": source.id, "split_id": len(split), "page_number": page}
            meta |= record | root
            # 64 digits of what it says: Haystack's own ids fail on surrogates and differ between runs. The text counts
            # because a store that skips duplicates would keep the old text of an edited document.
            said = str(record.get(context, ""))
            new_id = digest(f"{chunk_id}{len(said)}:{said}{text}", 32)
            split.append(Document(id=new_id, content=text, meta=meta))
        return split


def root_places(chain: tuple[str, Origin], chunks: Sequence[Chunk]) -> Iterator[Metadata]:
    """Each chunk's place in the first document of a chain of splitters; {} if there is no chain, or it is not known."""
    root_id, origin = chain
    for chunk in chunks:
        root = chunk_place(chunk, origin)
        place = {}
        if root and (origin is not WHOLE or len(root) > 1):
            place = {"root_source_id": root_id, **ROOT.write(root)}
        yield place


def _with_white_space(text: str, chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks with the white space up to the next one; the first one also with leading white space."""
    extended: list[Chunk] = []
    for chunk, gap in with_white_space(text, chunks):
        if len(chunk.spans) == 1 and not chunk.derived:
            start, end = chunk.start, chunk.end + len(gap)
            if not extended and text[:start].isspace():
                start = 0
            chunk = replace(chunk, spans=(Span(start, end),), text=text[start:end])
        extended.append(chunk)
    return extended


def page_numbers(source: CoreDocument, chunks: Sequence[Chunk]) -> list[int]:
    """The page of each chunk's first character that is no form feed, as Haystack counts.

    A parent's page number is that of its first such character, and so includes its leading form feeds.
    """
    text = source.text
    first = 1
    stated = whole_number(source.metadata.get("page_number"))
    if stated is not None:
        first = stated - _leading_breaks(text)
    if "\f" not in text:
        return [first] * len(chunks)
    breaks = [place for place, character in enumerate(text) if character == "\f"]
    pages = []
    for chunk in chunks:
        page = first + bisect_left(breaks, chunk.spans[0].start)
        if not chunk.derived:
            page += _leading_breaks(chunk.text)
        pages.append(page)
    return pages


def _leading_breaks(text: str) -> int:
    leading = len(text) - len(text.lstrip("\f"))
    return leading if leading < len(text) else 0


@component
@dataclass(eq=False)
class ChunkcoreExactSplitter(Serialized):
    """Runs a splitter component, and writes each chunk's place: what `exact` makes of Haystack's splitters.

    The chunks are the splitter's, with their ids and metadata. Right are ``split_idx_start``, ``split_idx_end``,
    ``page_number``, ``root_source_id`` and its places, and ``_split_overlap``, as in `ChunkcoreDocumentSplitter`. A
    chunk whose place is not known has none of the places: its text is not in the document (``located`` "unlocated",
    ``derived`` true), or has several equally good places ("ambiguous"). A chunk of a chunk, as of a
    `HierarchicalDocumentSplitter`, is placed in that chunk, its ``source_id``.

    Args:
        splitter: a component that takes and gives documents.
        unplaced: "mark" chunks that are not in the text, or "refuse" them with a `DataError`.

    >>> from haystack.components.preprocessors import DocumentSplitter
    >>> splitter = ChunkcoreExactSplitter(DocumentSplitter(split_by="word", split_length=2))
    >>> [chunk.meta["split_idx_end"] for chunk in splitter.run([Document(content="one two one")])["documents"]]
    [8, 11]
    """

    splitter: Component
    unplaced: Unplaced = "mark"

    def _arguments(self) -> Values:
        # Some of Haystack's own components have no `to_dict`.
        splitter = component_to_dict(self.splitter, "splitter")
        return {"splitter": splitter, "unplaced": self.unplaced}

    def warm_up(self) -> None:
        warm_up(self.splitter)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> DocumentLists:
        """Split documents. Returns ``{"documents": chunks}``, in the documents' order. Raises `TypeError`."""
        check_documents(self, documents)
        self.warm_up()
        split = []
        for document in documents:
            if document.content is None or has_text(document):
                chunks = self.splitter.run(documents=[document])["documents"]
                split += self._placed(document, chunks)
        return {"documents": split}

    def _placed(self, document: Document, chunks: Sequence[Document]) -> list[Document]:
        by_source = defaultdict(list)
        placed = dict(enumerate(chunks))
        for place, chunk in enumerate(chunks):
            if not chunk.content:
                # As of Haystack's DocumentSplitter by tokens: it stands nowhere.
                placed[place] = replace(chunk, meta=_without_place(chunk.meta))
            elif chunk.id != document.id:
                by_source[chunk.meta.get("source_id", document.id)].append(place)
        parents = {chunk.id: chunk for chunk in (*chunks, document)}
        for source_id, places in by_source.items():
            parent = parents.get(source_id, document)
            children = self._children(parent, [chunks[place] for place in places])
            placed.update(zip(places, children, strict=True))
        return list(placed.values())

    def _children(self, parent: Document, chunks: Sequence[Document]) -> list[Document]:
        source = core_document(parent)
        pieces = [
            SplitPiece(chunk.content or "", start=chunk.meta.get(KEYS.start)) for chunk in chunks
        ]
        cut, records = placed_records(source, pieces, WHOLE, KEYS, self.unplaced)
        placed = []
        pages, roots = page_numbers(source, cut), root_places(root_of(source), cut)
        for chunk, record, page, root in zip(chunks, records, pages, roots, strict=True):
            meta = dict(chunk.meta)
            meta.pop(KEYS.start, None)
            meta |= {"source_id": parent.id, **record, **root}
            if KEYS.start in record and "page_number" not in record:
                meta["page_number"] = page
            if "_split_overlap" in meta:
                meta["_split_overlap"] = []
            placed.append(replace(chunk, meta=meta))
        for left, right in pairwise(placed):
            _write_overlap(left, right)
        return placed


def _write_overlap(left: Document, right: Document) -> None:
    """The characters that two neighbours share, as Haystack's splitters write them, if they do."""
    start = right.meta.get(KEYS.start)
    if "_split_overlap" not in left.meta or start is None or KEYS.start not in left.meta:
        return
    end = min(left.meta[KEYS.end], right.meta[KEYS.end])
    if start >= end:
        return
    for one, other in ((left, right), (right, left)):
        begin = one.meta[KEYS.start]
        shared = {"doc_id": one.id, "range": (start - begin, end - begin)}
        other.meta["_split_overlap"].append(shared)


def _without_place(meta: MetadataLike) -> Metadata:
    return {key: value for key, value in meta.items() if key not in _PLACES}


# Metadata of a chunk's place, which its vector does not depend on.
_PLACES = {
    *OF_ONE_CHUNK,
    WHITE_SPACE,
    "page_number",
    KEYS.start,
    KEYS.end,
    KEYS.spans,
}


@component
@dataclass(eq=False)
class ChunkcoreIndexUpdater(Serialized):
    """Between a splitter and an embedder: passes on only the chunks to embed, and lists the stale ones.

    Chunks are compared with the store's chunks of the same sources (``source_id``):

    - ``documents``: new chunks; connect this output to the embedder.
    - ``moved``: chunks whose text and metadata the store has at another place, with the store's vectors.
    - ``stale``: the store's ids without a chunk.
    - unchanged chunks are only counted.

    The store is only read: `ChunkcoreIndexWriter` writes.

    Args:
        document_store: its ``filter_documents`` should return embeddings (an option of most stores); chunks without one
            are embedded again.

    >>> from haystack.document_stores.in_memory import InMemoryDocumentStore
    >>> store = InMemoryDocumentStore()
    >>> old, new = (Document(id=text, content=text, meta={"source_id": "a"}) for text in ("tea", "sea"))
    >>> store.write_documents([old])
    1
    >>> update = ChunkcoreIndexUpdater(store).run([new])
    >>> [chunk.content for chunk in update["documents"]], update["stale"], store.count_documents()
    (['sea'], ['tea'], 1)
    """

    document_store: DocumentStore

    @component.output_types(
        documents=list[Document],
        moved=list[Document],
        stale=list[str],
        unchanged=int,
    )
    def run(
        self,
        documents: list[Document],
        source_ids: list[str] | None = None,
    ) -> dict[str, Any]:
        """Compare chunks with the store. Returns what the class describes.

        Args:
            documents: all chunks of their sources, from `ChunkcoreDocumentSplitter`.
            source_ids: further sources, which may have no chunks now: the store's other chunks of these are stale.

        Raises `TypeError`: not a list of `Document`; or `ValueError`: a document has no ``source_id``.
        """
        check_documents(self, documents)
        sources = set(source_ids or ())
        for chunk in documents:
            source = chunk.meta.get("source_id")
            if not isinstance(source, str):
                raise ValueError(  # noqa: TRY004  # of the right type, with the wrong value
                    "ChunkcoreIndexUpdater compares chunks by their source, and document ID "
                    f"{chunk.id} has no source_id; put it after a splitter"
                )
            sources.add(source)
        filters = {"field": "meta.source_id", "operator": "in", "value": sorted(sources)}
        stored = self.document_store.filter_documents(filters=filters) if sources else []
        by_id = {chunk.id: chunk for chunk in stored}
        embedded = {
            _content(chunk): chunk
            for chunk in stored
            if chunk.embedding is not None or chunk.sparse_embedding is not None
        }
        fresh, moved = [], []
        for chunk in documents:
            if chunk.id in by_id and _same(by_id[chunk.id], chunk):
                continue
            known = embedded.get(_content(chunk))
            if known is None:
                fresh.append(chunk)
                continue
            dense, sparse = known.embedding, known.sparse_embedding
            moved.append(replace(chunk, embedding=dense, sparse_embedding=sparse))
        stale = sorted(by_id.keys() - {chunk.id for chunk in documents})
        unchanged = len(documents) - len(fresh) - len(moved)
        return {"documents": fresh, "moved": moved, "stale": stale, "unchanged": unchanged}


def _same(stored: Document, chunk: Document) -> bool:
    """Whether a chunk is as the store has it; some stores keep no ``_split_overlap``."""
    kept = dict(chunk.meta)
    if "_split_overlap" not in stored.meta:
        kept.pop("_split_overlap", None)
    return stored.content == chunk.content and _comparable(stored.meta) == _comparable(kept)


def _comparable(meta: MetadataLike) -> str:
    """Metadata as what they say: of 44 stores make 44.0 or "44", of tuples lists, of dates texts; they drop null."""
    stated = {key: value for key, value in meta.items() if value is not None}
    return json.dumps(plain(stated, _as_said), sort_keys=True)


def _as_said(value: Any) -> object:
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        value = value.tolist()
    if isinstance(value, bool | int | float):
        return str(int(value)) if value % 1 == 0 else str(value)  # never of NaN and infinity
    if isinstance(value, str):
        return value.removesuffix(".0")
    return value if isinstance(value, Mapping | list | tuple | set | None) else str(value)


def _content(chunk: Document) -> str:
    """What the vector may depend on: text and metadata, without the place."""
    return f"{chunk.content}\n{_comparable(_without_place(chunk.meta))}"


def exact(
    splitter: Component, unplaced: Unplaced
) -> ChunkcoreDocumentSplitter | ChunkcoreExactSplitter:
    """See `chunkadapters.exact.exact`."""
    if isinstance(splitter, ChunkcoreDocumentSplitter | ChunkcoreExactSplitter):
        return splitter
    if not takes_and_gives_documents(splitter):
        raise OptionError(
            f"expected a splitter, which takes and gives documents; {type(splitter).__name__} does not"
        )
    return ChunkcoreExactSplitter(splitter, unplaced=unplaced)


def pieces(splitter: Component, text: str) -> list[SplitPiece]:
    """What the splitter cuts a text into."""
    if not text:
        return []
    warm_up(splitter)
    documents = splitter.run(documents=[Document(content=text)])["documents"]
    cut = []
    for document in documents:
        kept = _without_place(document.meta)
        kept.pop("source_id", None)
        start = document.meta.get(KEYS.start)
        cut.append(SplitPiece(document.content or "", kept, start))
    return cut
