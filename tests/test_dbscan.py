"""dbscan finds scikit-learn's clusters of the joint distance, keeps noise, and never holds the n × n matrix."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from chunkcore.chunkers import clusters
from chunkcore.chunkers.clusters import Dbscan
from chunkcore.errors import DataError, MissingExtraError
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.processes import peak
from tests.test_breakpoint import REGEX, AngleEmbedder
from tests.test_single_linkage import joint_distances, random_unit

pytest.importorskip("sklearn")


def scan(**options) -> Dbscan:
    return Dbscan(**{"embedder": AngleEmbedder(), "counter": "words", "splitter": REGEX, **options})


def test_near_sentences_make_clusters_and_the_others_stand_alone():
    """25° is 0.094 of cosine distance, 50° is 0.357: 0, 25 and 50 are a chain, 0 and 50 are no neighbours."""
    text = "0. 180. 25. 90. 50."
    assert scan(position_weight=0.0, eps=0.1).split_text(text) == ["0. 25. 50.", "180.", "90."]
    assert scan(position_weight=0.0, eps=0.09).split_text(text) == ["0.", "180.", "25.", "90.", "50."]


def test_noise_sentences_are_a_chunk_each_even_side_by_side():
    assert scan(eps=0.01, position_weight=0.0).split_text("0. 0. 90. 150. 40.") == ["0. 0.", "90.", "150.", "40."]


def test_a_core_needs_as_many_neighbours_as_stated_with_itself():
    text = "0. 0. 90. 90. 90."
    assert scan(min_samples=2, position_weight=0.0).split_text(text) == ["0. 0.", "90. 90. 90."]
    assert scan(min_samples=3, position_weight=0.0).split_text(text) == ["0.", "0.", "90. 90. 90."]
    assert scan(min_samples=1, position_weight=0.0).split_text("0. 90.") == ["0.", "90."]


def test_place_counts_as_much_as_its_weight():
    """Of four sentences neighbours are 0.25 apart by place, whatever they mean."""
    text = "0. 90. 0. 90."
    assert scan(position_weight=1.0, eps=0.25).split_text(text) == [text]
    assert scan(position_weight=1.0, eps=0.24).split_text(text) == ["0.", "90.", "0.", "90."]
    assert scan(position_weight=0.5, eps=0.26).split_text(text) == ["0. 0.", "90. 90."]


shares, distances = st.sampled_from([0.0, 0.25, 0.75]), st.sampled_from([0.05, 0.2, 0.5])


@given(st.integers(0, 10**6), st.integers(2, 60), shares, distances, st.integers(1, 5))
def test_clusters_are_those_of_scikit_learn_on_the_whole_matrix(seed, count, weight, eps, least):
    from sklearn.cluster import DBSCAN

    unit = random_unit(seed, count)
    text = " ".join(f"Sentence {number}." for number in range(count))

    class Given(FakeEmbedder):
        def embed_documents(self, texts):
            return unit.astype(np.float32)

    unit = unit.astype(np.float32).astype(np.float64)
    unit /= np.sqrt((unit * unit).sum(axis=1))[:, None]
    distances = joint_distances(unit, weight)
    if np.abs(distances - eps).min() < 1e-9:
        return
    expected = DBSCAN(eps=eps, min_samples=least, metric="precomputed").fit(distances).labels_.tolist()
    groups: dict[object, list[str]] = {}
    for number, label in enumerate(expected):
        groups.setdefault(label if label >= 0 else ("noise", number), []).append(f"Sentence {number}.")
    chunks = scan(embedder=Given(), position_weight=weight, eps=eps, min_samples=least, size=None).split_text(text)
    assert [" ".join(chunk.split()) for chunk in chunks] == [" ".join(group) for group in groups.values()]


def test_a_cluster_over_the_maximum_is_packed_in_order():
    text = "0. 90. 0. 0 0. 0."
    assert scan(position_weight=0.0, size=3).split_text(text) == ["0. 0.", "90.", "0 0. 0."]
    assert scan(position_weight=0.0, size=None).split_text(text) == ["0. 0. 0 0. 0.", "90."]


def test_memory_grows_with_the_neighbours_not_with_the_matrix():
    unit = random_unit(5, 3000, 16)
    assert peak(lambda: clusters.pairs_within("dbscan", unit, 0.0, ("eps", 0.05))) < 3000**2 * 8 / 4


def test_more_neighbours_than_memory_should_hold_are_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_PAIRS", 10)
    assert scan().split_text("0. 0. 0. 0.") == ["0. 0. 0. 0."]  # six pairs
    assert scan(position_weight=0.0).split_text("0. 0. 0. 0. 0.") == ["0. 0. 0. 0. 0."]  # ten
    with pytest.raises(DataError, match=r"6 sentences more than 10 pairs are within eps=0\.3.*lower eps"):
        scan().split_text("0. 0. 0. 0. 0. 0.")  # fifteen


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match=r"scikit-learn .*chunkadapters\[clustering\]"):
        scan().split_text("0. 90.")
