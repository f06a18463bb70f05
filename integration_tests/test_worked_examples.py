"""Figures 6 and 7 of Qu et al. (2024) with a real model: what its two semantic chunkers do on the same examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chunkcore import Chunker
from chunkcore.chunkers import Breakpoint, SingleLinkage
from tests.test_worked_examples import EXAMPLES, LINES

from integration_tests.golden import needs_model, patient_model

pytestmark = needs_model

# The figures' own settings, the chunks, and the sentences that stand with more of another section.
FOUND: list[tuple[str, type[Chunker], dict[str, Any], list[list[int]], list[int]]] = [
    (
        "figure 6",
        Breakpoint,
        {"threshold": "percentile", "amount": 70},
        [[1, 2, 3], [4], [5, 6, 7], [8, 9, 10, 11], [12], [13, 14, 15, 16]],
        [],
    ),
    (
        "figure 6",
        SingleLinkage,
        {"position_weight": 0.5, "chunks": 4, "size": None},
        [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10, 11], [12, 13, 15, 16], [14]],
        [],
    ),
    (
        "figure 7",
        Breakpoint,
        {"threshold": "percentile", "amount": 70},
        [[1, 2, 3, 4, 5, 6, 7], [8], [9, 10], [11, 12, 13], [14, 15]],
        [5, 6, 7, 11],
    ),
    (
        "figure 7",
        SingleLinkage,
        {"position_weight": 0.5, "chunks": 4, "size": None},
        [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11], [12, 13, 14, 15]],
        [8],
    ),
]


@pytest.mark.parametrize(("figure", "strategy", "options", "chunks", "strays"), FOUND)
def test_the_semantic_chunkers_on_the_papers_examples(
    figure: str, strategy: Callable[..., Chunker], options: dict[str, Any], chunks: list[list[int]], strays: list[int]
) -> None:
    example = EXAMPLES[figure]
    found = example.numbers(strategy(splitter=LINES, embedder=patient_model(), **options), example.plain)
    assert found == chunks
    assert example.strays(found) == strays
