"""`Sharded`: what `Dense` and `Passages` find, in shards, made and searched wherever a mapper sends the work."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chunkcore.columns import BLOCK
from chunkcore.errors import DataError, OptionError
from chunkcore.registry import check_ranges
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.dense import Dense
from chunkcore.retrieval.hybrid import get_retriever, quoted
from chunkcore.retrieval.lexicon import Postings, word_keys
from chunkcore.retrieval.passages import Passages, WindowIndex, dense_of, lexical_of
from chunkcore.retrieval.search import Mapper, Shard, top_k_shards
from chunkcore.retrieval.vectors import StoredVectors, TextVectors, unseen
from chunkcore.retrieval.windows import (
    Asked,
    DenseKind,
    Kind,
    Moments,
    Ranges,
    Reals,
    Units,
    Weights,
    moments,
    standardised,
    weights_of,
)
from chunkcore.spans import Numbers, Scores


@retrievers.register("sharded")
@dataclass(frozen=True, kw_only=True)
class Sharded(RetrievalMethod):
    """What `Dense` or `Passages` finds, in shards that are embedded and searched wherever a mapper sends the work.

    Workers embed each shard and write it to the folder; the tasks of a search read it. The caller holds the shards in
    flight and the best hits of each query. Shards of `Passages` are whole documents; they are asked for the windows
    that hold each word, then for means and deviations, then for the best units. So scores are those of one index but
    for rounding, about 1e-6.

    Attributes:
        mapper: `map`, a thread or process pool's ``map``, or `RayMap` of `chunkadapters.ray`. A lazy mapper keeps few
            texts in flight.
        folder: where vectors are kept, 4 bytes a number; every worker must see it. None for the system's temporary
            folder.
        size: chunks per shard; of `Passages` at least so many.
        method: `Dense`, or `Passages` without `hits`; as a string ``sharded:passages``.

    Raises `OptionError`: size is under 1, or another method; when indexing, the folder is missing, or chunks have
    segments.

    >>> from types import SimpleNamespace
    >>> from chunkcore.document import Chunk, Span
    >>> ones = lambda texts: np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> chunks = [Chunk("d", i, (Span(0, 9),), text, 1) for i, text in enumerate(["a", "aaa", "aaaaaaaaa"])]
    >>> index = Sharded(size=2).index(ChunkedCorpus(chunks), TextVectors(model))
    >>> index.search(["aaaaaaaa"], 2).indices.tolist()
    [[2, 1]]
    """

    mapper: Mapper = field(default=map, compare=False)
    folder: Path | str | None = None
    size: int = BLOCK
    method: RetrievalMethod = field(default_factory=Dense)

    @classmethod
    def read(cls, parts: Sequence[str], options: Mapping[str, Any]) -> RetrievalMethod:
        method = {"method": get_retriever(parts[0])} if parts else {}
        return super().read(parts[1:], {**options, **method})

    @property
    def name(self) -> str:
        return self.kind if self.method == Dense() else f"{self.kind}:{quoted(self.method.name)}"

    @property
    def makes_passages(self) -> bool:
        return self.method.makes_passages

    @property
    def embeds(self) -> bool:
        return self.method.embeds

    def validate(self) -> None:
        check_ranges(self, size=1)
        plain = isinstance(self.method, Passages) and self.method.hits is None
        if not (plain or self.method == Dense()):
            raise OptionError(f"sharded: the method is dense, or passages without hits; got {self.method.name}")

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        if self.folder is not None and not Path(self.folder).is_dir():
            raise OptionError(
                f"sharded: the folder {str(self.folder)!r} is not there: make it, where all workers see it"
            )
        if self.embeds and corpus.segmented:
            raise OptionError("sharded: these chunks have segments, which are searched together: leave sharded out")
        folder = tempfile.TemporaryDirectory(prefix="vectors-", dir=self.folder)  # goes with the index
        stored = []
        if self.embeds:
            vectors = vectors or TextVectors()
            stored = vectors.stored(corpus, folder.name, mapper=self.mapper, size=self.size)
        if isinstance(self.method, Passages):
            return _PassagesByShards(corpus, vectors, stored, folder, self, self.method)
        assert vectors is not None
        return _ByShards(corpus, vectors, stored, folder, self.mapper)


class _ByShards(Index):
    def __init__(
        self,
        corpus: ChunkedCorpus,
        vectors: TextVectors,
        stored: Sequence[StoredVectors],
        folder: tempfile.TemporaryDirectory[str],
        mapper: Mapper,
    ) -> None:
        super().__init__(corpus)
        self._vectors = vectors
        self._mapper = mapper
        self._folder = folder
        self._stored = stored

    def search(self, queries: Sequence[str], k: int) -> Hits:
        shards = (Shard(each.start, each.load) for each in self._stored)
        found = top_k_shards(self._vectors.queries(queries), shards, k, mapper=self._mapper)
        return Hits(found.indices, found.scores.astype(np.float64))


class _Part(NamedTuple):
    """What a shard of whole documents is made of: the number of its first unit and document, `Units.firsts`, and of
    each unit its chunk, its tokens and, for the lexical kind, its text.
    """

    start: int
    document: int
    firsts: Numbers
    chunks: Numbers
    tokens: Numbers
    texts: Sequence[str]


class _Made(NamedTuple):
    """A shard in a file: its units, its dense kind and its postings."""

    start: int
    document: int
    size: int
    path: str
    means: Sequence[float]  # `LexicalKind.means`

    def load(self, method: Passages) -> tuple[Units, DenseKind | None, Postings | None]:
        """Raises `DataError`: the file is missing or was changed."""
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                found = dict(arrays)
            units = Units(found["firsts"])
            measured = [found[name] for name in found if name.startswith(_MEASURED)]  # in the order of writing
            dense = dense_of(method, units, found["rows"], found["tokens"], measured) if method.embeds else None
            posted = Postings(**{name: found[name] for name in _POSTED}) if "lexical" in method.kinds else None
        except FileNotFoundError as error:
            raise unseen(self.path) from error
        except (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.path} holds no shard: it has been changed") from error
        return units, dense, posted


_POSTED = ("keys", "begins", "texts", "counts", "lengths")  # of `Postings`
_MEASURED = "measured"


def _make(part: _Part, *, stored: Sequence[StoredVectors], folder: str, method: Passages) -> _Made:
    units, means = Units(part.firsts), list[float]()
    arrays: dict[str, Any] = {"firsts": part.firsts}
    if stored:
        rows = np.zeros((len(units), stored[0].dimensions), dtype=np.float32)
        for each in stored:
            own = np.flatnonzero((part.chunks >= each.start) & (part.chunks < each.start + each.size))
            if len(own):
                rows[own] = each.load()[part.chunks[own] - each.start]
        measured = dense_of(method, units, rows, part.tokens).measured
        arrays |= {"rows": rows, "tokens": part.tokens}
        arrays |= {f"{_MEASURED}{number}": each for number, each in enumerate(measured)}
    if "lexical" in method.kinds:
        posted = Postings.of(part.texts, method.words)
        means = list(lexical_of(method, units, posted).means)
        arrays |= {name: getattr(posted, name) for name in _POSTED}
    path = Path(folder, f"{part.start}.npz")
    np.savez(path, **arrays)
    return _Made(part.start, part.document, len(units), str(path), means)


class _Questions(NamedTuple):
    """What a shard needs to know: the queries, the documents that each names (None: all), their vectors; and of all
    shards `LexicalKind.means` and words' weights.
    """

    method: Passages
    queries: Sequence[str]
    named: Sequence[Numbers | None]
    vectors: Sequence[Reals | None]
    means: Sequence[float]
    weights: Weights

    def of(self, shard: _Made) -> tuple[Units, list[tuple[Ranges, Asked]]]:
        """The shard's units; and of each query, those that are asked, and the question."""
        units, dense, posted = shard.load(self.method)
        found: list[tuple[Ranges, Asked]] = []
        kinds: list[Kind] = [] if dense is None else [dense]
        if posted is not None:
            kinds.append(lexical_of(self.method, units, posted, self.means, self.weights))
        for query, named, vector in zip(self.queries, self.named, self.vectors, strict=True):
            asked = [(kind, kind.asked(query, vector)) for kind in kinds]
            own = units if named is None else units.ranges(named - shard.document)
            found.append((own, asked))
        return units, found


