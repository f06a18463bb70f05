"""`RetrievalMethod` indexes a corpus of chunks; `Index` searches it. CONTRIBUTING.md shows how to add a method."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

import numpy as np

from chunkcore import guesses
from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.errors import ChunkcoreError, DataError, OptionError, echo
from chunkcore.models.base import Embedder
from chunkcore.models.endpoint import check_stays_here
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.options import (
    check_number,
    check_option_names,
    check_options,
    format_spec,
    plain_options,
    read_value,
    suggesting,
)
from chunkcore.registry import Registry
from chunkcore.retrieval.budget import Budget, part_of
from chunkcore.retrieval.corpus import ChunkedCorpus, check_documents, chunk_corpus
from chunkcore.retrieval.saved import Contents, Enough, SavedPlace, write_index
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.retrieval.where import Where, allowed_documents, comparable
from chunkcore.run import RankedList, RankedPieces, Retrieved
from chunkcore.spans import Numbers, Scores
from chunkcore.text import Document
from chunkcore.tokens import TokenCounter, get_counter

MAX_TOKENS = 1000
# "auto": what each question needs, of an index that `chunkcore.study.enough.calibrate` made.
MaxTokens: TypeAlias = int | Literal["auto"]


def check_limits(k: int | None, max_tokens: MaxTokens | None) -> None:
    """Raise `OptionError`: a limit is under 1, or no whole number."""
    if k is not None:
        check_number("k", k, 1)
    if max_tokens is not None and max_tokens != "auto":
        check_number("max_tokens", max_tokens, 1)


FIRST_DEPTH = 16  # of a search, if only tokens are limited
_PARTS = 8  # filtered indexes that are kept
DEFAULT_K = 10


def best_of(scores: Scores, k: int) -> Numbers:
    """The places of the k best scores, ties by place; -inf is no score."""
    places = np.flatnonzero(scores > -np.inf)  # many equal scores are slow to partition
    if k < len(places):
        some = scores[places]
        places = places[some >= np.partition(some, -k)[-k]]
    best: Numbers = places[np.argsort(-scores[places], kind="stable")[:k]]
    return best


class Hits(NamedTuple):
    """The best chunks of each query, best first.

    Attributes:
        indices: chunk numbers, int64, shape (queries, at most k); shorter rows are filled with -1.
        scores: float64, same shape, never rising within a row; -inf beside -1.
    """

    indices: Numbers
    scores: Scores

    @classmethod
    def of(cls, rows: Sequence[tuple[Numbers, Scores]]) -> Hits:
        """Hits from each query's indices and scores, of any lengths.

        >>> Hits.of([(np.array([2, 0]), np.array([0.5, 0.1])), (np.array([1]), np.array([0.3]))]).indices.tolist()
        [[2, 0], [1, -1]]
        """
        width = max((len(indices) for indices, _ in rows), default=0)
        shape = len(rows), width
        hits = cls(np.full(shape, -1, np.int64), np.full(shape, -np.inf))
        for row, (indices, scores) in enumerate(rows):
            hits.indices[row, : len(indices)] = indices
            hits.scores[row, : len(scores)] = scores
        return hits

    @property
    def counts(self) -> Numbers:
        """The number of hits of each query."""
        counts: Numbers = np.count_nonzero(self.indices >= 0, axis=1)
        return counts

    def row(self, number: int) -> tuple[Numbers, Scores]:
        is_hit = self.indices[number] >= 0
        return self.indices[number, is_hit], self.scores[number, is_hit]

    def best(self, k: int) -> Hits:
        return Hits(self.indices[:, :k], self.scores[:, :k])

    def then(self, more: Hits) -> Hits:
        """Append `more`'s new hits in their order; their scores are capped at the last score here.

        >>> first = Hits(np.array([[3]]), np.array([[0.2]]))
        >>> first.then(Hits(np.array([[1, 3, 0]]), np.array([[0.9, 0.2, 0.1]])))
        Hits(indices=array([[3, 1, 0]]), scores=array([[0.2, 0.2, 0.1]]))
        """
        rows = []
        for number in range(len(self.indices)):
            indices, scores = self.row(number)
            others, values = more.row(number)
            is_new = ~np.isin(others, indices)
            indices = np.concatenate((indices, others[is_new]))
            scores = np.concatenate((scores, values[is_new]))
            rows.append((indices, np.minimum.accumulate(scores)))
        return Hits.of(rows)


class Index(ABC):
    """A searchable corpus: a `Retriever` for one query or many. Subclasses implement `rank`.

    Attributes:
        corpus: the chunks.
        inner: the indexes whose hits this one ranks anew.
        nested: whether the answer to a smaller limit is a prefix of that to a larger one.
        method: the retriever that made the index.
        vectors: of its chunks and queries; None if it uses none.
        superseded: `update` or `delete` has made a newer index of this one.
        saved_place: the saved index from which it was loaded, or into which it was saved.
        base: the origin of the index that this one updates.
        is_loaded: whether its chunker was named by a saved index.
        enough: the thresholds that `chunkcore.study.enough.calibrate` found for it.
    """

    nested: ClassVar[bool] = True
    method: RetrievalMethod
    vectors: TextVectors | None = None
    superseded: bool = False
    saved_place: SavedPlace | None = None
    base: SavedPlace | None = None
    is_loaded: bool = False
    enough: Enough | None = None

    def __init__(self, corpus: ChunkedCorpus, *inner: Index) -> None:
        self.corpus = corpus
        self.inner = inner
        self._parts: dict[bytes, Index] = {}

    @abstractmethod
    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        """The best `k` chunks of each query, best first, or fewer: a prefix of any deeper ranking."""

    def search(
        self,
        queries: Iterable[str],
        k: int = DEFAULT_K,
    ) -> Hits:
        """The best `k` chunks of each query; see `rank`. Raises `OptionError`: no list of strings, or k is under 1."""
        check_number("k", k, 1)
        return self.rank(_listed(queries), k)

    def within(self, where: Where) -> Index:
        """The index over the documents that a filter allows, as if the others were not there; see `retrieve`.

        Its numbers of chunks are those of its own corpus. The last few are kept.

        Raises `OptionError`: not a filter.
        """
        allowed = allowed_documents(where, self.corpus.documents)
        key = allowed.tobytes()
        part = self._parts.get(key)
        if part is None:
            chunks = np.flatnonzero(allowed[self.corpus.document_numbers])
            part = self.method.index(self.corpus.selected(chunks), self.vectors)
            part.enough = self.enough
            if len(self._parts) >= _PARTS:
                self._parts.pop(next(iter(self._parts)), None)
            self._parts[key] = part
        return part

    def save(
        self,
        folder: Path | str,
        *,
        notes: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write the index into a folder, from which `load_index` opens it. An index that is there is replaced in one
        step. Returns the folder.

        Args:
            folder: new, empty, or that of a saved index.
            notes: kept in the manifest as JSON gives them back, such as where the documents come from.

        Raises `OptionError`: the retriever, chunker or embedder cannot be written down; `DataError`: the folder holds
        something else, or a newer index than the one that this index was made of, or metadata or notes are no JSON;
        `OSError`: the disk is full, or the folder cannot be written to.
        """
        self._check_whole()
        if self.superseded:
            warnings.warn(
                "this index was updated: save what update or delete returned", stacklevel=2
            )
        try:
            saved_notes = json.loads(json.dumps(dict(notes or {}), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(f"the notes of an index are JSON values: {error}") from error
        contents = Contents(self.method.name, self.corpus, self.vectors, saved_notes, self.enough)
        self.saved_place = write_index(contents, Path(folder), self.base)
        if self.base is not None:
            self.base = self.saved_place
        return Path(folder)

    def update(
        self,
        documents: Iterable[Document] = (),
        *,
        without: Iterable[str] = (),
        chunker: Chunker | str | None = None,
    ) -> Index:
        """A new index with these documents added, or in place of those of the same ids: ``index = index.update(...)``.

        Only new and changed documents are cut, by the corpus's chunker if none is given, and embedded. A changed one
        keeps its place, new ones come last. This index stays as it is, for readers that use it.

        Args:
            documents: the new and the changed ones; others may be among them.
            without: ids of documents that the new index does not have.
            chunker: of the documents.

        Raises `DataError`: an item is no `Document`, two share an id, or the index has no document of an id;
        `OptionError`: the chunker is not known, or another one is given and no document has changed; or a document is
        both given and left out.
        """
        self._check_whole()
        before, vectors = self.corpus, self.vectors
        changed, gone = _changes(before.sources, documents, without)
        if changed and chunker is None and self.is_loaded and before.chunker is not None:
            check_stays_here(before.chunker.spec, "give update the chunker=")
        added = _cut(changed, before.chunker, chunker)
        if not changed and not gone:
            return self
        gone.update(document.id for document in changed)
        stays = np.array([name not in gone for name in before.number_of], np.bool_)
        corpus, places = ChunkedCorpus.joined(before, stays, added)
        if vectors is not None:
            vectors = vectors.updated(before, added, corpus, places)
        index = self.method.index(corpus, vectors)
        index.enough = self.enough
        self.superseded = True
        index.base = self.base or self.saved_place
        index.is_loaded = self.is_loaded
        return index

    def delete(self, ids: Iterable[str]) -> Index:
        """A new index without these documents: ``index = index.delete(...)``. Raises `DataError`: no such id."""
        return self.update(without=ids)

    def _check_whole(self) -> None:
        """Raise `OptionError`: this is the part of an index that a filter allows."""
        if self.corpus.parent is not None:
            raise OptionError(
                "this index is a part of another, by a filter: save, update and delete the whole one"
            )

    def search_tokens(
        self,
        queries: Sequence[str],
        k: int | None,
        max_tokens: int | None,
        sizes: Numbers,
    ) -> Hits:
        """At least `k` chunks per query, and more until they hold `max_tokens` tokens, by `sizes`, or none are left."""
        if max_tokens is None:
            return self.rank(queries, k or max(len(self.corpus), 1))
        usual = max_tokens * len(sizes) // (int(sizes.sum()) + 1)  # chunks of these tokens
        k = max(k or FIRST_DEPTH, usual)
        while True:
            hits = self.rank(queries, k)
            tokens = np.where(hits.indices >= 0, sizes[hits.indices], 0).sum(axis=1)
            is_short = (hits.counts >= k) & (tokens < max_tokens)
            if k >= len(self.corpus) or not is_short.any():
                return hits
            k *= 2

    def answers(
        self,
        queries: Iterable[str],
        k: int | None = None,
        max_tokens: int | None = None,
        *,
        sizes: Numbers | None = None,
        counter: TokenCounter | None = None,
    ) -> Sequence[Sequence[Retrieved]]:
        """Each query's pieces, enough for measures at `k` and at `max_tokens`: `k` or more, until they hold that many
        tokens or none are left; both None: all. Of a `PassageIndex` its `passages`, within both limits.

        `sizes` has each chunk's tokens, by default its chunker's counts; `counter` is for a `PassageIndex`.

        Raises `OptionError`: no list of strings, or a limit is under 1.
        """
        check_limits(k, max_tokens)
        if sizes is None:
            sizes = self.corpus.token_counts
        return self.pieces(self.search_tokens(_listed(queries), k, max_tokens, sizes))

    @suggesting
    def retrieve(
        self,
        query: str,
        k: int | None = None,
        max_tokens: MaxTokens | None = None,
        where: Where | None = None,
    ) -> RankedList:
        """The best pieces, best first: at most `k`, and at most `max_tokens` tokens, the last chunk cut there (a corpus
        that was made of chunks has whole ones); without a limit, 10 pieces.

        Args:
            query: the question.
            k: the most pieces.
            max_tokens: of all pieces: of chunks, by their chunker's counter; of passages, by the index's `counter`.
                "auto": what the question needs, of a calibrated index of passages; see `Enough`.
            where: the documents that are searched: their ids, a mapping of metadata that must be equal, or a function
                of a document's metadata. The answer is that of an index over these documents alone.

        Raises `OptionError`: a limit is under 1, the query is not a string, or `where` is not a filter.
        """
        if not isinstance(query, str):
            raise OptionError(
                f"retrieve takes one question as a string, got {type(query).__name__}"
            )
        check_limits(k, max_tokens)
        if k is None and max_tokens is None:
            k = DEFAULT_K
        index = self if where is None else self.within(where)
        if max_tokens == "auto":
            return index.enough_pieces(query, k)
        return index.best_pieces(query, k, max_tokens)

    def enough_pieces(self, query: str, k: int | None) -> RankedList:
        """The answer of `retrieve` with max_tokens="auto". Raises `OptionError`: the index is not calibrated."""
        raise OptionError(
            f'max_tokens="auto" needs an index of passages, and this is {self.method.name}'
        )

    def best_pieces(
        self,
        query: str,
        k: int | None,
        max_tokens: int | None,
    ) -> RankedList:
        """The answer of `retrieve`, whose arguments were checked."""
        if not len(self.corpus):
            return RankedList()
        sizes = self.corpus.token_counts
        hits = self.search_tokens([query], k, max_tokens, sizes)
        pieces = self.pieces(hits)[0][:k]
        if max_tokens is None:
            return RankedList(pieces)
        best, left = RankedList(), max_tokens
        for piece, size in zip(pieces, sizes[hits.row(0)[0]].tolist(), strict=False):
            if size > left:
                best += self._beginning(piece, left)
                break
            best.append(piece)
            left -= size
        return best

    def _beginning(self, piece: Retrieved, tokens: int) -> list[Retrieved]:
        """The piece's first tokens; none where its chunker, or the counter of a saved index, is not known here."""
        with suppress(ChunkcoreError):
            chunker = self.corpus.chunker
            if tokens and chunker is not None:
                text = Budget(tokens, chunker.token_counter).take(piece.text)
                if text:
                    return [part_of(piece, 0, len(text))]
        return []

    def pieces(self, hits: Hits) -> RankedPieces:
        kept = hits.indices >= 0
        return RankedPieces(
            self.corpus.retrieved, hits.counts, hits.indices[kept], hits.scores[kept]
        )


def _listed(queries: Iterable[str]) -> list[str]:
    """Raises `OptionError`: no list of strings."""
    is_list = isinstance(queries, Iterable) and not isinstance(queries, str)
    questions = list(queries) if is_list else []
    if not is_list or not all(isinstance(question, str) for question in questions):
        raise OptionError(
            f"an index takes a list of questions, got {echo(queries)}: put one question in a list"
        )
    return questions


def _changes(
    held: Mapping[str, Document],
    documents: Iterable[Document],
    without: Iterable[str],
) -> tuple[list[Document], set[str]]:
    """The documents that are new or have changed, and the ids of those that an index loses.

    An id whose letters are composed otherwise is that of the held document.
    """
    composed = {normalize("NFC", name): name for name in held}

    def known(name: str) -> str:
        return name if name in held else composed.get(normalize("NFC", str(name)), name)

    if isinstance(without, str):
        without = [without]
    gone = set(map(known, without))
    unknown = sorted(gone - held.keys())
    if unknown:
        raise DataError(f"the index has no document {unknown[0]!r}: nothing was deleted")
    items = list(documents)
    check_documents(items)
    changed = []
    for item in items:
        if item.id in gone:
            raise OptionError(
                f"update is given {item.id!r} in documents and in without: leave one out"
            )
        name = known(item.id)
        if name != item.id and name not in gone:
            item = replace(item, id=name)
        # Marks are compared as a saved index gives them back: lists for tuples.
        before = held.get(item.id)
        is_same = before and (before.text, before.metadata) == (item.text, item.metadata)
        if not before or not is_same or comparable(before.marks) != comparable(item.marks):
            changed.append(item)
    return changed, gone


def _cut(
    documents: Sequence[Document],
    before: Chunker | None,
    chunker: Chunker | str | None,
) -> ChunkedCorpus:
    """The chunks of documents that are added to those that a chunker cut before."""
    chosen = before if chunker is None else get_chunker(chunker)
    if not documents:
        if before not in (None, chosen):
            raise OptionError(
                "no document has changed, and unchanged ones are not cut again: index them anew with the chunker"
            )
        return ChunkedCorpus()
    if chosen is None:
        raise OptionError(
            "this index was made of chunks, not of documents: give update the chunker="
        )
    return chunk_corpus(documents, chosen)


class PassageIndex(Index):
    """An index whose pieces are made for the limits: the passages for 500 tokens need not be among those for 1,000.

    A report asks once for each depth and budget of its measures.
    """

    nested = False
    # How many questions asked together are scored once, whatever the limits they are asked with next; None: any number.
    questions_kept: int | None = None
    counter: str = "cl100k_base"  # of the budget's tokens, unless a report asks with its own

    @abstractmethod
    def passages(
        self,
        queries: Sequence[str],
        k: int | None,
        max_tokens: int | None,
        counter: TokenCounter,
    ) -> list[list[Retrieved]]:
        """Each query's passages, best first: at most `k`, of at most `max_tokens` in all; both None: 1,000 tokens."""

    def answers(
        self,
        queries: Iterable[str],
        k: int | None = None,
        max_tokens: int | None = None,
        *,
        sizes: Numbers | None = None,
        counter: TokenCounter | None = None,
    ) -> Sequence[Sequence[Retrieved]]:
        check_limits(k, max_tokens)
        chosen = self.counter if counter is None else counter
        return self.passages(_listed(queries), k, max_tokens, get_counter(chosen))

    def best_pieces(
        self,
        query: str,
        k: int | None,
        max_tokens: int | None,
    ) -> RankedList:
        return RankedList(self.answers([query], k, max_tokens)[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class RetrievalMethod(ABC):
    """A retrieval method. Its fields are its options; `name` is the string that describes it.

    Subclasses are registered (``@retrievers.register("name")``) and implement `build`. A subclass with options is a
    frozen dataclass and may have their `bounds`, as a `Chunker` has, and check more in `validate`.
    """

    kind: ClassVar[str] = ""  # the registered name
    leading: ClassVar[str] = ""  # the option that may be given without its name
    makes_passages: ClassVar[bool] = False  # whether its index is a `PassageIndex`

    def __post_init__(self) -> None:
        check_options(self)
        self.validate()

    def validate(self) -> None:
        """Raise `OptionError` if an option is out of range."""

    def check(self, embedder: Embedder) -> None:
        """Call before expensive work. Raises `OptionError` or `MissingExtraError`: a model or a package is missing."""
        for method in self.inner:
            method.check(embedder)

    def check_chunks(self, corpus: ChunkedCorpus) -> None:
        """Call before chunks are embedded. Raises `DataError`: they cannot be indexed."""

    def index(
        self,
        corpus: ChunkedCorpus,
        vectors: TextVectors | Embedder | str | None = None,
    ) -> Index:
        """Index the chunks by `vectors`: an embedder or its name, or what has the vectors already; None: the default.

        Raises `OptionError`: no `ChunkedCorpus`, or no embedder.
        """
        if not isinstance(corpus, ChunkedCorpus):
            raise OptionError(
                f"a retriever indexes chunks, got {type(corpus).__name__}: write "
                f'get_retriever({self.name!r}).index(chunk_corpus(documents, "sentence:size=50"))'
            )
        if vectors is None:
            vectors = DEFAULT_MODEL
        if not isinstance(vectors, TextVectors):
            vectors = TextVectors(vectors)
        index = self.build(corpus, vectors)
        index.method = self
        if self.embeds:
            index.vectors = vectors
        return index

    @abstractmethod
    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        """Make the index that `index` returns."""

    def retrieve(
        self,
        query: str,
        k: int | None = None,
        max_tokens: MaxTokens | None = None,
        where: Where | None = None,
    ) -> RankedList:
        """Raises `OptionError`: a method has no documents; its index has."""
        raise OptionError(
            f"{self.name!r} names a method, which has no documents yet: "
            f"retriever = get_retriever({self.name!r}).index(corpus)"
        )

    @classmethod
    def read(
        cls,
        parts: Sequence[Any],
        options: Mapping[str, Any],
    ) -> RetrievalMethod:
        """The method from a string's unnamed parts and its options. Raises `OptionError`: a wrong option or value."""
        if parts and cls.leading and cls.leading not in options:
            value: Any = parts
            if not cls._leads_with_several():
                value = read_value(",".join(parts), cls.leading)
            options, parts = {**options, cls.leading: value}, ()
        if parts:
            raise OptionError(f"{cls.kind} takes options as option=value, got {parts[0]!r}")
        check_option_names(
            f"the retriever {cls.kind}", options, [field.name for field in fields(cls)]
        )
        return cls(**options)

    @property
    def inner(self) -> tuple[RetrievalMethod, ...]:
        """The methods whose hits this one ranks anew."""
        return ()

    @property
    def embeds(self) -> bool:
        """Whether the method uses vectors, so that results depend on the embedder."""
        return not self.inner or any(method.embeds for method in self.inner)

    @property
    def name(self) -> str:
        """The shortest string that describes the method: only options that differ from their defaults."""
        changed = self.changed_options()
        values: list[Any] = []
        if self.leading in changed:
            value = changed.pop(self.leading)
            values = value if self._leads_with_several() else [value]
        return format_spec(self.kind, changed, values)

    @classmethod
    def _leads_with_several(cls) -> bool:
        """Whether the option without a name is a list: each part of a string is one item."""
        return isinstance(getattr(cls, cls.leading, None), tuple)

    def changed_options(self) -> dict[str, Any]:
        """The options that differ from their defaults, as plain values."""
        return plain_options(self, changed=True)


retrievers: Registry[type[RetrievalMethod]] = Registry(
    "retriever",
    "chunkcore.retrievers",
    base=RetrievalMethod,
    attribute="kind",
    note=", with or without stages after it, such as +rerank",
    entries={
        "bm25": "chunkcore.retrieval.methods:BM25",
        "dense": "chunkcore.retrieval.methods:Dense",
        "hybrid": "chunkcore.retrieval.methods:Hybrid",
        "late": "chunkcore.retrieval.methods:Late",
        "passages": "chunkcore.retrieval.passages.index:Passages",
    },
    guesses=guesses.RETRIEVERS,
)
