"""What `make fuzz` found wrong in the adapters, each as the smallest case that showed it."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online
pytest.importorskip("langchain_text_splitters")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

from chunkcore.chunkers import FixedToken, Recursive
from chunkcore.chunkers.overlap import SemanticOverlap
from integration_tests.frameworks import FRAMEWORKS
from tests.fakes import FakeEmbedder


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)
@pytest.mark.parametrize("strategy", [FixedToken, Recursive])
def test_a_semantic_overlap_is_an_overlap_to_every_framework(framework, strategy):
    overlap = SemanticOverlap(threshold=-1.0, embedder=FakeEmbedder())
    made = framework.cut("the", strategy(size=1, overlap=overlap, counter="characters"))
    assert [each.text for each in made] == ["t", "h", "e"]
    if "_split_overlap" in made[0].metadata:  # Haystack's, which said so by a TypeError
        assert [each.metadata["_split_overlap"] for each in made] == [[], [], []]
