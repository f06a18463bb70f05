"""`Behind`: passages behind a framework's retriever, chosen from its hits' text under a budget of tokens.

A passage shows the text of the hits, and not a character more, unless the app says that documents are shown whole.
So no filter has to be known here: what a retriever did not return stays hidden.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import is_not
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SkipValidation

from chunkadapters.configuration import counter_of
from chunkadapters.places import (
    ALSO_IN,
    BOOKKEEPING,
    CONTEXT,
    PAGE_KEYS,
    PAGE_MARKS,
    PAGES,
    Metadata,
    PlaceKeys,
    marks_of,
    shared_items,
)
from chunkcore.errors import (
    DataError,
    OptionError,
    echo,
    kind_of,
    shortened,
    warn_user,
)
from chunkcore.locating import NAMING_KEYS, Hit, Locator, Verdict, unplaced
from chunkcore.options import check_number, check_option_names
from chunkcore.plain import digest
from chunkcore.retrieval import Index, WindowIndex, chunk_corpus, get_retriever
from chunkcore.retrieval.base import MaxTokens as MaxTokens
from chunkcore.retrieval.base import PassageIndex, check_limits
from chunkcore.retrieval.budget import Budget, cut_unit
from chunkcore.retrieval.passages.assembly import Order as Order
from chunkcore.retrieval.passages.assembly import in_order
from chunkcore.retrieval.passages.units import BALANCE as BALANCE
from chunkcore.retrieval.saved import read_manifest
from chunkcore.retrieval.where import Where, check_predicate, own_copy, truth
from chunkcore.run import Retrieved
from chunkcore.text import Document, page_marks
from chunkcore.tokens import TokenCounter, get_counter

if TYPE_CHECKING:
    from chunkcore.scale.folder_index import FolderIndex

UNITS = "sentence:size=50"
FETCH_K = 100
# What a hit says of its own text: a passage with more text than the hits' does not inherit it.
_NAMES = (*NAMING_KEYS, PAGES, "page", "page_label")  # which a copy's place has, too
_OF_A_SECTION = ("headings", CONTEXT, PAGES, *PAGE_KEYS)

D = TypeVar("D")
R = TypeVar("R")
TokenCounterLike: TypeAlias = str | TokenCounter | Callable[[str], int]
Show: TypeAlias = Literal["hits", "whole", "all"] | Callable[[Mapping[str, Any]], bool]


class PassageWarning(UserWarning):
    """Some hits have no place in the index, a document has changed, or a retriever gave fewer hits than asked for."""


_named_counter = lru_cache(maxsize=16)(get_counter)


def _token_counter(counter: TokenCounterLike) -> TokenCounter:
    if isinstance(counter, str):
        return _named_counter(counter)
    return counter_of(counter) if callable(counter) else get_counter(counter)


def written_option(name: str, value: TokenCounterLike | Show) -> object:
    """An option as a configuration holds it. Raises `OptionError`: it is a function."""
    if name == "counter":
        counter = _token_counter(cast(TokenCounterLike, value))
        value = getattr(counter, "function", counter.name)
    if callable(value):
        raise OptionError(f"{name} is a function, which cannot be written down")
    return value


@dataclass(frozen=True)
class Passage:
    """One passage.

    Attributes:
        retrieved: its place, text and score.
        document: its document; None for a hit without a place in the index.
        hits: the numbers of the hits that overlap it, best first. For a hit without a place, that hit.
        others: the numbers of the other hits of its document.
        is_whole: whether its document is shown whole, and so the document's metadata, too.
        copies: the other places that say the same.
    """

    retrieved: Retrieved
    document: Document | None
    hits: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    is_whole: bool = True
    copies: tuple[Passage, ...] = ()

    @property
    def id(self) -> str:
        """32 hexadecimal digits of its document and place."""
        return digest(f"{self.retrieved.document_id}{self.retrieved.spans}")

    def metadata(
        self, hits: Sequence[Mapping[str, object]], keys: PlaceKeys, drop: Collection[str] = ()
    ) -> Metadata:
        """Copies of what all hits of the passage share, and of the document's metadata if it is shown whole.

        Without the place, and without the keys to `drop`, which describe one hit alone. ``pages`` are the passage's,
        ``also_in`` the other places that say the same.

        Args:
            hits: the metadata of all hits.
            keys: the framework's keys of a place.
        """
        assert self.document is not None
        values = shared_items([hits[number] for number in self.hits or self.others])
        if self.is_whole:
            values = {key: value for key, value in values.items() if key not in _OF_A_SECTION}
            values = {**self.document.metadata, **values}
        gone = {keys.start, keys.end, keys.spans, ALSO_IN, *BOOKKEEPING, PAGE_MARKS, *drop}
        pages = {}
        if self.document.marks:
            marks = tuple(page_marks(self.document.marks))
            pages = keys.write_pages(marks, self.retrieved.spans, ())
            if marks:
                gone.update((PAGES, *PAGE_KEYS))
        kept = own_copy({key: value for key, value in values.items() if key not in gone})
        for copy in self.copies:
            said = copy.metadata(hits, keys)
            names = {key: said[key] for key in _NAMES if key in said}
            source, place = copy.retrieved.document_id, keys.write(copy.retrieved.spans)
            kept.setdefault(ALSO_IN, []).append({**names, "source_id": source, **place})
        return kept | pages


class Behind:
    """Passages behind a retriever: exact spans of its hits' text, of any size, under a budget of tokens.

    The hits count by their order, whatever their scores; the words of the question count in small units of the hits'
    text. Each framework has classes that are made of it. A hit without a place in the index, such as a picture or a
    model's summary, stays as it is, at its rank.

    Args:
        index: a saved index's folder, an index of the retriever passages, or a `StoreIndex`.
        show: "hits", the hits' own text, not a character more; "whole", all text of the hits' documents; "all", all
            text of the index; or a function of a document's metadata that says whether this document is shown whole.
            Who chooses another than "hits" says so for every question: no filter of a retriever is known here.
        max_tokens: of the passages' texts in all; "auto": what the question needs, of a calibrated index.
        k: the most passages; None for no limit.
        counter: a counter's name, a `TokenCounter`, or a function from a text to its number of tokens.
        balance: the hits' share of a unit's score, 0 to 1; the words have the rest.
        order: "score", the best passage first; or "document", those of one document together, in its order.

    Raises `OptionError`: an option is out of range, or there is no index.

    >>> corpus = chunk_corpus([Document("tea.md", "Tea is hot. It boils. Ice is cold.")], UNITS)
    >>> index = get_retriever("passages:lexical").index(corpus)
    >>> hits = [Hit("Tea is hot. It boils.", names=("tea.md",))]
    >>> [passage.retrieved.text for passage in Behind(index).passages("What boils?", hits)]
    ['Tea is hot. It boils.']
    >>> [passage.retrieved.text for passage in Behind(index, show="whole").passages("What boils?", hits)]
    ['Tea is hot. It boils. Ice is cold.']
    """

    def __init__(
        self,
        index: IndexLike | LocalIndex,
        *,
        show: Show = "hits",
        max_tokens: MaxTokens = 1000,
        k: int | None = None,
        balance: float = BALANCE,
        counter: TokenCounterLike = "cl100k_base",
        order: Order = "score",
    ) -> None:
        if callable(show):
            check_predicate("show", show)
        elif show not in ("hits", "whole", "all"):
            raise OptionError(
                f'show is "hits", "whole", "all", or a function of a document\'s metadata; got {echo(show)}'
            )
        check_limits(k, max_tokens)
        if max_tokens is None:
            raise OptionError('max_tokens is a whole number, or "auto"; got None')
        check_number("balance", balance, 0, 1, whole=False)
        in_order((), order)
        self.index = index if isinstance(index, LocalIndex) else LocalIndex(index)
        if isinstance(self.index.given, HitIndex):
            self.index.given.check_show(show)
        self.show = show
        self.max_tokens = max_tokens
        self.k = k
        self.balance = balance
        self.counter = _token_counter(counter)
        self.order = order

    @classmethod
    def of(
        cls,
        options: object,
        index: LocalIndex,
        k: int | None = None,
        max_tokens: MaxTokens | None = None,
    ) -> Behind:
        """With the options that a framework's object has; `k` and `max_tokens` are of a call. The last is kept."""
        names = ("show", "max_tokens", "k", "balance", "counter", "order")
        values = {name: getattr(options, name) for name in names if hasattr(options, name)}
        if k is not None:
            values["k"] = k
        if max_tokens is not None:
            values["max_tokens"] = max_tokens
        last = index.last  # another thread may ask meanwhile
        if last is None or last[0] != values:
            last = index.last = values, cls(index, **values)
        return last[1]

    def check_call(self, arguments: Collection[str]) -> None:
        """Raise `OptionError`: arguments for the retriever, while text is shown that they may hide."""
        if arguments and self.show in self.index.opened.shows_more:
            raise OptionError(
                f"show={self.show!r} shows text of this index, whatever {', '.join(arguments)} may hide: leave one out"
            )

    def passages(self, question: str, hits: Sequence[Hit]) -> list[Passage]:
        """The passages, best first. Raises `OptionError`: the question is no string."""
        return self.index.opened.behind(question, hits, self)

    def alone(self, question: str, where: Where | None) -> list[Passage]:
        """The index's own answer, best first, of the documents whose metadata `where` allows."""
        return self.index.opened.passages(question, self, where)


