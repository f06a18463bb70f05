"""The first step of an experiment: every strategy cuts every document, with the run's models and a bill."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.chunkers.overlap import SemanticOverlap
from chunkcore.document import Document
from chunkcore.evaluation.compact import CompactChunks
from chunkcore.evaluation.metering import Bill, MeteredEmbedder
from chunkcore.models.counter import EmbedderCounter
from chunkcore.models.llm import Usage, get_llm
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.progress import Progress

__all__ = ["Cut", "cut_documents", "sharing"]


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
    if isinstance(overlap, SemanticOverlap) and overlap.embedder == DEFAULT_MODEL:
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
