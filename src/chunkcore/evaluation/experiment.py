"""`run_experiment`: cut, embed, search and score with any number of strategies, each distinct text embedded once."""

from __future__ import annotations

import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.columns import Keys, Mapped, blocks, text_keys
from chunkcore.concurrency import Progress
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import Depth, Measure, budget_of, measures_at, retrieval_measures
from chunkcore.evaluation.results import ChunkStatistics, Cost, Report
from chunkcore.evaluation.scoring import MinRule, OmegaRule, Scorer
from chunkcore.evaluation.vectors import Asked, Bill, MeteredEmbedder, RunPool, Shared
from chunkcore.models.base import Embedder
from chunkcore.models.cache import CachedEmbedder, EmbeddingCache
from chunkcore.models.counter import EmbedderCounter
from chunkcore.models.llm import Prices, Usage, get_llm
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.retrieval import Dense, Late, RetrievalMethod, get_retriever
from chunkcore.retrieval.base import Hits, Pool, check_search
from chunkcore.run import Retrieved, Run
from chunkcore.tokens import TokenCounter

__all__ = ["CompactChunks", "Cut", "Trial", "TrialPrices", "answer_all", "cut_documents", "run_experiment", "sharing"]


class CompactChunks(Sequence[Chunk]):
    """Chunks of documents that are in memory anyway, each made anew when it is asked for.

    Kept are places and token counts, and what a strategy tells beside them: context, metadata, segments. A chunk that
    is no slice of its document (several spans, a text of its own) is held as it is.

    Args:
        documents: those that the chunks are of.

    >>> fox = Document("fox.txt", "The quick fox naps.")
    >>> chunks = CompactChunks([fox])
    >>> chunks.append(Chunk("fox.txt", 0, (Span(4, 9),), "quick", 1))
    >>> len(chunks), chunks[0].text
    (1, 'quick')
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._numbers = {document.id: number for number, document in enumerate(documents)}
        self._document = array("q")
        self._index = array("q")
        self._start = array("q")
        self._end = array("q")
        self._tokens = array("q")
        self._fingerprint: str | None = None
        self._told: dict[int, tuple[str, Mapping[str, Any], tuple[tuple[Span, ...], ...]]] = {}
        self._whole: dict[int, Chunk] = {}

    def append(self, chunk: Chunk) -> None:
        """Keep a chunk behind the others."""
        if self._fingerprint is None:
            self._fingerprint = chunk.fingerprint
        number = self._numbers.get(chunk.document_id, -1)
        span = chunk.spans[0]
        for column, value in (
            (self._document, number),
            (self._index, chunk.index),
            (self._start, span.start),
            (self._end, span.end),
            (self._tokens, chunk.token_count),
        ):
            column.append(value)
        place = len(self._start) - 1
        if chunk.context or chunk.metadata or chunk.segments:
            self._told[place] = chunk.context, chunk.metadata, chunk.segments
        if number < 0 or self._made(place) != chunk:
            self._told.pop(place, None)
            self._whole[place] = chunk

    @property
    def token_counts(self) -> NDArray[np.int64]:
        """Of each chunk, in its chunker's unit."""
        return np.array(self._tokens, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._start)

    def __iter__(self) -> Iterator[Chunk]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Chunk: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Chunk]: ...
    def __getitem__(self, place: int | slice) -> Chunk | Sequence[Chunk]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        return self._whole[number] if number in self._whole else self._made(number)

    def _made(self, number: int) -> Chunk:
        """The chunk that its numbers tell."""
        document = self._documents[self._document[number]]
        span = Span(self._start[number], self._end[number])
        context, metadata, segments = self._told.get(number) or ("", {}, ())
        return Chunk(
            document.id,
            self._index[number],
            (span,),
            span.slice(document.text),
            self._tokens[number],
            context,
            metadata,
            self._fingerprint or "",
            segments,
        )


@dataclass(frozen=True, eq=False)
class Cut:
    """A strategy's chunks, and what cutting took.

    Attributes:
        seconds: cutting, and the embedding of all texts that the strategy asked the run's embedder for.
        bill: what it asked of the run's embedder.
        usage: what it asked of language models.
    """

    name: str
    chunker: Chunker
    chunks: CompactChunks
    seconds: float
    bill: Bill
    usage: Usage


