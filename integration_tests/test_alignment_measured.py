"""Chunks of real collections, changed on their way, are located where they came from (docs/reference/alignment.md)."""

from __future__ import annotations

from collections import Counter

import pytest
from chunkcore import get_chunker
from chunkcore.evaluation import Aligner
from tests.conftest import shared

from integration_tests.benchmarks import alignment_accuracy as accuracy

DRAWN = 40


@pytest.fixture(scope="module", params=["covid_qa", "cuad"])
def collection(request):
    documents = accuracy.load(shared(f"data/{request.param}").parents[1], request.param)
    return (documents, Aligner(documents), accuracy.origins(documents, "recursive:size=200,overlap=0", DRAWN, seed=1))


# The least share that is located right in its named document, and the most that may be located wrong.
@pytest.mark.parametrize(
    ("change", "right", "wrong"),
    [
        ("every gap one space", 0.9, 0),
        ("lower case", 0.9, 0),
        ("typographic signs, ligatures, NFD", 0.9, 0),
        ("hyphenated at line ends", 0.9, 0),
        ("the last 40 % cut off", 0.85, 0.03),
        ("a title before it", 0.85, 0.06),
        ("a context of 180 characters before it", 0.7, 0.06),
        ("5 % mistyped", 0.85, 0.06),
    ],
)
def test_most_chunks_are_located_right_and_hardly_any_wrong(collection, change, right, wrong):
    _, aligner, drawn = collection
    judged = accuracy.measure(aligner, drawn, accuracy.CHANGES[change], named=True, seed=1)
    assert judged["right"] >= right * len(drawn), judged
    assert judged["wrong"] <= wrong * len(drawn), judged


def test_chunks_of_other_documents_resemble_nothing(collection):
    documents, _, drawn = collection
    judged = accuracy.strangers(documents, drawn)
    assert judged["unlocated"] >= 0.9 * judged.total(), judged
    assert judged["wrong"] <= 0.05 * judged.total(), judged


def test_in_order_repeats_are_told_apart(collection):
    documents, aligner, _ = collection
    judged: dict[str, Counter[bool]] = {"alone": Counter(), "in order": Counter()}
    for document in sorted(documents, key=lambda each: len(each.text))[-6:]:
        chunks = get_chunker("recursive:size=40,overlap=0").chunk(document)
        texts = [" ".join(chunk.text.split()) for chunk in chunks]
        alone = [aligner.locate(text, document_id=document.id) for text in texts]
        ordered = aligner.locate_in_order(texts, document_id=document.id)
        for kind, found in (("alone", alone), ("in order", ordered)):
            judged[kind].update(
                bool(piece.spans) and piece.match != "ambiguous" and abs(piece.spans[0].start - chunk.start) < 3
                for piece, chunk in zip(found, chunks, strict=True)
            )
    share = {kind: count[True] / count.total() for kind, count in judged.items()}
    assert share["in order"] >= 0.98, share
    assert share["in order"] >= share["alone"]
