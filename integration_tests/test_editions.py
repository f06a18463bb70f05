"""Chunks and scores are those of the earlier edition; `python -m integration_tests.editions` compares far more."""

from __future__ import annotations

import json

import pytest

from integration_tests.editions import COLLECTIONS, DATA, EDITION, differences

EXPECTED = json.loads(EDITION.read_text(encoding="utf-8"))


def test_lochmere_is_chunked_and_scored_as_before():
    assert differences(EXPECTED, lambda name: not name.endswith(COLLECTIONS), quick=True) == []


@pytest.mark.skipif(not DATA.exists(), reason="the shared collections are not on this machine")
def test_two_documents_of_each_shared_collection_are_chunked_as_before():
    assert differences(EXPECTED, lambda name: name.endswith(COLLECTIONS), quick=True) == []
