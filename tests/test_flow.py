"""The flow that `chunkcore` documents: what one step returns is what the next one takes."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import chunkcore
import pytest
from chunkcore import (
    Benchmark,
    ChunkedCorpus,
    Comparison,
    Index,
    Report,
    Retriever,
    Run,
    chunk_corpus,
    compare,
    run_retriever,
    score,
    write_report,
)
from chunkcore.retrieval import RetrievalMethod


def _types(hint: Any) -> set[Any]:
    """A type and all that it is made of."""
    return {hint, *(each for part in get_args(hint) for each in _types(part))}


@pytest.mark.parametrize(
    ("step", "gives", "following", "parameter"),
    [
        (chunk_corpus, ChunkedCorpus, RetrievalMethod.index, "corpus"),
        (RetrievalMethod.index, Index, run_retriever, "retriever"),
        (run_retriever, Run, score, "run"),
        (score, Report, compare, "reports"),
        (compare, Comparison, write_report, "result"),
    ],
)
def test_each_step_returns_what_the_next_one_takes(step, gives, following, parameter):
    assert get_type_hints(step)["return"] is gives
    taken = _types(get_type_hints(following)[parameter])
    assert gives in taken or (gives is Index and Retriever in taken and issubclass(Index, Retriever))


def test_the_flow_is_made_of_public_names() -> None:
    for each in (chunk_corpus, run_retriever, score, compare, write_report, Benchmark, Index, Retriever, Run, Report):
        assert each.__name__ in chunkcore.__all__
