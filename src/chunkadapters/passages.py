"""Passages behind a framework's retriever: its hits and a local index of words give exact spans under a budget."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer, field_validator
from typing_extensions import Self

from chunkadapters.configuration import counter_of
from chunkadapters.filters import ANY, UNKNOWN, filter_keys, keys_of, whole_documents
from chunkadapters.places import PAGE_MARKS, PAGES, SEGMENTS, SPANS, PlaceKeys, digest
from chunkcore.errors import DataError, OptionError, check_type, kind_of, warn_user
from chunkcore.locating import DocumentNames, Hit
from chunkcore.options import check_option_names
from chunkcore.retrieval import Index, chunk_corpus, get_retriever
from chunkcore.retrieval.base import PassageIndex
from chunkcore.retrieval.budget import Budget
from chunkcore.retrieval.passages.assembly import cut_unit
from chunkcore.retrieval.passages.worth import BALANCE, Scope
from chunkcore.run import Retrieved
from chunkcore.text import Document, Span, page_marks
from chunkcore.tokens import TokenCounter, get_counter

if TYPE_CHECKING:
    from chunkcore.scale.folder_index import FolderIndex

UNITS = "sentence:size=50"
_ALIGNERS = 100  # documents whose texts are kept ready for a search; up to 20 bytes a character
_SHORTEST = 24  # characters: shorter texts without a name are in many documents by chance

# A framework's class takes its own base's configuration unless it states this one.
STRICT = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

D = TypeVar("D")
TokenCounterLike = str | TokenCounter | Callable[[str], int]


class PassageWarning(UserWarning):
    """Some hits are in no document of the index, or a document has changed since it was indexed."""


class Limits(BaseModel):
    """The limits of an answer, as fields of a framework's class.

    Attributes:
        max_tokens: of the passages' texts in all.
        k: the most passages; None for no limit.
        counter: a counter's name, a `TokenCounter`, or a function from a text to its number of tokens.
    """

    model_config = STRICT

    max_tokens: int = Field(default=1000, ge=1, strict=True)
    k: int | None = Field(default=None, ge=1, strict=True)
    counter: Any = "cl100k_base"

    @field_validator("counter")
    @classmethod
    def _check_counter(cls, counter: TokenCounterLike) -> TokenCounterLike:
        counter_named(counter)
        return counter

    @field_serializer("counter")
    def _write_counter(self, counter: TokenCounterLike) -> str:
        name = counter if isinstance(counter, str) else getattr(counter, "name", "function:")
        if name.startswith("function:"):
            raise OptionError("counter is a function, which cannot be written down: name a counter")
        return name


class PassageOptions(Limits):
    """The limits, and how words count beside hits.

    Attributes:
        words: what passages may show. "hits": the text of documents that have a hit. "text": the hits' own text.
            "safe": as "hits", but as "text" for a document of which a filter may hide chunks; see `whole_documents`.
            "all": the text of every document of the index.
        filters: what the retriever's search is filtered by, in any framework's form: its keys count, not its values.
            None: nothing. `UNKNOWN`: what can be seen, and that may hide chunks of any document where it cannot.
        balance: the hits' share of a unit's score, 0 to 1.
    """

    words: Literal["safe", "hits", "text", "all"] = "safe"
    filters: Any = UNKNOWN
    balance: float = Field(default=BALANCE, ge=0, le=1)

    @field_serializer("filters")
    def _write_filters(self, filters: Any) -> Any:
        return (
            filters
            if filters is None or isinstance(filters, str)
            else dict.fromkeys(sorted(filter_keys(filters)))
        )


def counter_named(counter: TokenCounterLike) -> TokenCounter:
    """The token counter. Raises `OptionError`: there is none of that name."""
    return counter_of(counter) if callable(counter) else get_counter(counter)


@dataclass(frozen=True)
class Passage:
    """One passage.

    Attributes:
        retrieved: its place, text and score.
        document: its document; None for a hit that is in no document.
        hits: the numbers of the hits that it was made of, best first: those that overlap it. For a hit that is in no
            document, that hit.
        others: the numbers of the other hits of its document.
    """

    retrieved: Retrieved
    document: Document | None
    hits: tuple[int, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """32 hexadecimal digits of its document and place."""
        return digest(f"{self.retrieved.document_id}{self.retrieved.spans}")

    def metadata(
        self, hits: Sequence[Mapping[Any, Any]], keys: PlaceKeys, drop: Iterable[str] = ()
    ) -> dict[Any, Any]:
        """The document's metadata, the best hit's, the place and the pages, all without the `drop` keys.

        Where no hit overlaps the passage, only values that all the document's hits share are taken of them.

        Args:
            hits: the metadata of all hits.
            keys: the framework's keys of a place.
            drop: keys that describe one hit alone.
        """
        document, spans = self.document, self.retrieved.spans
        values = dict(document.metadata) if document else {}
        if self.hits:
            values |= hits[self.hits[0]]
        elif self.others:
            first, *rest = (hits[number] for number in self.others)
            values |= {
                key: value
                for key, value in first.items()
                if all(other.get(key) == value for other in rest)
            }
        gone = {keys.start, keys.end, keys.spans, SPANS, SEGMENTS, PAGE_MARKS, *drop}
        marks = tuple(page_marks(document.marks)) if document else ()
        if marks:
            gone |= {PAGES, "page", "page_label", "page_number"}
        kept = {key: value for key, value in values.items() if key not in gone}
        return kept | keys.write(spans) | keys.write_pages(marks, spans, {})


class LocalIndex:
    """An index on this machine. A folder is opened again when a newer index has been saved into it.

    Args:
        index: the folder of a saved index, or an index.
        documents: instead of an index: indexed in memory, by words.

    Raises:
        OptionError: not exactly one of both is given.
        DataError: the folder has no index, or an index of another method; or two documents share an id.
    """

    def __init__(self, index: Any = None, documents: Iterable[Document] | None = None) -> None:
        if (index is None) == (documents is None):
            raise OptionError("give either an index (its folder, or an index) or documents")
        if documents is not None:
            index = get_retriever("passages:lexical").index(chunk_corpus(list(documents), UNITS))
        self._lock = Lock()
        self._saved: FolderIndex | None = None
        if isinstance(index, str | Path):
            from chunkcore.scale.folder_index import (
                open_index,  # with scores and benchmarks, only for a folder
            )

            self._saved = open_index(Path(index))
            index = OpenedIndex(self._saved.index, self._saved)
        self._opened = index if isinstance(index, OpenedIndex) else OpenedIndex(index)

    @property
    def opened(self) -> OpenedIndex:
        """The index as it was last saved. Raises `DataError`: the folder has none any more, or it is damaged."""
        with self._lock:
            if self._saved is not None and (latest := self._saved.latest()) is not self._saved:
                self._saved, self._opened = latest, OpenedIndex(latest.index, latest)
            return self._opened

    def __deepcopy__(self, memo: Any) -> LocalIndex:
        return self  # nothing in it changes but what was warned of

    def __reduce__(self) -> Any:
        return LocalIndex, (self._opened.index if self._saved is None else self._saved.folder,)


class OpenedIndex:
    """An index, and where hits stand in its documents. `saved` has its files. Raises `OptionError`: it is no index."""

    def __init__(self, index: Any, saved: FolderIndex | None = None) -> None:
        if not isinstance(index, Index):
            raise OptionError(
                f"index is a saved index's folder or an index, got {type(index).__name__}"
            )
        self.index = index
        self._saved = saved
        self._warned: set[str] = set()

    @cached_property
    def documents(self) -> dict[str, Document]:
        return {document.id: document for document in self.index.corpus.documents}

    @cached_property
    def _places(self) -> HitPlaces:
        return HitPlaces(self.documents)

    def _changed(self, names: Iterable[str]) -> set[str]:
        """Those of these documents whose files have another text now."""
        return set() if self._saved is None else self._saved.changed(names)

    def passages(self, question: str, limits: Limits, where: Any = None) -> list[Passage]:
        """The index's own answer, best first, among the documents whose metadata `where` allows."""
        check_type("the question", question, str, "a string")
        index = self.index if where is None else self.index.within(where)
        counter = counter_named(limits.counter)
        passages: list[Retrieved] = []
        asked = limits.max_tokens
        found: Sequence[Retrieved] = ()
        while True:
            before, found = (
                len(found),
                index.answers([question], limits.k, asked, counter=counter)[0][: limits.k],
            )
            sizes = counter.count_many([piece.text for piece in found]).tolist()
            if (
                isinstance(index, PassageIndex)
                or sum(sizes) >= limits.max_tokens
                or len(found) == before
            ):
                break
            asked *= 2  # the index' chunker counts otherwise
        budget = Budget(limits.max_tokens, counter)
        for piece in found:
            if budget.take(piece.text) == piece.text:
                passages.append(piece)
            else:
                passages += cut_unit(piece, budget)  # as measures count tokens
            if budget.left == 0:
                break
        old = self._changed({piece.document_id for piece in passages})
        self._warn_changed(old, "passages of them have the old text")
        return [self._passage(piece) for piece in passages]

    def behind(
        self,
        question: str,
        hits: Sequence[Hit],
        options: PassageOptions,
        filters: Iterable[Any] = (UNKNOWN,),
    ) -> list[Passage]:
        """Passages of hits, which are best first, and which passed the retriever's `filters`, as far as they are seen.

        A hit that is in no document of the index is a passage of its own at its rank. A hit without text stays, too.
        """
        if not hasattr(self.index, "behind"):
            raise OptionError(
                "passages behind a retriever need an index of the retriever passages: index with it"
            )
        located = self._places.located(hits, derived=options.words != "text")
        answer = partial(self._answer, question, hits, located, options, filters)
        changed = self._places.changed | self._changed(_names(located))
        ranked, pieces = answer(changed)
        if options.words == "all" and self._changed(
            _names(pieces)
        ):  # so has a document without a hit
            ranked, pieces = answer(changed | self._changed(self.documents))
        by_document: dict[str, list[int]] = {}
        for number, piece in enumerate(ranked):
            by_document.setdefault(piece.document_id if piece.spans else "", []).append(number)
        passages = [self._passage(passage, ranked, by_document) for passage in pieces]
        for number in _textless(hits):
            passages.insert(number, Passage(ranked[number], None, (number,)))
        return passages[: options.k]

    def _answer(
        self,
        question: str,
        hits: Sequence[Hit],
        located: Sequence[Retrieved],
        options: PassageOptions,
        filters: Iterable[Any],
        changed: Collection[str],
    ) -> tuple[list[Retrieved], list[Retrieved]]:
        """The hits with their places, and passages: no place in `changed` documents, and no text of theirs."""
        index: Any = self.index
        ranked = [
            unplaced(hit, number) if piece.document_id in changed else piece
            for number, (hit, piece) in enumerate(zip(hits, located, strict=True))
        ]
        if options.words == "all" and changed:
            index = index.within([name for name in self.documents if name not in changed])
        self._warn(hits, ranked, changed)
        shown: Scope = {"hits": "whole", "text": "hits"}.get(options.words, "all")
        if options.words == "safe":
            placed = [
                (hit, piece.document_id)
                for hit, piece in zip(hits, ranked, strict=True)
                if piece.spans
            ]
            keys = keys_of(options.filters, filters)
            shown = whole_documents(placed, self.documents, keys)
            if hidden := sorted({name for _, name in placed} - shown):
                self._warn_hidden(hidden, keys)
        textless = _textless(hits)
        pieces = index.behind(
            question,
            [piece for number, piece in enumerate(ranked) if number not in textless],
            max_tokens=options.max_tokens,
            k=options.k,
            documents=shown,
            balance=options.balance,
            counter=counter_named(options.counter),
        )
        return ranked, pieces

    def _passage(
        self,
        retrieved: Retrieved,
        ranked: Sequence[Retrieved] = (),
        by_document: Mapping[str, Sequence[int]] | None = None,
    ) -> Passage:
        if not retrieved.spans:
            return Passage(retrieved, None, (int(retrieved.id),))
        numbers = (by_document or {}).get(retrieved.document_id, ())
        inside = tuple(
            number for number in numbers if _overlap(ranked[number].spans, retrieved.spans)
        )
        others = tuple(number for number in numbers if number not in inside)
        return Passage(retrieved, self.documents[retrieved.document_id], inside, others)

    def _warn(
        self, hits: Sequence[Hit], ranked: Sequence[Retrieved], changed: Collection[str]
    ) -> None:
        if self.index.superseded:
            self._warn_once(
                "superseded",
                "this index was updated, and the passages are of its old texts: make the retriever again with what "
                "update or delete returned, or with a folder, which is opened again after each save",
            )
        self._warn_changed(
            changed, "their hits stay as they are, and nothing else of them is shown"
        )
        lost = [hit for hit, piece in zip(hits, ranked, strict=True) if not piece.spans]
        texts = [hit.text for hit in lost if hit.text.strip() and not hit.derived]
        if texts and not changed:
            self._warn_once(
                "",
                f"{len(lost)} of {len(hits)} hits are in no document of the index and stay as they are, such as "
                f"{texts[0][:40]!r}: index the documents that the retriever searches",
            )

    def _warn_changed(self, names: Iterable[str], what: str) -> None:
        """Tell of each document once."""
        new = sorted(name for name in names if f"changed {name}" not in self._warned)
        self._warned.update(f"changed {name}" for name in new)
        if new:
            how = (
                "chunkcore index"
                if self._saved and self._saved.root
                else "index.update(documents).save(folder)"
            )
            warn_user(
                f"{len(new)} documents have changed since they were indexed, such as {new[0]!r}: {what}. Save the "
                f"index anew: {how}",
                PassageWarning,
            )

    def _warn_hidden(self, names: Sequence[str], keys: Collection[str]) -> None:
        why = f"metadata that the index does not have ({', '.join(sorted(keys))}). Index documents with theirs"
        if ANY in keys:
            why = (
                "what cannot be read here. Give filters=None if the retriever filters by nothing, else the filter or a "
                "mapping that has its metadata keys"
            )
        self._warn_once(
            "hidden",
            f"a filter may hide chunks of {len(names)} of the hits' documents, such as {names[0]!r}, so that passages "
            f"have the hits' own text of these, by {why}",
        )

    def _warn_once(self, reason: str, message: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            warn_user(message, PassageWarning)


def _textless(hits: Sequence[Hit]) -> list[int]:
    """The numbers of hits without text, such as pictures."""
    return [number for number, hit in enumerate(hits) if not hit.text.strip()]


def _names(pieces: Iterable[Retrieved]) -> set[str]:
    return {piece.document_id for piece in pieces if piece.spans}


def _overlap(one: Sequence[Span], other: Sequence[Span]) -> bool:
    return any(left.start < right.end and right.start < left.end for left in one for right in other)


class HitPlaces:
    """Finds hits in documents: by the places that they state, if these hold their text, else by their text.

    A hit belongs to a document that it names. A hit that names no document of these belongs to the only one with its
    text, unless it names another file. A hit that states a place in a document without its text, or resembles its
    text, shows that the document has changed: the document's text is not used any more.

    Attributes:
        changed: ids of the documents that have changed.
    """

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents
        self._names = DocumentNames(documents)
        self._aligners: dict[str, Any] = {}
        self.changed: set[str] = set()

    def located(self, hits: Sequence[Hit], *, derived: bool = True) -> list[Retrieved]:
        """Each hit with its place; without one it has no spans, and its number as its id.

        `derived`: whether a text that a model wrote has the place of its source.
        """
        pieces = [self._located(hit) if derived or not hit.derived else None for hit in hits]
        return [
            unplaced(hit, number) if piece is None or piece.document_id in self.changed else piece
            for number, (hit, piece) in enumerate(zip(hits, pieces, strict=True))
        ]

    def _located(self, hit: Hit) -> Retrieved | None:
        if not hit.text.strip():
            return None
        named = self._names.matching(hit.names)
        for document_id in named:
            piece = self._in_document(hit, document_id)
            if piece is not None:
                return piece
        others = [
            name for name in hit.names if PurePath(name).suffix and not self._names.matching([name])
        ]
        if named or others or len(hit.text.strip()) < _SHORTEST:
            return None
        piece = self._aligner("").locate(hit.text, score=hit.score)
        return piece if piece.match in ("exact", "whitespace", "folded") else None

    def _in_document(self, hit: Hit, document_id: str) -> Retrieved | None:
        text, spans = self._documents[document_id].text, hit.spans
        if hit.derived:  # by a model: its place is the passage it was written from
            inside = spans and max(span.end for span in spans) <= len(text)
            return Retrieved(document_id, spans, hit.score, hit.text) if inside else None
        if len(spans) == 1 and spans[0].slice(text) == hit.text:
            return Retrieved(document_id, spans, hit.score, hit.text)
        start = text.find(hit.text)
        if start >= 0 and text.find(hit.text, start + 1) < 0:
            return Retrieved(
                document_id, (Span(start, start + len(hit.text)),), hit.score, hit.text
            )
        piece: Retrieved = self._aligner(document_id).locate(
            hit.text, document_id=document_id, spans=spans, score=hit.score
        )
        if piece.match == "part" and hit.text.rstrip().endswith(
            piece.spans[-1].slice(text).rstrip()
        ):
            return piece  # a context was put before it
        if piece.match not in ("unlocated", "fuzzy", "part"):
            return piece
        if piece.match != "unlocated" or spans:
            self.changed.add(document_id)
        return None

    def _aligner(self, document_id: str) -> Any:
        from chunkcore.locating.alignment import Aligner

        aligner = self._aligners.get(document_id)
        if aligner is None:
            if len(self._aligners) >= _ALIGNERS:
                self._aligners.clear()  # another thread may hold one of them
            documents = [self._documents[document_id]] if document_id else self._documents.values()
            aligner = self._aligners[document_id] = Aligner(documents)
        return aligner


def unplaced(hit: Hit, number: int) -> Retrieved:
    """A hit that is in no document; its number is its id."""
    return Retrieved("", (), hit.score, hit.text, match="unlocated", certainty=0.0, id=str(number))


class IndexFields(BaseModel):
    """An index or documents as fields of a framework's class.

    Attributes:
        index: a saved index's folder, or an index.
        documents: the framework's documents, which `to_core` makes chunkcore's.
    """

    index: Any = Field(default=None, frozen=True)
    documents: Any = Field(default=None, frozen=True, exclude=True, repr=False)
    _local: LocalIndex = PrivateAttr()

    def __init__(self, index: Any = None, **options: Any) -> None:
        check_option_names(type(self).__name__, options, type(self).model_fields)
        super().__init__(index=index, **options)

    @staticmethod
    def to_core(documents: Any) -> list[Document]:
        """The framework's documents as chunkcore's."""
        raise NotImplementedError

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._local = LocalIndex(
            self.index, None if self.documents is None else type(self).to_core(self.documents)
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, which opens another index or other documents if `update` has some."""
        if update and update.keys() & {"index", "documents"}:
            update = {"index": None, "documents": None, **update}
        copied = super().model_copy(update=update, deep=deep)
        if update and "index" in update:
            copied.model_post_init(None)
        return copied


def core_documents(
    documents: Any, kind: type[D], framework: str, to_core: Callable[[D], Document]
) -> list[Document]:
    """A framework's documents, or chunkcore's, as chunkcore's; those that share an id get a number, as in ``tea.md#2``.

    Raises `DataError`: one document, or something else.
    """
    if isinstance(documents, (kind, Document, str, bytes)) or not isinstance(documents, Iterable):
        how = (
            'load_documents("docs/") reads files'
            if isinstance(documents, str)
            else "put it into a list"
        )
        raise DataError(
            f"expected a list of {framework} documents, got {kind_of(documents)}: {how}"
        )
    rows = []
    for row in documents:
        if not isinstance(row, (kind, Document)):
            raise DataError(f"expected {framework} or chunkcore documents, got {kind_of(row)}")
        rows.append(row if isinstance(row, Document) else to_core(row))
    counts = Counter(row.id for row in rows)
    seen: dict[str, int] = {}
    for place, row in enumerate(rows):
        if counts[row.id] > 1:
            names = (f"{row.id}#{number}" for number in itertools.count(seen.get(row.id, 0) + 1))
            name = next(name for name in names if name not in counts)
            seen[row.id] = int(name.rpartition("#")[2])
            rows[place] = replace(row, id=name)
    return rows