def _held(shard: _Made, *, keys: Sequence[str], method: Passages) -> tuple[int, Numbers]:
    units, _, posted = shard.load(method)
    assert posted is not None
    lexical = lexical_of(method, units, posted)
    return shard.start, np.array([lexical.held(key) for key in keys])


def _moments(shard: _Made, *, questions: _Questions) -> tuple[int, list[list[Moments]]]:
    return shard.start, [moments(asked, own) for own, asked in questions.of(shard)[1]]


def _ranked(
    shard: _Made, *, questions: _Questions, told: Sequence[Sequence[Moments]], k: int
) -> tuple[int, list[tuple[Numbers, Scores]]]:
    units, questioned = questions.of(shard)
    found = []
    for (own, asked), of_all in zip(questioned, told, strict=True):
        scores = standardised(asked, own, of_all)
        numbers = np.arange(len(own), dtype=np.int64) if own.numbers is None else own.numbers
        places = units.with_gaps(numbers, scores, k)
        found.append((numbers[places] + shard.start, scores[places]))
    return shard.start, found


class _PassagesByShards(WindowIndex):
    def __init__(
        self,
        corpus: ChunkedCorpus,
        vectors: TextVectors | None,
        stored: Sequence[StoredVectors],
        folder: tempfile.TemporaryDirectory[str],
        options: Sharded,
        method: Passages,
    ) -> None:
        super().__init__(corpus, method.counter)
        self._vectors = vectors
        self._folder = folder
        self._method = method
        self._mapper = options.mapper
        make = partial(_make, stored=stored, folder=folder.name, method=method)
        self._shards = sorted(options.mapper(make, self._parts(options.size)))
        if sum(each.size for each in self._shards) != len(self._units):
            raise DataError(f"{len(self._shards)} shards have other units than were sent: expected each once")
        for each in stored:
            Path(each.path).unlink()
        weighted = [np.array(each.means) * each.size for each in self._shards]
        self._means: list[float] = (np.sum(weighted, axis=0) / max(1, len(self._units))).tolist() if weighted else []

    def _parts(self, size: int) -> Iterator[_Part]:
        units, tokens = self._units, self.corpus.token_counts
        begins = np.searchsorted(units.firsts, np.arange(0, len(units), size))  # documents
        for first, last in pairwise(np.unique([*begins.tolist(), len(units.lengths)]).tolist()):
            own = slice(*units.firsts[[first, last]])
            chunks = units.chunks(np.arange(own.start, own.stop, dtype=np.int64))
            texts = self.corpus.lexical_texts if "lexical" in self._method.kinds else []
            yield _Part(
                int(own.start),
                first,
                units.firsts[first : last + 1] - own.start,
                chunks,
                tokens[chunks],
                [texts[chunk] for chunk in chunks.tolist()] if texts else [],
            )

    def _sent(self, function: Callable[[_Made], tuple[int, Any]]) -> list[Any]:
        found = sorted(self._mapper(function, self._shards), key=lambda each: each[0])
        if [start for start, _ in found] != [each.start for each in self._shards]:
            raise DataError(
                f"{len(self._shards)} shards were to be searched and {len(found)} answered: expected each once"
            )
        return [answer for _, answer in found]

    def scored(self, queries: Sequence[str], k: int) -> Iterator[tuple[Numbers, Scores]]:
        if not self._shards or not len(queries):
            return iter([(np.zeros(0, dtype=np.int64), np.zeros(0))] * len(queries))
        named, rests = zip(*map(self.read, queries), strict=True)
        vectors: list[Reals | None] = [None] * len(queries)
        if self._method.embeds and self._vectors is not None:
            vectors = list(self._vectors.queries(rests))
        weights = {}
        if "lexical" in self._method.kinds:
            keys = sorted({key for query in rests for key in word_keys(query, self._method.words)})
            held = np.sum(self._sent(partial(_held, keys=keys, method=self._method)), axis=0)
            weights = {key: weights_of(own, len(self._units)) for key, own in zip(keys, held, strict=True)}
        questions = _Questions(self._method, rests, named, vectors, self._means, weights)
        parts = zip(*self._sent(partial(_moments, questions=questions)), strict=True)
        told = [[Moments.together(scale) for scale in zip(*filter(None, each), strict=True)] for each in parts]
        ranked = self._sent(partial(_ranked, questions=questions, told=told, k=k))
        pairs = (zip(*each, strict=True) for each in zip(*ranked, strict=True))
        return ((np.concatenate(numbers), np.concatenate(scores)) for numbers, scores in pairs)

    def deeper(self, query: str, k: int, numbers: Numbers, scores: Scores) -> tuple[Numbers, Scores]:
        return next(self.scored([query], k))
