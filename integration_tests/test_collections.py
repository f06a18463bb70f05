"""Real collections: their counts, and the same questions again from the layouts that they were distributed in."""

from __future__ import annotations

import pytest
from chunkcore.evaluation.segmentation import load_labelled, load_segmented
from tests.conftest import shared


@pytest.mark.parametrize(
    ("name", "texts", "sections"), [("wiki300", 116, 745), ("qmsum", 44, 188), ("fairytaleqa", 57, 816)]
)
def test_texts_whose_sections_are_known(name: str, texts: int, sections: int) -> None:
    documents = load_segmented(shared(f"data/{name}"))
    assert (len(documents), sum(len(each.metadata["boundaries"]) for each in documents)) == (texts, sections)
    assert len(load_labelled(shared(f"data/{name}/documents.jsonl"))) == texts
