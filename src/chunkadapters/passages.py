"""Passages of a framework's hits: exact spans under a budget of tokens, from one search or several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeVar

from pydantic import BaseModel, Field, PrivateAttr, field_serializer
from typing_extensions import Self

from chunkadapters.exact.base import counter_of
from chunkadapters.hits import Hit, merged_metadata
from chunkadapters.places import PARTS, WHOLE, Origin, PlaceKeys
from chunkcore.chunkers import Chunker
from chunkcore.document import Chunk, Document
from chunkcore.errors import DataError, OptionError
from chunkcore.models import Embedder
from chunkcore.registry import check_number
from chunkcore.retrieval import ChunkedCorpus, TextVectors, assemble, chunk_corpus, combine, get_retriever
from chunkcore.run import Retrieved
from chunkcore.tokens import TokenCounter, get_counter

COUNTER = "cl100k_base"
DEPTH = 50  # hits of each search
MAX_TOKENS = 1000
UNITS = "sentence:size=50"

D = TypeVar("D")
Counter = str | TokenCounter | Callable[[str], int]


class PassageWarning(UserWarning):
    """Passages cannot be as good as they could be: hits state no places, or chunks are too large to choose from."""


@dataclass(frozen=True, kw_only=True)
class PassageMaker:
    """Makes passages of hits.

    Attributes:
        max_tokens: of the passages' texts in all.
        k: the most passages; None for no limit.
        counter: a counter's name, a `TokenCounter`, or a function from a text to its tokens.

    Raises:
        OptionError: a limit is under 1, or there is no such counter.
    """

    max_tokens: int = MAX_TOKENS
    k: int | None = None
    counter: Counter = COUNTER

    def __post_init__(self) -> None:
        check_number("max_tokens", self.max_tokens, 1)
        check_number("k", 1 if self.k is None else self.k, 1)
        _ = self.tokens

    @cached_property
    def tokens(self) -> TokenCounter:
        counter = self.counter
        return counter_of(counter) if callable(counter) else get_counter(counter)

    def passages(
        self, rankings: Sequence[Sequence[D]], hit_of: Callable[[D], Hit], beside: Sequence[D] = ()
    ) -> list[tuple[Retrieved, list[D]]]:
        """The passages, best first, each with the documents of its parts, in reading order.

        Args:
            rankings: each search's documents, best first.
            hit_of: from a framework's document to the hit.
            beside: documents beside these.
        """
        known = [*chain.from_iterable(rankings), *beside]
        hits = list(map(hit_of, known))
        units = [_unit(hit, number) for number, hit in enumerate(hits)]
        found = len(known) - len(beside)
        self._warn(units[:found], hits)
        rest = iter(units)
        searches = [list(islice(rest, len(ranking))) for ranking in rankings]
        made = assemble(combine(searches, neighbours=rest), self.max_tokens, k=self.k, counter=self.tokens)
        return [(each, [known[int(part.id)] for part in each.parts]) for each in made]

    def _warn(self, units: Sequence[Retrieved], hits: Sequence[Hit]) -> None:
        if any(not unit.spans and not hit.derived for unit, hit in zip(units, hits, strict=False)):
            warnings.warn(
                "some hits do not say where in their document they stand, so that nothing is joined to them: index "
                "chunks from chunkadapters' splitter, or let another splitter write its offsets",
                PassageWarning,
                stacklevel=4,
            )
        sizes = self.tokens.count_many([unit.text for unit in units])
        if len(sizes) and 3 * float(sizes.mean()) > self.max_tokens:
            warnings.warn(
                f"the hits have more than a third of max_tokens={self.max_tokens} each, so that there is little to "
                f"choose from: index smaller chunks, such as {UNITS!r}, or raise max_tokens",
                PassageWarning,
                stacklevel=4,
            )


class PassageLimits(BaseModel):
    """The limits as fields of a framework's class; see `PassageMaker`."""

    max_tokens: int = Field(default=MAX_TOKENS, strict=True)
    k: int | None = Field(default=None, strict=True)
    counter: Any = COUNTER
    _maker: PassageMaker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._maker = PassageMaker(max_tokens=self.max_tokens, k=self.k, counter=self.counter)

    @field_serializer("counter")
    def _name_of_counter(self, counter: Counter) -> str:
        return counter_name(counter)


def _unit(hit: Hit, number: int) -> Retrieved:
    placed = bool(hit.parts())
    return Retrieved(hit.document if placed else "", hit.spans if placed else (), hit.score, hit.text, id=str(number))


class PassageSearch:
    """The core's retriever ``passages`` over small chunks that do not overlap.

    Args:
        corpus: the chunks.
        embedder: None for a search by words alone.
        maker: the limits.

    Raises:
        DataError: chunks overlap.
    """

    def __init__(self, corpus: ChunkedCorpus, embedder: Embedder | None, maker: PassageMaker) -> None:
        self._maker = maker
        method = get_retriever("passages:lexical" if embedder is None else "passages")
        self._index = method.index(corpus, None if embedder is None else TextVectors(embedder))

    @classmethod
    def of_texts(
        cls, texts: Iterable[tuple[str, Any]], chunker: Chunker, embedder: Embedder | None, maker: PassageMaker
    ) -> Self:
        """Over the chunks of texts, each with its title or None; a passage's document is the number of its text."""
        documents = [
            Document(str(number), text, {"title": title} if title else {}) for number, (text, title) in enumerate(texts)
        ]
        return cls(chunk_corpus(documents, chunker), embedder, maker)

    def search(self, query: str) -> list[Retrieved]:
        """The passages, best first."""
        maker = self._maker
        return list(self._index.answers([query], maker.k, maker.max_tokens, counter=maker.tokens)[0])


def listed(documents: Any, kind: type[Any], framework: str) -> list[Any]:
    """The documents as a list. Raises `DataError`: one document, or something else."""
    if isinstance(documents, kind) or not isinstance(documents, Iterable):
        raise DataError(f"expected a list of {framework} documents, got {type(documents).__name__}: put it into a list")
    found = list(documents)
    if wrong := [type(each).__name__ for each in found if not isinstance(each, kind)]:
        raise DataError(f"expected {framework} documents, got {wrong[0]}")
    return found


def as_chunk(found: Retrieved, document_id: str, index: int) -> Chunk:
    """A passage as a chunk of its document."""
    return Chunk(document_id, index, found.spans, found.text, 0, fingerprint="passages")


def passage_metadata(
    found: Retrieved, members: Sequence[Mapping[Any, Any]], ids: Sequence[str], keys: PlaceKeys
) -> dict[Any, Any]:
    """The metadata of the passage's first member, all members' pages, the passage's place and its parts."""
    return merged_metadata(members, ids) | keys.write(found.spans) | {PARTS: parts_of(found, keys, ids)}


def parts_of(
    found: Retrieved, keys: PlaceKeys, ids: Sequence[str] = (), origin: Origin = WHOLE
) -> list[dict[str, Any]]:
    """The parts as metadata: the place, score and, where known, id of each; `origin` is where the text stands."""
    return [
        {**({"id": ids[number]} if ids else {}), **keys.write(origin.place(part.spans)), "score": part.score}
        for number, part in enumerate(found.parts)
    ]


def counter_name(counter: Counter) -> str:
    """The counter for a configuration.

    Raises:
        OptionError: it is a function.
    """
    name = counter if isinstance(counter, str) else getattr(counter, "name", "function:")
    if name.startswith("function:"):
        raise OptionError("counter is a function, which cannot be written down: name a counter")
    return name
