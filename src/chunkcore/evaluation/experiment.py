"""`run_chunkers`: cut, embed, search and score with any number of strategies, each distinct text embedded once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.spec import label
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.cutting import cut_documents, sharing
from chunkcore.evaluation.measures import Depth, Measure, measures_at, retrieval_measures
from chunkcore.evaluation.metering import MeteredEmbedder
from chunkcore.evaluation.pools import Shared
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.scoring import MinRule, OmegaRule, Scorer
from chunkcore.evaluation.trial import Trial, TrialPrices
from chunkcore.models.base import Embedder
from chunkcore.models.cache import EmbeddingCache
from chunkcore.models.cached import CachedEmbedder
from chunkcore.models.llm import Prices
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.progress import Progress
from chunkcore.retrieval import Dense, Late, SearchMethod, get_search
from chunkcore.retrieval.base import check_search
from chunkcore.tokens import TokenCounter

__all__ = ["run_chunkers"]


def run_chunkers(
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
    retrievers: Sequence[str | SearchMethod] = ("dense",),
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
    told = [label(chunker) for chunker in given] if names is None else list(names)
    if len(told) != len(given):
        raise OptionError(f"there are {len(given)} strategies and {len(told)} names: give one each")
    _check_names(told, "strategy")
    shared = [sharing(chunker, metered) for chunker in given]
    return [_Strategy(name, each, each is not own) for name, each, own in zip(told, shared, given, strict=True)]


def _methods(retrievers: Sequence[str | SearchMethod], *, late: bool, cluster_only: bool) -> list[SearchMethod]:
    found = [get_search(each) for each in ([retrievers] if isinstance(retrievers, str) else retrievers)]
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