class HitIndex(ABC):
    """What gives passages of hits: an opened index, or a store."""

    @abstractmethod
    def behind(self, question: str, hits: Sequence[Hit], options: Behind) -> list[Passage]:
        """Passages of hits, which are best first."""

    shows_more: ClassVar[tuple[str, ...]] = ("all",)  # text that a retriever's filter may hide

    def check_show(self, show: Show) -> None:
        """Raise `OptionError`: it cannot show that."""

    @abstractmethod
    def passages(self, question: str, options: Behind, where: Where | None) -> list[Passage]:
        """The index's own answer, best first, of the documents whose metadata `where` allows."""


IndexLike: TypeAlias = str | Path | Index | HitIndex


class LocalIndex:
    """An index on this machine, which is opened when it is asked, and again when a newer one has been saved into it.

    Args:
        index: the folder of a saved index, or an index.
        documents: instead of an index: indexed in memory, by words.

    Raises:
        OptionError: not exactly one of both is given.
        DataError: the folder has no index.
    """

    def __init__(
        self,
        index: IndexLike | None = None,
        documents: Iterable[Document] | None = None,
    ) -> None:
        if (index is None) == (documents is None):
            raise OptionError("give either an index (its folder, or an index) or documents")
        if documents == []:
            raise OptionError(
                "documents is empty: passages are made of the texts of your documents"
            )
        if isinstance(index, str | Path):
            index = Path(index).absolute()  # the working folder may change
            read_manifest(index)
        elif documents is None and not isinstance(index, HitIndex | Index):
            raise OptionError(
                f"index is a saved index's folder or an index, got {type(index).__name__}; documents have a "
                "name: documents=documents"
            )
        self.given, self._documents = index, documents
        self._lock = Lock()
        self._saved: FolderIndex | None = None
        self._opened = index if isinstance(index, HitIndex) else None
        self._warned: set[str] = set()
        self.last: tuple[Mapping[str, object], Behind] | None = None  # options, and what they made

    @property
    def opened(self) -> HitIndex:
        """The index as it was last saved. Raises `DataError`: the folder has none any more, or it is damaged."""
        with self._lock:
            if isinstance(self.given, Path):
                # With scores and benchmarks, only for a folder.
                from chunkcore.scale.folder_index import open_index

                saved = self._saved
                latest = saved.latest() if saved else open_index(self.given)
                if latest is not saved:
                    self._saved, self._opened = latest, OpenedIndex(latest.index, latest)
            elif self._opened is None:
                if self._documents is not None:
                    corpus = chunk_corpus(list(self._documents), UNITS)
                    self.given = get_retriever("passages:lexical").index(corpus)
                    self._documents = None
                self._opened = OpenedIndex(cast(Index, self.given))
            return cast(HitIndex, self._opened)

    def warn_of_few(self, retriever: object, count: int, fetch_k: int | None) -> None:
        """Warn once of a retriever that gives fewer hits than asked for, and cannot be asked for more."""
        if fetch_k is not None and count < fetch_k:
            _warn_once(
                self._warned,
                "few",
                f"{type(retriever).__name__} takes no number of hits in a call, and gave {count}: let it give about "
                f"{fetch_k} by its own options, or give fetch_k=None",
            )

    def instead_of(self, deep: R, retriever: R, fetch_k: int | None, error: ValueError) -> R:
        """The retriever, with a warning, where `deep` refused to give so many hits; raises the error if it is that."""
        if deep is retriever:
            raise error
        _warn_once(
            self._warned,
            "few",
            f"{type(retriever).__name__} gives no {fetch_k} hits ({shortened(str(error), 200)}), and is asked for as "
            "many as it gives by itself: give the fetch_k that it can give, or fetch_k=None",
        )
        return retriever

    def __deepcopy__(self, memo: object) -> LocalIndex:
        return self  # nothing in it changes but what was warned of

    def __reduce__(self) -> tuple[type[LocalIndex], tuple[object, object]]:
        return LocalIndex, (self.given, self._documents)


