"""Retrievers with real models and a real collection; and what other programs make of the runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from chunkcore import Chunk, MissingExtraError, OptionError, Report, Span, get_chunker, load_dataset, run_experiment
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.measures import measures_at
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import Reranked, get_reranker, get_retriever
from tests.fakes import corpus_with

TEXTS = ["the fox naps", "the dog barks at the fox", "rain falls on the harbour", "a ferry leaves at noon"]


def tiny(folder: Path, labels: int) -> Path:
    """A cross-encoder with random weights."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    torch.manual_seed(7)
    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{each}" for each in "abcdefghijklmnopqrstuvwxyz")]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]))
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=5 + len(letters),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=1.0,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("models") / "ranker", 1)


def chunks() -> list[Chunk]:
    return [Chunk("d", i, (Span(i, i + 1),), text, 3) for i, text in enumerate(TEXTS)]


def test_a_cross_encoder_orders_what_a_search_found(folder: Path) -> None:
    from sentence_transformers import CrossEncoder

    query = "where is the fox"
    scores = CrossEncoder(str(folder)).predict([(query, text) for text in TEXTS])
    assert len(set(np.round(scores, 4).tolist())) == len(TEXTS)
    found = get_retriever(f"bm25+rerank:model={folder}").index(corpus_with(chunks())).search([query], 4)
    matching = [0, 1, 2]  # those that share a word
    assert found.indices.tolist() == [sorted(matching, key=lambda i: -scores[i])]
    np.testing.assert_allclose(found.scores[0], sorted(scores[matching], reverse=True), rtol=1e-4)


def test_any_text_can_be_reranked(folder: Path) -> None:
    odd = ["", "\ud800", "\x00", "<|endoftext|>", "犬" * 5000, "a " * 5000]
    answers = np.asarray(get_reranker(str(folder))([("fox \udfff", text) for text in odd]))
    assert answers.shape == (len(odd),)
    assert np.isfinite(answers).all()
    assert get_reranker(str(folder)) is get_reranker(str(folder))


def test_what_is_no_ranker_is_told(tmp_path: Path) -> None:
    two = tiny(tmp_path / "classifier", 2)
    with pytest.raises(OptionError, match="has 2 outputs, and one score is wanted"):
        get_reranker(str(two))
    (tmp_path / "empty").mkdir()
    with pytest.raises(OptionError, match="no reranker"):
        get_reranker(str(tmp_path / "empty"))


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"chunkadapters\[models\]"):
        Reranked(method=get_retriever("bm25"), model="never loaded").index(corpus_with(chunks()))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    if not (find_spec("openvino") or find_spec("sentence_transformers")):
        pytest.skip("no model can be run: neither openvino nor sentence-transformers is installed")
    found = run_experiment(
        load_dataset("lochmere"),
        [get_chunker("recursive:size=200")],
        CachedEmbedder(get_embedder(), EmbeddingCache(default_cache())),
        measures=measures_at([5, "1000tok"]),
        retrievers=["dense", "bm25", "hybrid:fusion=ranks"],
    )
    return {report.name.split(" · ")[1]: report for report in found}


def test_docs_figures_of_the_shipped_collection(reports: dict[str, Report]) -> None:
    """What docs/evidence/retrievers.md says, to the digit it says it with."""
    shown = {name: round(100 * report.mean("Recall@1000tok"), 1) for name, report in reports.items()}
    assert shown["bm25"] == pytest.approx(72.1, abs=0.05)
    assert shown["dense"] == pytest.approx(63.6, abs=0.6)  # backends differ in the last digits of a vector
    assert shown["hybrid:fusion=ranks"] == pytest.approx(76.3, abs=0.6)
