"""Our scores of the Chroma report's eight configurations land by the report's own table.

PrecisionOmega needs no model and is always checked. The rest needs the embeddings of some 25,000 texts, which
takes a two-core machine some minutes, so it is checked where the command line's cache holds them:
``python -m integration_tests.benchmarks.chroma_table --shared ../shared`` puts them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from chunkcore import Benchmark, MissingExtraError, ModelError, OptionError, Retrieved, Run, get_chunker, load_benchmark
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.measures import Depth
from chunkcore.evaluation.scoring import MinRule, Scorer
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from tests.conftest import shared

from integration_tests.benchmarks.chroma_table import (
    STRATEGIES,
    Key,
    Row,
    by_first_occurrence,
    our_rows,
    read_reference,
    run,
)

PUBLISHED = "reference/chroma_report_all_corpora.csv"
RERUN = "reference/chroma_released_code_rerun.csv"
WITHOUT_MODEL = [key for key in STRATEGIES if key[0] != "Cluster"]


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return load_benchmark(shared("data/chroma"))


def omega(benchmark: Benchmark, key: Key, min_rule: MinRule) -> float:
    chunks = get_chunker(STRATEGIES[key]).chunk_many(benchmark.documents)
    pool = [Retrieved(chunk.document_id, chunk.spans) for chunk in chunks]
    report = Scorer(benchmark, min_rule=min_rule).score(Run("r", {}, pool), ["PrecisionOmega[character]"])
    return 100 * report.mean("PrecisionOmega[character]")


@pytest.mark.parametrize("key", WITHOUT_MODEL, ids=str)
def test_precision_omega_is_within_two_and_a_half_points_of_the_report(benchmark: Benchmark, key: Key) -> None:
    published = read_reference(shared(PUBLISHED))[key, 5]["precision_omega"]
    assert omega(benchmark, key, "holding") == pytest.approx(published, abs=2.5)


@pytest.mark.parametrize("key", WITHOUT_MODEL, ids=str)
def test_precision_omega_by_the_released_codes_rule_is_what_the_released_code_gives(benchmark, key):
    """To the hundredth for Recursive; TokenText's chunks are placed by first occurrence there, by offsets here."""
    rerun = read_reference(shared(RERUN))[key, 5]["precision_omega"]
    assert omega(benchmark, key, "touching") == pytest.approx(rerun, abs=0.02 if key[0] == "Recursive" else 0.5)


class OnlyCached:
    """The model's face without the model: whatever is not in the cache is refused."""

    def __init__(self) -> None:
        model = get_embedder()
        self.name, self.fingerprint, self.max_tokens = (model.name, model.fingerprint, model.max_tokens)
        self.symmetric = getattr(model, "symmetric", False)

    def embed_documents(self, texts: Sequence[str]) -> None:
        raise ModelError(f"{len(texts)} texts are not in the cache")

    embed_queries = embed_documents


@pytest.fixture(scope="module")
def rows(benchmark: Benchmark) -> SimpleNamespace:
    """Our rows by both rules of k = "min"."""
    try:
        embedder = CachedEmbedder(OnlyCached(), EmbeddingCache(default_cache()))
    except (MissingExtraError, OptionError) as error:
        pytest.skip(f"no model: {error}")
    try:
        return SimpleNamespace(
            holding=our_rows(run(benchmark, embedder, published=False)),
            touching=our_rows(run(benchmark, embedder, published=True)),
            misplaced=our_rows(by_first_occurrence(benchmark, embedder)),
        )
    except ModelError as error:
        if "not in the cache" not in str(error):
            raise
        pytest.skip("embeddings are missing: run integration_tests.benchmarks.chroma_table first (some minutes)")


# What lies beyond the limits, and by how much. Exact search finds a little more than the released code's
# approximate one (+0.2 and +0.2), and that code is 1.8 and 0.4 points off the report's table itself; the last
# is a matter of first occurrences, see the tests below.
EXCEPTIONS = {
    (("Recursive", 250, 0), 10, "recall"): 2.06,
    (("Cluster", 250, 0), 10, "recall"): 0.67,
    (("TokenText", 200, 0), "min", "recall"): -4.28,
}


def differences(rows: Sequence[Row], reference: str) -> dict[tuple[Key, Depth, str], float]:
    """Ours less theirs, in points."""
    expected = read_reference(shared(reference))
    return {
        (row.key, row.k, column): row.values[column] - theirs
        for row in rows
        for column, theirs in expected.get((row.key, row.k), {}).items()
    }


def beyond(found: dict[tuple[Key, Depth, str], float], limits: dict[str, float]) -> dict[tuple[Key, Depth, str], float]:
    return {place: value for place, value in found.items() if abs(value) > limits.get(place[2], 100)}


def expected(found: dict[tuple[Key, Depth, str], float]) -> object:
    return pytest.approx({place: value for place, value in EXCEPTIONS.items() if place in found}, abs=0.15)


def test_recursive_and_token_text_land_by_the_report(rows: SimpleNamespace) -> None:
    found = {
        place: value
        for place, value in differences(rows.holding, PUBLISHED).items()
        if place[0][0] != "Cluster" and place[1] != "min"
    }
    assert len(found) == 6 * 2 * 4
    limits = {"recall": 2.0, "precision": 1.0, "iou": 1.0, "precision_omega": 2.5}
    assert beyond(found, limits) == expected(found)


def test_cluster_lands_by_the_report(rows: SimpleNamespace) -> None:
    found = {
        place: value
        for place, value in differences(rows.touching, PUBLISHED).items()
        if place[0][0] == "Cluster" and place[1] != "min"
    }
    assert len(found) == 2 * 2 * 4
    assert beyond(found, dict.fromkeys(("recall", "precision", "iou", "precision_omega"), 0.6)) == expected(found)


def test_min_lands_by_the_report_when_chunks_that_only_touch_count(rows: SimpleNamespace) -> None:
    found = {place: value for place, value in differences(rows.touching, PUBLISHED).items() if place[1] == "min"}
    assert len(found) == 8 * 4
    assert beyond(found, {"recall": 3.0}) == expected(found)


def test_the_released_code_differs_by_its_approximate_search(rows: SimpleNamespace) -> None:
    found = differences(rows.touching, RERUN)
    near = {place: value for place, value in found.items() if place[1] != "min" and place[0][0] != "TokenText"}
    assert beyond(near, {"recall": 0.5, "precision": 0.05, "iou": 0.05, "precision_omega": 0.15}) == {}


def test_with_chunks_at_their_first_occurrence_min_is_what_the_released_code_gives(rows: SimpleNamespace) -> None:
    """Passages stand several times in these corpora; copies of a chunk then all count as holding the evidence."""
    found = differences(rows.misplaced, RERUN)
    least = {place: value for place, value in found.items() if place[1] == "min"}
    assert beyond({p: v for p, v in least.items() if p[0][0] == "Recursive"}, {"recall": 0.02, "precision": 0.02}) == {}
    assert beyond(least, {"recall": 1.0, "precision": 0.2, "iou": 0.2, "precision_omega": 0.015}) == {}