class Indexed(BaseModel):
    """An index, and the limits of its answers, as the fields of a framework's class.

    A wrong value raises one sentence of `Behind`, without pydantic's frame, and leaves the old one.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: SkipValidation[IndexLike | None] = None
    documents: SkipValidation[Iterable[Any] | None] = Field(default=None, exclude=True, repr=False)
    max_tokens: SkipValidation[MaxTokens] = 1000
    k: SkipValidation[int | None] = None
    counter: SkipValidation[TokenCounterLike] = "cl100k_base"
    _local: LocalIndex | None = PrivateAttr(default=None)
    _source: tuple[object, object] = PrivateAttr(default=(..., ...))  # what the local index is of

    if not TYPE_CHECKING:  # type checkers know the fields

        def __init__(self, *by_place: object, **fields: object) -> None:
            if by_place:
                raise OptionError("options have names, as in documents=documents")
            check_option_names(type(self).__name__, fields, type(self).model_fields)
            super().__init__(**fields)
            self._check()

        def __setattr__(self, name: str, value: object) -> None:
            before = vars(self).get(name)
            super().__setattr__(name, value)
            if name in type(self).model_fields:
                try:
                    self._check()
                except ValueError:
                    super().__setattr__(name, before)
                    raise

    def _check(self) -> None:
        """Raise `ValueError`: an option is out of range."""
        self._behind()

    @abstractmethod
    def _core_documents(self) -> list[Document] | None:
        """The documents as chunkcore's."""

    def _behind(self, k: int | None = None, max_tokens: MaxTokens | None = None) -> Behind:
        """What answers with the options; `k` and `max_tokens` are those of a call."""
        source = self.index, self.documents
        if self._local is None or any(map(is_not, source, self._source)):
            self._local, self._source = LocalIndex(self.index, self._core_documents()), source
        return Behind.of(self, self._local, k, max_tokens)


