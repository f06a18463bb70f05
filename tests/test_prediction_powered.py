"""Few labels and many verdicts of a model."""

from __future__ import annotations

import numpy as np
import pytest
from chunkcore.errors import DataError
from chunkcore.evaluation.resampling import prediction_powered


def test_good_verdicts_are_worth_labels_and_one_sided_ones_are_corrected() -> None:
    generator = np.random.default_rng(0)
    found = (generator.random(400) < 0.6).astype(float)
    noise = (generator.random(400) < 0.5).astype(float)
    labels, more = found[:60], found[60:]
    alone = prediction_powered(labels, noise[:60], noise[60:])
    helped = prediction_powered(labels, labels, more)
    lenient = prediction_powered(labels, np.maximum(labels, noise[:60]), np.maximum(more, noise[60:]))
    assert alone.worth < 75 < lenient.worth < helped.worth
    for powered in (alone, helped, lenient):
        assert powered.low < 0.6 < powered.high


def test_questions_of_one_document_count_as_one_and_too_few_are_refused() -> None:
    scores = np.repeat([0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 10)
    names = [str(number // 10) for number in range(60)]
    apart = prediction_powered(scores, scores, scores)
    together = prediction_powered(scores, scores, scores, documents=names, more_documents=names)
    assert together.high - together.low > 2 * (apart.high - apart.low)
    for labels, verdicts, documents in (
        (scores, scores[1:], None),
        (scores[:2], scores[:2], None),
        (scores, scores, ["a"] * 60),
    ):
        with pytest.raises(DataError, match=r"same questions|three questions"):
            prediction_powered(labels, verdicts, scores, documents=documents)
