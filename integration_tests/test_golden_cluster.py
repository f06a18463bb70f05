"""cluster_semantic cuts where the report's released code cuts: three corpora, three sizes, with the same model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from chunkcore.chunkers.cluster_semantic import ClusterSemantic, mean_pair_similarity
from chunkcore.chunkers.recursive import Recursive
from integration_tests.golden import Case, cases, golden, needs_model, patient_model, ranges, text_of

pytestmark = needs_model
CORPORA = ("state_of_the_union", "wikitexts", "chatlogs")


@pytest.mark.parametrize("case", cases("cluster_semantic"))
def test_every_boundary_is_the_released_codes(case: Case) -> None:
    assert case["options"]["piece_size"] == 50
    chunker = ClusterSemantic(size=case["options"]["max_size"], embedder=patient_model())
    assert ranges(chunker, text_of(case)) == golden(case)


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_move_of_one_boundary_is_better(corpus: str) -> None:
    """On the real vectors, with sums taken directly from the similarities."""
    text, model = text_of({"corpus": corpus}), patient_model()
    default = ClusterSemantic(size=400, embedder=model)
    pieces = Recursive(size=50, separators=default.separators, keep="start").spans(text)
    vectors = model.embed_documents([text[spans[0].start : spans[0].end] for spans in pieces]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = mean_pair_similarity(vectors)
    starts = [spans[0].start for spans in pieces]

    def worth(first: int, last: int) -> float:
        if not 1 <= last - first <= 400 // 50:
            return -np.inf
        similarities = vectors[first:last] @ vectors[first:last].T - mean
        return float(similarities[np.triu_indices(last - first, k=1)].sum())

    cuts = [starts.index(span.start) for ((span),) in default.spans(text)] + [len(pieces)]
    for (first, middle), (_, last) in pairwise(pairwise(cuts)):
        chosen = worth(first, middle) + worth(middle, last)
        assert chosen >= max(worth(first, cut) + worth(cut, last) for cut in range(first + 1, last)) - 1e-6
        assert chosen >= worth(first, last) - 1e-6
