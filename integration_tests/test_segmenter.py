"""The segmenter that ships beats the baselines on articles that it has not seen."""

from __future__ import annotations

import json
from hashlib import blake2b

import nltk
import numpy as np
import pytest
from chunkcore import get_embedder
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.segmenters import get_segmenter, segment_starts
from tests.conftest import shared

from integration_tests.golden import needs_model

pytestmark = needs_model


def is_unseen(name: str) -> bool:
    """Whether the training neither used this text nor chose the threshold by it."""
    digest = blake2b(name.encode(), digest_size=4, salt=bytes(8)).digest()
    return int.from_bytes(digest, "big") % 10 >= 8


def pk(gold: list[int], found: list[int], count: int) -> float:
    """Of sentences: the share of pairs half a segment apart that are wrongly together or apart."""
    one, other = (["1" if place in starts else "0" for place in range(count)] for starts in (gold, found))
    return nltk.pk("".join(one), "".join(other), k=max(1, round(count / (2 * (len(gold) + 1)))))


def test_the_weights_that_ship_beat_the_baselines_on_articles_that_they_have_not_seen() -> None:
    lines = shared("data/wiki300/documents.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if is_unseen(row["id"])]
    assert len(rows) == 27
    model = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    errors = []
    for row in rows:
        ranges = np.array(row["sentences"])
        gold = np.unique(np.searchsorted(ranges[:, 0], row["boundaries"])).tolist()
        sentences = [row["text"][start:end] for start, end in ranges.tolist()]
        both = [segment_starts(get_segmenter(name), sentences, model).tolist() for name in ("tagger", "texttiling")]
        errors.append([pk(gold, starts, len(sentences)) for starts in (*both, [])])
    assert np.mean(errors, axis=0) == pytest.approx((0.332, 0.362, 0.360), abs=0.005)