def sharing(chunker: Chunker, metered: MeteredEmbedder) -> Chunker:
    """The strategy with the run's embedder, where it is to have it, and with its tokens, where it counts them.

    So is the strategy that it stands over. One that has nothing to do with the run's embedder is handed back.
    """
    for name in chunker.option_names():
        inner = getattr(chunker, name)
        if isinstance(inner, Chunker) and (shared := sharing(inner, metered)) is not inner:
            chunker = replace(chunker, **{name: shared})  # type: ignore[arg-type]
    if chunker.token_counter == EmbedderCounter():
        chunker = replace(chunker, counter=EmbedderCounter(metered.embedder))
    overlap = getattr(chunker, "overlap", None)
    if getattr(overlap, "embedder", None) == DEFAULT_MODEL:
        chunker = replace(chunker, overlap=replace(overlap, embedder=metered))  # type: ignore[call-arg]
    if "embedder" not in chunker.option_names():
        return chunker
    own: Any = chunker.embedder  # type: ignore[attr-defined]
    if own == type(chunker).embedder or get_embedder(own).fingerprint == metered.fingerprint:  # type: ignore[attr-defined]
        return replace(chunker, embedder=metered)  # type: ignore[call-arg]
    return chunker


def cut_documents(
    documents: Sequence[Document],
    strategies: Sequence[tuple[str, Chunker]],
    metered: MeteredEmbedder,
    workers: int | None,
    report: Progress,
) -> list[Cut]:
    """Every strategy's chunks of all documents, one strategy after the other.

    Args:
        documents: to cut.
        strategies: by name, as `sharing` gives them.
        metered: the run's embedder.
        workers: threads; as many as there are cores where it is None.
        report: told of "chunk", for each document of each strategy.
    """
    place = {document.id: number for number, document in enumerate(documents, start=1)}
    threads = (os.cpu_count() or 1) if workers is None else workers
    total = len(strategies) * len(documents)
    found = []
    for number, (name, chunker) in enumerate(strategies):
        before = number * len(documents)
        report("chunk", before, total)
        used = _llm_usage(chunker)
        began = time.perf_counter()
        chunks = CompactChunks(documents)
        last = ""
        with metered.billed() as bill:
            for chunk in chunker.chunk_many(documents, workers=threads):
                if last and chunk.document_id != last:
                    report("chunk", before + place[last], total)
                last = chunk.document_id
                chunks.append(chunk)
        elapsed = time.perf_counter() - began
        seconds = max(elapsed - bill.seconds, 0.0) + metered.cost(bill.texts)
        found.append(Cut(name, chunker, chunks, seconds, bill, _less(_llm_usage(chunker), used)))
    report("chunk", total, total)
    return found


def _llm_usage(chunker: Chunker) -> Usage:
    """What the language models of a strategy, and of the one that it stands over, were asked until now."""
    models = {}
    waiting = [chunker]
    while waiting:
        each = waiting.pop()
        waiting += [inner for name in each.option_names() if isinstance(inner := getattr(each, name), Chunker)]
        if isinstance(each, LLMChunker):
            llm = get_llm(each.llm)
            models[id(llm)] = llm
    return sum((getattr(llm, "usage", Usage()) for llm in models.values()), Usage())


def _less(now: Usage, before: Usage) -> Usage:
    return Usage(**{each.name: getattr(now, each.name) - getattr(before, each.name) for each in fields(Usage)})


def answer_all(
    name: str, pool: Pool, method: RetrievalMethod, scorer: Scorer, measures: Sequence[Measure]
) -> tuple[Run, float]:
    """The run of a way of searching on the scorer's benchmark, and the seconds that indexing and searching took.

    A budget of tokens is searched for as deep as it takes: twice as deep, until every query has its tokens, or no
    more is found.

    Args:
        name: the run's.
        pool: the chunks.
        method: how they are searched.
        scorer: its benchmark's queries are asked.
        measures: what will be scored.
    """
    pieces = Mapped(_piece, pool.chunks)
    depth = _depth(scorer, pieces, measures)
    budget = max([0, *(budget_of(measure.k) or 0 for measure in measures if measure.k is not None)])
    sizes = scorer.token_counts(pieces) if budget else np.empty(0, dtype=np.int64)
    queries = scorer.benchmark.queries
    texts = [query.text for query in queries]
    began = time.perf_counter()
    searcher = method.index(pool)
    found = searcher.search(texts, depth)
    while depth < len(pieces) and budget and _wants_more(found, depth, sizes, budget):
        depth *= 2
        found = searcher.search(texts, depth)
    seconds = time.perf_counter() - began
    # In the order of their documents, so that none of these is read from a file twice.
    answers = {i: pieces[i] for i in np.unique(found.indices[found.indices >= 0]).tolist()}
    results = {
        query.id: [_scored(answers[i], score) for i, score in zip(indices, scores, strict=True) if i >= 0]
        for query, indices, scores in zip(queries, found.indices.tolist(), found.scores.tolist(), strict=True)
    }
    return Run(name, results, pieces), seconds


