"""The segmenter that ships beats the baselines on articles that it has not seen; training runs from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from chunkcore import Document, get_chunker, get_embedder
from chunkcore.cli import main
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.segmentation import load_labelled
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.segmenters.base import TextTiling
from chunkcore.segmenters.tagger import SHIPPED, load_tagger
from chunkcore.training import embed_texts, part_of, score, shortened
from tests.conftest import shared

from integration_tests.golden import needs_model

pytestmark = needs_model


def test_the_weights_that_ship_beat_the_baselines_on_articles_that_they_have_not_seen() -> None:
    """Whole articles, and with sections cut to some 15 and 8 sentences: docs/evidence/segmentation.md."""
    texts = load_labelled(shared("data/wiki300/documents.jsonl"))
    model = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    whole = embed_texts([text for text in texts if part_of(text.id, seed=0) == "test"], model)
    assert len(whole) == 27
    tagger, tiling = load_tagger(SHIPPED), TextTiling()
    for test, expected in ((whole, 0.332), (shortened(whole, 15, 6), 0.319), (shortened(whole, 8, 5), 0.324)):
        trained = score(test, lambda text: tagger.find(text.rows)).pk
        assert trained == pytest.approx(expected, abs=0.005)
        assert trained < score(test, lambda text: tiling.find(text.vectors)).pk
        assert trained < score(test, lambda text: np.empty(0, dtype=np.int64)).pk
        found = sum(len(tagger.find(text.rows)) for text in test) / sum(len(text.starts) for text in test)
        assert 0.5 < found < 1.3


def test_training_from_the_shell_gives_weights_that_the_strategy_cuts_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = [
        "The ferry {} at {}. Tickets for boat {} are sold on board.",
        "Bread number {} needs flour. Knead loaf {} and let dough {} rest.",
        "The fox {} naps. A crow {} watches fox {} from above.",
    ]
    rows = []
    for number in range(24):
        parts = [" ".join(topics[(number + i) % 3].format(number, n, i) for n in range(5)) for i in range(3)]
        text = " ".join(parts)
        rows.append({"id": f"t{number}", "text": text, "boundaries": [len(parts[0]) + 1, text.index(parts[2])]})
    source, weights = tmp_path / "texts.jsonl", tmp_path / "weights.safetensors"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["segments", "train", str(source), "-o", str(weights), "--epochs", "2", "--hidden", "8"]) == 0
    printed = capsys.readouterr()
    assert "no boundary" in printed.out
    assert "network 1, epoch 2" in printed.err
    chunks = get_chunker(f"hierarchical:segmenter=tagger:{weights}").chunk(Document("d", rows[0]["text"]))
    assert chunks
    assert all(chunk.segments for chunk in chunks)
