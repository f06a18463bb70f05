"""`run_chunkers`: cut, embed, search and score with any number of strategies, each distinct text embedded once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.spec import label
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.costs import Cost
from chunkcore.evaluation.cutting import Cut, cut_documents, sharing
from chunkcore.evaluation.measures import Depth, Measure, as_measure, measures_at
from chunkcore.evaluation.metering import MeteredEmbedder
from chunkcore.evaluation.pools import Asked, RunPool, Shared
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.evaluation.scoring import MinRule, OmegaRule, Scorer
from chunkcore.evaluation.searching import answer_all
from chunkcore.models.base import Embedder
from chunkcore.models.cache import EmbeddingCache
from chunkcore.models.cached import CachedEmbedder
from chunkcore.models.llm import Prices
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.models.token_embedder import get_token_embedder
from chunkcore.retrieval import Dense, Late, SearchMethod, get_search
from chunkcore.tokens import TokenCounter

__all__ = ["check_names", "run_chunkers"]

Progress = Callable[[str, int, int], None]


def run_chunkers(
    benchmark: Benchmark,
    chunkers: Sequence[Chunker],
    embedder: Embedder | str = DEFAULT_MODEL,
    *,
    ks: Sequence[Depth] = (5, 10, "min"),
    measures: Iterable[Measure | str] = (),
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
    omega_rule: OmegaRule = "once",
    cache: EmbeddingCache | Path | str | None = None,
    retrievers: Sequence[str | SearchMethod] = ("dense",),
    late: bool = False,
    cluster_only: bool = False,
    names: Sequence[str] | None = None,
    embed_price: float | None = None,
    llm_prices: Prices | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
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
        chunkers: the strategies; a report is named by its strategy's label.
        embedder: of chunks and queries, or the name of one.
        ks: how many chunks are retrieved; "min" for as many as hold a query's evidence, "4096tok" for as many
            as come to 4,096 tokens. Recall, Precision, IoU and F1 are scored at each.
        measures: what else is scored, such as "nDCG@10". MRR, MAP and nDCG without a depth look at as many
            chunks as the deepest of the others.
        counter: whose tokens are scored, and in which chunk lengths are told.
        min_rule: see `evaluate`.
        omega_rule: see `evaluate`.
        cache: of embeddings, or its file; in memory by default. An embedder that has one keeps its own.
        retrievers: how the chunks are searched: strings as `parse_search` reads them, such as "dense", "bm25",
            "hybrid", "late" or "hybrid+rerank", or any `SearchMethod`. Where there are several, a report's name
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

    Returns:
        One report a retriever and strategy: all strategies in their order with the first retriever, then with the next.

    Raises:
        OptionError: no strategy or retriever, two of one name, or an option out of range; or with late chunking, a
            model whose token vectors have no context.
        MissingExtraError: what a retriever needs is not installed.
        ModelError: the embedder or a reranker failed twice.
    """
    methods = _methods(retrievers, late=late, cluster_only=cluster_only)
    labels = [f"{name} (late)" if late else name for name in _strategy_names(chunkers, names)]
    prices = _Prices(embed_price, llm_prices)
    wanted = [*measures_at(ks), *map(as_measure, measures)]
    report = progress or (lambda step, done, total: None)
    scorer = Scorer(benchmark, counter=counter, min_rule=min_rule, omega_rule=omega_rule)
    metered = _metered(embedder, cache)
    if any(isinstance(method, Late) for method in methods):
        get_token_embedder(metered)  # which says so if it cannot, before the long work
    strategies = [(name, sharing(each, metered)) for name, each in zip(labels, chunkers, strict=True)]
    cut = cut_documents(benchmark.documents, strategies, metered, workers, report)
    shared = Shared([each.chunks for each in cut], benchmark.documents, metered, report)
    trials = [
        _Trial(_joined(each.name, method.name if len(methods) > 1 else ""), each, pool, method)
        for method in methods
        for each, pool in zip(cut, shared.pools, strict=True)
    ]
    reports = []
    for number, trial in enumerate(trials, start=1):
        reports.append(trial.report(scorer, wanted, shared, prices))
        report("search", number, len(trials))
    return reports


def check_names(names: Sequence[str], what: str) -> None:
    """See that there are names, and that they tell apart what they name.

    Raises:
        OptionError: there is none, or two are the same.
    """
    if not names:
        raise OptionError(f"there is no {what} to run: expected at least one")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"the {what} {repeated[0]} is given twice: give each once")