def _depth(scorer: Scorer, pieces: Sequence[Retrieved], measures: Sequence[Measure]) -> int:
    """How many pieces the measures look at, budgets aside."""
    ks = {measure.k for measure in measures}
    deepest = max([1, *(k for k in ks if isinstance(k, int))])
    return max(deepest, int(scorer.depths(pieces).max(initial=0))) if "min" in ks else deepest


def _wants_more(found: Hits, depth: int, sizes: np.ndarray[tuple[int], np.dtype[np.int64]], budget: int) -> bool:
    """Whether a query that may have more to find is under its budget."""
    full = found.counts >= depth
    tokens = np.where(found.indices >= 0, sizes[found.indices], 0).sum(axis=1)
    return bool((full & (tokens < budget)).any())


def _piece(chunk: Chunk) -> Retrieved:
    return Retrieved(chunk.document_id, chunk.spans, 0.0, chunk.text, id=chunk.id)


def _scored(piece: Retrieved, score: float) -> Retrieved:
    # dataclasses.replace would be several times slower, which a million pieces notice.
    return Retrieved(piece.document_id, piece.spans, score, piece.text, id=piece.id)


@dataclass(frozen=True)
class TrialPrices:
    """Of a million tokens, in one currency; None where a price is not known."""

    embedding: float | None
    llm: Prices | None

    def __post_init__(self) -> None:
        if self.embedding is not None and not 0 <= self.embedding < float("inf"):
            raise OptionError(f"embed_price is at least 0, got {self.embedding}")

    def add(self, cost: Cost, cut: Cut) -> Cost:
        """The cost with its money, where there is a price for all that was used."""
        if self.embedding is None and self.llm is None:
            return cost
        money = 0.0
        if cost.embedded_texts:
            if self.embedding is None or cost.embedded_tokens is None:
                return cost
            money += self.embedding * cost.embedded_tokens / 1_000_000
        if cut.usage.calls:
            if self.llm is None:
                return cost
            money += cut.usage.cost(self.llm)
        return replace(cost, money=money)


@dataclass(frozen=True, eq=False)
class Trial:
    """One strategy's chunks, searched in one way."""

    name: str
    cut: Cut
    pool: RunPool
    method: RetrievalMethod

    def report(self, scorer: Scorer, wanted: Sequence[Measure], shared: Shared, prices: TrialPrices) -> Report:
        """Search, score, and tell what it took.

        Args:
            scorer: its benchmark's queries are asked.
            wanted: what is scored.
            shared: what all trials have in common.
            prices: what models cost.
        """
        with self.pool.noted() as asked:
            run, seconds = answer_all(self.name, self.pool, self.method, scorer, wanted)
        metered = shared.metered
        own = self.pool.keys if asked.chunks else text_keys([])
        cost = self._cost(asked, own, scorer, shared)
        questions = [query.text for query in scorer.benchmark.queries]
        embed = metered.cost(own) + asked.elsewhere
        embed += shared.late.seconds if asked.late else 0.0
        embed += metered.cost(questions) if asked.queries else 0.0
        search = max(seconds - asked.seconds, 0.0)
        run = replace(run, seconds={"chunk": self.cut.seconds, "embed": embed, "search": search})
        report = scorer.score(run, wanted)
        return replace(
            report,
            chunks=self._statistics(own, scorer.counter, metered),
            cost=prices.add(cost, self.cut),
            search_recall=asked.search_recall,
        )

    def _cost(self, asked: Asked, own: Keys, scorer: Scorer, shared: Shared) -> Cost:
        """What this strategy and this search take of models."""
        metered, bill = shared.metered, self.cut.bill
        texts = np.union1d(own, bill.texts)
        tokens = metered.tokens_read(texts)
        asking = [query.text for query in scorer.benchmark.queries] if asked.queries else []
        queries = np.unique(text_keys(asking))
        documents = shared.documents if asked.late else ()
        if asked.late and tokens is not None:
            tokens += shared.late.tokens
        return Cost(
            source_tokens=scorer.tokens.size,
            embedder_calls=bill.calls
            + metered.batches(len(np.setdiff1d(own, bill.texts, assume_unique=True)))
            + len(documents),
            embedded_texts=len(texts) + len(documents),
            embedded_tokens=tokens,
            query_texts=len(queries),
            query_tokens=metered.tokens_read(queries),
            llm_calls=self.cut.usage.calls,
            llm_kept_answers=self.cut.usage.kept_answers,
            llm_input_tokens=self.cut.usage.input_tokens,
            llm_output_tokens=self.cut.usage.output_tokens,
            seconds=metered.cost(texts)
            + metered.cost(queries)
            + asked.elsewhere
            + (shared.late.seconds if asked.late else 0.0),
        )

    def _statistics(self, own: Keys, counter: TokenCounter, metered: MeteredEmbedder) -> ChunkStatistics:
        chunks = self.cut.chunks
        if self.cut.chunker.token_counter == counter:
            lengths = chunks.token_counts
        else:
            lengths = np.concatenate([counter.count_many([chunk.text for chunk in some]) for some in blocks(chunks)])
        most = metered.max_tokens
        known = metered.token_counts(own)
        if known is None or most is None:
            return ChunkStatistics(lengths)
        over = known - most
        return ChunkStatistics(lengths, int((over > 0).sum()), int(np.maximum(over, 0).sum()))


