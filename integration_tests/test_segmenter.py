"""The segmenter that ships beats the baselines on articles that it has not seen."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from chunkcore import get_embedder
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.segmentation import load_labelled, pk
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.segmenters import Segmenter, get_segmenter, segment_starts
from tests.conftest import shared

from integration_tests.golden import needs_model

pytestmark = needs_model


def is_unseen(name: str) -> bool:
    """Whether the training neither used this text nor chose the threshold by it."""
    digest = blake2b(name.encode(), digest_size=4, salt=bytes(8)).digest()
    return int.from_bytes(digest, "big") % 10 >= 8


def test_the_weights_that_ship_beat_the_baselines_on_articles_that_they_have_not_seen() -> None:
    """docs/evidence/segmentation.md."""
    texts = [text for text in load_labelled(shared("data/wiki300/documents.jsonl")) if is_unseen(text.id)]
    assert len(texts) == 27
    model = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))

    def error(segmenter: Segmenter) -> float:
        starts = [segment_starts(segmenter, text.sentences, model).tolist() for text in texts]
        return float(
            np.mean(
                [pk(text.starts.tolist(), cuts, len(text.sentences)) for text, cuts in zip(texts, starts, strict=True)]
            )
        )

    nowhere = np.mean([pk(text.starts.tolist(), [], len(text.sentences)) for text in texts])
    errors = error(get_segmenter("tagger")), error(get_segmenter("texttiling")), nowhere
    assert errors == pytest.approx((0.332, 0.362, 0.360), abs=0.005)