def _strategy_names(chunkers: Sequence[Chunker], names: Sequence[str] | None) -> list[str]:
    found = [label(chunker) for chunker in chunkers] if names is None else list(names)
    if len(found) != len(chunkers):
        raise OptionError(f"there are {len(chunkers)} strategies and {len(found)} names: give one each")
    check_names(found, "strategy")
    return found


def _methods(retrievers: Sequence[str | SearchMethod], *, late: bool, cluster_only: bool) -> list[SearchMethod]:
    found = [get_search(each) for each in ([retrievers] if isinstance(retrievers, str) else retrievers)]
    check_names([each.name for each in found], "retriever")
    if not late and not cluster_only:
        return found
    if found != [Dense()]:
        raise OptionError('late and cluster_only change how the retriever "dense" searches: name others alone')
    return [Late() if late else Dense(cluster_only=True)]


def _metered(embedder: Embedder | str, cache: EmbeddingCache | Path | str | None) -> MeteredEmbedder:
    model = get_embedder(embedder)
    if isinstance(model, CachedEmbedder):
        if cache is not None:
            raise OptionError("the embedder has a cache of its own: give the cache, or the embedder without it")
        # A wrapper of our own around the same model and cache: progress is this run's alone.
        return MeteredEmbedder(CachedEmbedder(model.embedder, model.cache, batch_size=model.batch_size))
    if not isinstance(cache, EmbeddingCache):
        cache = EmbeddingCache(cache)
    return MeteredEmbedder(CachedEmbedder(model, cache))


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))


@dataclass(frozen=True)
class _Prices:
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
class _Trial:
    """One strategy's chunks, searched in one way."""

    name: str
    cut: Cut
    pool: RunPool
    method: SearchMethod

    def report(self, scorer: Scorer, wanted: Sequence[Measure], shared: Shared, prices: _Prices) -> Report:
        """Search, score, and tell what it took."""
        with self.pool.noted() as asked:
            run, seconds = answer_all(self.name, self.pool, self.method, scorer, wanted)
        cost = self._cost(asked, scorer, shared)
        metered = shared.metered
        questions = [query.text for query in scorer.benchmark.queries]
        embed = metered.cost(self.pool.embedded_texts) if asked.chunks else 0.0
        embed += shared.late.seconds if asked.late else 0.0
        embed += metered.cost(questions) if asked.queries else 0.0
        search = max(seconds - asked.seconds, 0.0)
        run = replace(run, seconds={"chunk": self.cut.seconds, "embed": embed, "search": search})
        report = scorer.score(run, wanted)
        return replace(report, chunks=self._statistics(asked, scorer.counter, metered), cost=prices.add(cost, self.cut))

    def _cost(self, asked: Asked, scorer: Scorer, shared: Shared) -> Cost:
        """What this strategy and this search take of models."""
        metered, bill = shared.metered, self.cut.bill
        own = set(self.pool.embedded_texts) if asked.chunks else set()
        texts = own | bill.texts
        tokens = metered.tokens_read(texts)
        queries = {query.text for query in scorer.benchmark.queries} if asked.queries else set()
        documents = shared.documents if asked.late else ()
        if asked.late and tokens is not None:
            tokens += shared.late.tokens
        return Cost(
            source_tokens=scorer.tokens.size,
            embedder_calls=bill.calls + metered.batches(len(own - bill.texts)) + len(documents),
            embedded_texts=len(texts) + len(documents),
            embedded_tokens=tokens,
            query_texts=len(queries),
            query_tokens=metered.tokens_read(queries),
            llm_calls=self.cut.usage.calls,
            llm_kept_answers=self.cut.usage.kept_answers,
            llm_input_tokens=self.cut.usage.input_tokens,
            llm_output_tokens=self.cut.usage.output_tokens,
            seconds=metered.cost(texts) + metered.cost(queries) + (shared.late.seconds if asked.late else 0.0),
        )

    def _statistics(self, asked: Asked, counter: TokenCounter, metered: MeteredEmbedder) -> ChunkStatistics:
        chunks = self.cut.chunks
        if self.cut.chunker.token_counter == counter:
            lengths = np.array([chunk.token_count for chunk in chunks], dtype=np.int64)
        else:
            lengths = counter.count_many([chunk.text for chunk in chunks])
        most = metered.max_tokens
        texts = list(dict.fromkeys(self.pool.embedded_texts))
        known = metered.tokens(texts) if asked.chunks and most is not None else None
        if known is None or most is None:
            return ChunkStatistics(lengths)
        over = np.array([known[text] - most for text in texts], dtype=np.int64)
        return ChunkStatistics(lengths, int((over > 0).sum()), int(np.maximum(over, 0).sum()))
