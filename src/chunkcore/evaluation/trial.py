"""`Trial`: one strategy's chunks, searched in one way, scored, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.evaluation.costs import Cost
from chunkcore.evaluation.cutting import Cut
from chunkcore.evaluation.keyed import Keys, text_keys
from chunkcore.evaluation.measures import Measure
from chunkcore.evaluation.metering import MeteredEmbedder
from chunkcore.evaluation.pools import Asked, RunPool, Shared
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.evaluation.searching import answer_all
from chunkcore.lazy import blocks
from chunkcore.models.llm import Prices
from chunkcore.retrieval import SearchMethod
from chunkcore.tokens import TokenCounter

__all__ = ["Trial", "TrialPrices"]


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
    method: SearchMethod

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