def run_experiment(
    benchmark: Benchmark,
    chunkers: Sequence[Chunker] | Callable[[Embedder], Sequence[Chunker]],
    embedder: Embedder | str | Sequence[Embedder | str] = DEFAULT_MODEL,
    *,
    ks: Sequence[Depth] = (5, 10, "min"),
    measures: Iterable[Measure | str] = (),
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
    omega_rule: OmegaRule = "once",
    cache: EmbeddingCache | Path | str | None = None,
    retrievers: Sequence[str | RetrievalMethod] = ("dense",),
    late: bool = False,
    cluster_only: bool = False,
    names: Sequence[str] | None = None,
    embed_price: float | None = None,
    llm_prices: Prices | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    done: Callable[[Report], None] | None = None,
) -> list[Report]:
    """Score strategies by searching their chunks, in one way or several.

    All chunks of all documents are searched for every query. The distinct chunks of all strategies are embedded in
    one call, the longest first, when the first search asks for vectors. A strategy that embeds for itself is given
    the run's embedder where its own is the default or the same model, so that no text is embedded twice; one whose
    counter is "embedder" counts that model's tokens.

    A report's `seconds` and `cost` are those of its strategy and search alone: "chunk" is its cutting, the embedding
    of its pieces included; "embed" is the embedding of its distinct chunks and of the queries, a shared call's
    time being split by the texts' lengths; "search" is the rest of indexing and searching, a reranker included;
    "score" is its own. What several share is counted for each of them, so together they come to more than
    the run took.

    Args:
        benchmark: documents and queries.
        chunkers: the strategies; a report is named by its strategy's label. Or what makes them for an embedder.
        embedder: of chunks and queries, or the name of one. Or several, to tell the effect of the model from that of
            the strategy: a report's name then ends in " · " and the model's, unless neither its strategy nor its
            retriever embeds, which is run once.
        ks: how many chunks are retrieved; "min" for as many as hold a query's evidence, "4096tok" for as many
            as come to 4,096 tokens. Recall, Precision, IoU and F1 are scored at each.
        measures: what else is scored, such as "nDCG@10". MRR, MAP and nDCG without a depth look at as many
            chunks as the deepest of the others.
        counter: whose tokens are scored, and in which chunk lengths are told.
        min_rule: see `score`.
        omega_rule: see `score`.
        cache: of embeddings, or its file; in memory by default. An embedder that has one keeps its own.
        retrievers: how the chunks are searched: strings as `get_retriever` reads them, such as "dense", "bm25",
            "hybrid", "late" or "hybrid+rerank", or any `RetrievalMethod`. Where there are several, a report's name
            ends in " · " and the retriever's.
        late: search by the vectors of late chunking, as the retriever "late" does; a report's name then ends in
            " (late)".
        cluster_only: the same as the retriever "dense:cluster_only=true".
        names: what the reports call the strategies, instead of their labels.
        embed_price: of a million tokens that the embedder reads, in any currency: then reports tell what embedding
            costs.
        llm_prices: of language models, in the same currency.
        workers: threads that cut documents; as many as there are cores by default.
        progress: called with a step ("chunk", "embed", "queries", "search"), what is done, and of how much.
        done: called with each report as soon as it is there, so that work that is interrupted has come to something.

    Returns:
        One report an embedder, retriever and strategy: with the first embedder and retriever all strategies in their
        order, then with the next retriever.

    Raises:
        OptionError: no strategy, retriever or embedder, two of one name, or an option out of range; or with late
            chunking, a model whose token vectors have no context.
        MissingExtraError: what a retriever needs is not installed.
        ModelError: the embedder or a reranker failed twice.
    """
    methods = _methods(retrievers, late=late, cluster_only=cluster_only)
    models = _models(embedder, cache)
    for metered in models.values():
        for how in methods:
            check_search(how, metered)
    prices = TrialPrices(embed_price, llm_prices)
    wanted = [*measures_at(ks), *retrieval_measures(measures)]
    report = progress or (lambda step, done, total: None)
    scorer = Scorer(benchmark, counter=counter, min_rule=min_rule, omega_rule=omega_rule)
    reports: list[Report] = []
    for number, (model, metered) in enumerate(models.items()):
        strategies = _strategies(chunkers, names, metered)
        # What no model has a part in is the same with the next one.
        pairs = [(how, each) for how in methods for each in strategies if not number or how.embeds or each.embeds]
        chosen = {each.name: each.chunker for _, each in pairs}
        cut = cut_documents(benchmark.documents, list(chosen.items()), metered, workers, report)
        shared = Shared([each.chunks for each in cut], benchmark.documents, metered, report)
        ready = {each.name: (each, pool) for each, pool in zip(cut, shared.pools, strict=True)}
        for place, (how, each) in enumerate(pairs, start=1):
            told = model if len(models) > 1 and (how.embeds or each.embeds) else ""
            name = _joined(f"{each.name} (late)" if late else each.name, how.name if len(methods) > 1 else "", told)
            reports.append(Trial(name, *ready[each.name], how).report(scorer, wanted, shared, prices))
            if done is not None:
                done(reports[-1])
            report("search", place, len(pairs))
    return reports