class Shown(Indexed):
    """The fields of a class that shows passages of hits."""

    show: SkipValidation[Show] = "hits"
    balance: SkipValidation[float] = BALANCE
    order: SkipValidation[Order] = "score"


_ADVICE = {
    "elsewhere": "Index the documents that the retriever searches",
    "ambiguous": "Let the splitter state its chunks' places: chunkadapters.exact makes it do so",
}


def _warn_once(warned: set[str], reason: str, message: str) -> None:
    if reason not in warned:
        warned.add(reason)
        warn_user(message, PassageWarning)


class OpenedIndex(HitIndex):
    """An index, and where hits stand in its documents. `saved` has its files."""

    def __init__(self, index: Index, saved: FolderIndex | None = None) -> None:
        self.index = index
        self.documents = {document.id: document for document in index.corpus.documents}
        self._saved = saved
        self.warned: set[str] = set()  # reasons, and documents that have changed

    @cached_property
    def _locator(self) -> Locator:
        return Locator(self.documents, changed=self._changed)

    def passages(self, question: str, options: Behind, where: Where | None) -> list[Passage]:
        if not isinstance(question, str):
            raise OptionError(f"an index takes one question as a string, got {kind_of(question)}")
        index = self.index if where is None else self.index.within(where)
        fitting: list[Retrieved] = []
        if options.max_tokens == "auto":
            fitting += index.retrieve(question, options.k, "auto")
        else:
            left = Budget(options.max_tokens, options.counter)
            for piece in _pieces(index, question, options.k, left):
                if not left.fits(piece.text):
                    fitting += cut_unit(piece, left)
                    break
                fitting.append(piece)
                left.take(piece.text)
        names = {piece.document_id for piece in fitting}
        self._changed(names, "passages of them have the old text")
        return [self._passage(piece, (), self.documents) for piece in fitting]

    def behind(self, question: str, hits: Sequence[Hit], options: Behind) -> list[Passage]:
        index = self.index
        if not isinstance(index, WindowIndex):
            raise OptionError(
                "passages behind a retriever need an index of the retriever passages: index with it"
            )
        if index.superseded:
            _warn_once(
                self.warned,
                "superseded",
                "this index was updated, and the passages are of its old texts: make the retriever again with what "
                "update or delete returned, or with a folder, which is opened again after each save",
            )
        pieces, whole = self._pieces(hits, options.show)
        shown = whole
        if options.show == "all":
            shown = "all"
            changed = self._changed(self.documents)
            if changed:
                unchanged = [name for name in self.documents if name not in changed]
                index = cast(WindowIndex, index.within(unchanged))
        textless = [number for number, hit in enumerate(hits) if not hit.text.strip()]
        # A piece that two hits share is one.
        texts = {id(piece): piece for number, piece in enumerate(pieces) if number not in textless}
        answer = index.behind(
            question,
            list(texts.values()),
            max_tokens=options.max_tokens,
            k=options.k,
            show=shown,
            balance=options.balance,
            counter=options.counter,
            order=options.order,
        )
        passages = [self._passage(retrieved, pieces, whole) for retrieved in answer]
        for number in textless:
            passages.insert(number, Passage(pieces[number], None, (number,)))
        return passages[: options.k]

    def _pieces(self, hits: Sequence[Hit], show: Show) -> tuple[list[Retrieved], Collection[str]]:
        """The hits, with their places where they have some, and the documents that are shown whole.

        A text that a model wrote, or that stands at several places of its document, opens a passage only where the
        document is shown whole.
        """
        verdicts = self._locator.locate_all(hits)
        whole: Collection[str] = {
            verdict.piece.document_id for verdict in verdicts if verdict.piece.spans
        }
        if callable(show):
            answers = {name: show(own_copy(self.documents[name].metadata)) for name in whole}
            whole = [name for name, answer in answers.items() if truth("show", answer, name)]
        elif show != "whole":
            whole = self.documents if show == "all" else ()
        pieces = []
        alone: dict[object, Retrieved] = {}
        lost: dict[str, list[tuple[Hit, Verdict]]] = {}
        for hit, verdict in zip(hits, verdicts, strict=True):
            piece = verdict.piece
            has_text = bool(hit.text.strip())
            is_whole = piece.document_id in whole
            is_sure = verdict.kind == "placed" and not hit.derived
            if not (piece.spans and has_text and (is_sure or is_whole)):
                said = hit.id, hit.text, repr(hit.metadata)  # which two retrievers may give
                piece = alone.setdefault(said, unplaced(hit))
            if has_text and not hit.derived and not is_whole:
                lost.setdefault(verdict.kind, []).append((hit, verdict))
            pieces.append(piece)
        for kind, advice in _ADVICE.items():
            if kind in lost:
                hit, verdict = lost[kind][0]
                _warn_once(
                    self.warned,
                    kind,
                    f"{len(lost[kind])} of {len(hits)} hits have no certain place in the index and stay as they are, "
                    f"such as {hit.text[:40]!r}: {verdict.reason}. {advice}",
                )
        return pieces, whole

    def _passage(
        self, retrieved: Retrieved, pieces: Sequence[Retrieved], whole: Collection[str]
    ) -> Passage:
        """A passage of the answer, with the numbers of its document's hits."""
        if not retrieved.spans:
            alone = [number for number, piece in enumerate(pieces) if not piece.spans]
            same = [number for number in alone if pieces[number] is retrieved]
            cut = [number for number in alone if pieces[number].text.startswith(retrieved.text)]
            return Passage(retrieved, None, (*same, *cut)[:1])
        name = retrieved.document_id
        inside: list[int] = []
        others: list[int] = []
        for number, piece in enumerate(pieces):
            if piece.document_id != name:
                continue
            pairs = itertools.product(piece.spans, retrieved.spans)
            is_inside = any(one.start < other.end and other.start < one.end for one, other in pairs)
            (inside if is_inside else others).append(number)
        copies = tuple(self._passage(source, pieces, whole) for source in retrieved.sources)
        document, numbers = self.documents[name], (tuple(inside), tuple(others))
        return Passage(retrieved, document, *numbers, name in whole, copies)

    def _changed(
        self,
        names: Iterable[str],
        consequence: str = "their hits stay as they are, and nothing else of them is shown",
    ) -> Collection[str]:
        """Those of these documents whose files have another text now; each is told of once."""
        if self._saved is None:
            return ()
        changed = self._saved.changed(names)
        new = sorted(set(changed) - self.warned)
        self.warned.update(new)
        if new:
            command = "index.update(documents).save(folder)"
            if self._saved.root:
                command = "chunkcore index"
            warn_user(
                f"{len(new)} documents have changed since they were indexed, such as {new[0]!r}: {consequence}. Save "
                f"the index anew: {command}",
                PassageWarning,
            )
        return changed


