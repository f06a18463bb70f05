"""Segmenters."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from chunkcore.errors import ModelError, OptionError
from chunkcore.segmenters import Segmenter, TextTiling, get_segmenter, segment_starts
from chunkcore.segmenters.base import block_similarities, depths
from chunkcore.segmenters.tagger import SHIPPED, Tagger, boundary_probabilities, load_tagger, sentence_rows
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.test_breakpoint import AngleEmbedder

# --- TextTiling -------------------------------------------------------------------------------------------------


def test_blocks_are_compared_across_each_gap():
    """Two at 0°, then two at 90°: of blocks of two the middle gap parts what has nothing in common."""
    vectors = np.eye(2)[[0, 0, 1, 1]]
    assert block_similarities(vectors, 1).tolist() == [1.0, 0.0, 1.0]
    assert block_similarities(vectors, 2) == pytest.approx([np.sqrt(0.5), 0.0, np.sqrt(0.5)])
    assert block_similarities(vectors * 7, 2) == pytest.approx(block_similarities(vectors, 2))


def test_a_depth_is_measured_from_the_peaks_that_are_climbed_to():
    """From 0.2 one climbs left over 0.5 to 0.9 and right to 0.6, not over the valley to 1.0."""
    assert depths(np.array([0.9, 0.5, 0.2, 0.6, 0.4, 1.0])) == pytest.approx([0, 0.4, 1.1, 0, 0.8, 0])


def test_segments_begin_at_deep_local_maxima():
    vectors = np.eye(3)[[0] * 6 + [1] * 6 + [2] * 6]
    assert TextTiling(window=3, deviations=1.0).find(vectors).tolist() == [6, 12]
    assert TextTiling(window=3, deviations=9.0).find(vectors).tolist() == []
    assert TextTiling(window=3).find(np.ones((12, 2))).tolist() == []


def test_of_gaps_equally_deep_side_by_side_the_last_is_the_boundary():
    """A lone sentence between two topics: similarities 1, 0, 0, 1, so both gaps around it are 2 deep."""
    assert TextTiling(window=1, deviations=0.5).find(np.eye(3)[[0, 0, 1, 2, 2]]).tolist() == [3]


@given(st.integers(0, 10**6), st.integers(0, 40), st.integers(1, 8), st.floats(-3, 3))
def test_any_vectors_give_a_segmentation(seed, count, window, deviations):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((count, 3)) * random.integers(0, 2, (count, 1))  # some are zeros
    found = TextTiling(window=window, deviations=deviations).find(vectors.astype(np.float32))
    assert found.dtype == np.int64
    assert sorted(set(found.tolist())) == found.tolist()
    assert all(0 < start < count for start in found.tolist())


def test_it_embeds_the_sentences_with_the_embedder_that_is_handed_over():
    model = AngleEmbedder()
    tiling = TextTiling(window=2, deviations=0.5)
    assert segment_starts(tiling, ["0", "1", "2", "90", "91", "92"], model).tolist() == [3]
    assert model.texts == ["0", "1", "2", "90", "91", "92"]
    assert segment_starts(tiling, ["0"], model).tolist() == []
    assert model.calls == 1


# --- names ------------------------------------------------------------------------------------------------------


def test_a_segmenter_is_built_by_its_name():
    for spec in ("texttiling", "texttiling:4", "texttiling:4:-0.5"):
        segmenter = get_segmenter(spec)
        assert isinstance(segmenter, Segmenter)
        assert get_segmenter(segmenter.name) == segmenter
        assert get_segmenter(segmenter) is segmenter
    assert get_segmenter("texttiling:4").fingerprint != get_segmenter("texttiling:5").fingerprint


@pytest.mark.parametrize(
    "spec", ["", "tiling", "texttiling:x", "texttiling:0", "texttiling:3:nan", "tagger:", "tagger:x", 7]
)
def test_names_of_no_segmenter_are_told(spec):
    with pytest.raises(OptionError):
        get_segmenter(spec)


# --- the tagger -------------------------------------------------------------------------------------------------


def rows_of(vectors: np.ndarray) -> np.ndarray:
    """The rows of sentences that hold no word."""
    return sentence_rows([""] * len(vectors), vectors)


def small_tagger() -> Tagger:
    random = np.random.default_rng(0)
    weights = {"out.weight": random.standard_normal((1, 6)), "out.bias": random.standard_normal(1)}
    for end in ("", "_reverse"):
        shapes = {"weight_ih": (12, 16 + 16), "weight_hh": (12, 3), "bias_ih": (12,), "bias_hh": (12,)}
        weights |= {f"lstm.{name}_l0{end}": random.standard_normal(shape) for name, shape in shapes.items()}
    networks = [{name: value.astype(np.float32) for name, value in weights.items()}]
    return Tagger(networks, "1", embedder="fake", windows=(1, 2), threshold=0.0)


def test_the_forward_pass_is_pytorchs():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    lstm = torch.nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True).eval()
    out = torch.nn.Linear(8, 1)
    inputs = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    weights = {f"lstm.{name}": each.numpy() for name, each in lstm.state_dict().items()}
    weights |= {f"out.{name}": each.numpy() for name, each in out.state_dict().items()}
    with torch.no_grad():
        expected = torch.sigmoid(out(lstm(torch.from_numpy(inputs)[None])[0]))[0, :, 0].numpy()
    assert boundary_probabilities(inputs, weights) == pytest.approx(expected, abs=1e-6)


def test_it_reads_the_vectors_of_the_model_that_it_was_trained_for(monkeypatch):
    own = FakeEmbedder(16, name="fake")
    monkeypatch.setattr("chunkcore.segmenters.tagger.get_embedder", lambda name: own)
    tagger = small_tagger()
    handed = FakeEmbedder(16, name="openvino:fake")
    first = tagger.starts(["a b", "c d", "e f"], handed)
    assert (handed.calls, own.calls) == (1, 0)
    other = FakeEmbedder(8, name="another")
    assert tagger.starts(["a b", "c d", "e f"], other).tolist() == first.tolist()
    assert (other.calls, own.calls) == (0, 1)
    with pytest.raises(ModelError, match="reads 32 columns, from vectors of fake; got 24 columns: use the model"):
        tagger.find(rows_of(np.zeros((3, 8), dtype=np.float32)))


def test_the_weights_that_ship_are_small_and_need_no_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert SHIPPED.stat().st_size < 5e6
    tagger = load_tagger()
    assert tagger.embedder == "all-MiniLM-L6-v2"
    vectors = np.random.default_rng(0).standard_normal((50, 384)).astype(np.float32)
    assert np.isfinite(tagger.probabilities(rows_of(vectors))).all()