class _Strategy(NamedTuple):
    """A strategy with the run's embedder where it is to have it, and whether it is."""

    name: str
    chunker: Chunker
    embeds: bool


def _strategies(
    chunkers: Sequence[Chunker] | Callable[[Embedder], Sequence[Chunker]],
    names: Sequence[str] | None,
    metered: MeteredEmbedder,
) -> list[_Strategy]:
    given = chunkers(metered.embedder.embedder) if callable(chunkers) else chunkers
    told = [chunker.label for chunker in given] if names is None else list(names)
    if len(told) != len(given):
        raise OptionError(f"there are {len(given)} strategies and {len(told)} names: give one each")
    _check_names(told, "strategy")
    shared = [sharing(chunker, metered) for chunker in given]
    return [_Strategy(name, each, each is not own) for name, each, own in zip(told, shared, given, strict=True)]


def _methods(retrievers: Sequence[str | RetrievalMethod], *, late: bool, cluster_only: bool) -> list[RetrievalMethod]:
    found = [get_retriever(each) for each in ([retrievers] if isinstance(retrievers, str) else retrievers)]
    _check_names([each.name for each in found], "retriever")
    if not late and not cluster_only:
        return found
    if found != [Dense()]:
        raise OptionError('late and cluster_only change how the retriever "dense" searches: name others alone')
    return [Late() if late else Dense(cluster_only=True)]


def _models(
    embedder: Embedder | str | Sequence[Embedder | str], cache: EmbeddingCache | Path | str | None
) -> dict[str, MeteredEmbedder]:
    """The embedders by the names that they were asked for by, or their own."""
    given = embedder if isinstance(embedder, list | tuple) else [embedder]
    names = [each if isinstance(each, str) else getattr(each, "name", "") for each in given]
    _check_names(names, "embedder")
    store = EmbeddingCache(cache) if isinstance(cache, Path | str) else cache
    return {name: _metered(each, store) for name, each in zip(names, given, strict=True)}


def _metered(embedder: Embedder | str, cache: EmbeddingCache | None) -> MeteredEmbedder:
    model = get_embedder(embedder)
    if isinstance(model, CachedEmbedder):
        if cache is not None:
            raise OptionError("the embedder has a cache of its own: give the cache, or the embedder without it")
        # A wrapper of our own around the same model and cache: progress is this run's alone.
        own = CachedEmbedder(model.embedder, model.cache, batch_size=model.batch_size, timeout=model.timeout)
        return MeteredEmbedder(own)
    return MeteredEmbedder(CachedEmbedder(model, cache))


def _check_names(names: Sequence[str], what: str) -> None:
    """See that there are names, and that they tell apart what they name."""
    if not names:
        raise OptionError(f"there is no {what} to run: expected at least one")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"the {what} {repeated[0]} is given twice: give each once")


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
