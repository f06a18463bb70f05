"""cluster_semantic cuts where the report's released code cuts: three corpora, three sizes, with the same model."""

from __future__ import annotations

import pytest
from chunkcore.chunkers.clusters import ClusterSemantic

from integration_tests.golden import Case, cases, golden, needs_model, patient_model, ranges, text_of

pytestmark = needs_model


@pytest.mark.parametrize("case", cases("cluster_semantic"))
def test_every_boundary_is_the_released_codes(case: Case) -> None:
    assert case["options"]["piece_size"] == 50
    chunker = ClusterSemantic(size=case["options"]["max_size"], embedder=patient_model())
    assert ranges(chunker, text_of(case)) == golden(case)