def _pieces(index: Index, question: str, k: int | None, budget: Budget) -> Sequence[Retrieved]:
    """The index's pieces that have the budget's tokens, or all."""
    counter, max_tokens = budget.counter, budget.left
    pieces: Sequence[Retrieved] = ()
    while True:
        count = len(pieces)
        pieces = index.answers([question], k, max_tokens, counter=counter)[0][:k]
        tokens = counter.count_many([piece.text for piece in pieces]).sum()
        is_full = tokens >= budget.left or len(pieces) == count
        if is_full or isinstance(index, PassageIndex):
            return pieces
        max_tokens *= 2  # the index' chunker counts otherwise


def core_documents(
    documents: Iterable[D | Document] | None,
    kind: type[D],
    framework: str,
    to_core: Callable[[D], Document],
) -> list[Document] | None:
    """A framework's documents, or chunkcore's, as chunkcore's, in their order; None for None.

    Those that share an id get a number, as in ``tea.md#2``.

    Raises `DataError` for anything else.
    """
    if documents is None:
        return None
    rows = []
    for document in documents:
        if isinstance(document, Document):
            rows.append(document)
        elif isinstance(document, kind):
            row = to_core(document)
            rows.append(replace(row, marks=marks_of(row.metadata)))
        else:
            raise DataError(
                f"expected a list of {framework} or chunkcore documents, got {kind_of(document)} in it: "
                'put one document into a list; load_documents("docs/") reads files'
            )
    counts = Counter(row.id for row in rows)
    numbers = {name: itertools.count(1) for name, count in counts.items() if count > 1}
    for place, row in enumerate(rows):
        name = row.id
        while name in counts and row.id in numbers:
            name = f"{row.id}#{next(numbers[row.id])}"
        rows[place] = replace(row, id=name)
    return rows
