"""`Tagger`: a trained segmenter, a bidirectional LSTM over sentence vectors, on numpy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import ModelError, OptionError
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder, Vectors, embed, unit_rows
from chunkcore.models.loading import get_embedder
from chunkcore.segmenters.base import Floats, block_similarities, depths, peaks, segmenters
from chunkcore.spans import Numbers

SHIPPED = Path(__file__).with_name("tagger.safetensors")
_BAG, _CUES = 512, 6
_WORD = re.compile(r"\w{4,}")
_CONTINUES = re.compile(
    r"(he|she|it|they|this|these|that|those|his|her|its|their|however|also|but|and|such|other|another|both|some|"
    r"although|though|thus|therefore|moreover|furthermore|additionally|then|there|one|later|similarly|instead|"
    r"as a result)\b",
    re.IGNORECASE,
)
_DATED = re.compile(r"(in|on|by|during|after|before) [^,]{0,30}\d{4}", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}")


def boundary_probabilities(inputs: Vectors, weights: Mapping[str, Vectors]) -> Vectors:
    """The probability that a segment begins at each row: float32, shape (n,). O(n) time.

    Bidirectional LSTM layers, a linear unit and the logistic function, with PyTorch's names and layout of weights:
    ``lstm.weight_ih_l0`` ..., ``out.weight``, ``out.bias``.
    """
    states = inputs
    for layer in range(sum(name.startswith("lstm.weight_ih_l") for name in weights) // 2):
        forward = _direction(states, weights, f"l{layer}")
        backward = _direction(states[::-1], weights, f"l{layer}_reverse")[::-1]
        states = np.hstack((forward, backward))
    return _logistic(states @ weights["out.weight"][0] + weights["out.bias"][0])


def _direction(inputs: Vectors, weights: Mapping[str, Vectors], name: str) -> Vectors:
    recurrent = weights[f"lstm.weight_hh_{name}"].T
    bias = weights[f"lstm.bias_ih_{name}"] + weights[f"lstm.bias_hh_{name}"]
    entering = inputs @ weights[f"lstm.weight_ih_{name}"].T + bias
    width = len(recurrent)
    states = np.empty((len(inputs), width), dtype=np.float32)
    hidden, cell = np.zeros(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    for row, gates in enumerate(entering):
        gates = gates + hidden @ recurrent
        opened = _logistic(gates)
        cell = opened[width : 2 * width] * cell + opened[:width] * np.tanh(
            gates[2 * width : 3 * width]
        )
        hidden = opened[3 * width :] * np.tanh(cell)
        states[row] = hidden
    return states


def _logistic(values: Vectors) -> Vectors:
    # tanh does not overflow.
    result: Vectors = (0.5 * np.tanh(0.5 * values) + 0.5).astype(np.float32)
    return result


def sentence_rows(sentences: Sequence[str], vectors: Vectors) -> Vectors:
    """What the tagger reads of each sentence: float32, shape (n, d + 518).

    The unit vector; the sentence's words of four letters or more, cut to seven and hashed to 512 signed columns; and
    six cues: it opens with a word that continues ("however"), with a date, with a quotation mark or with "The"; it
    holds a year; its length.

    >>> sentence_rows(["However, it rains."], np.ones((1, 4), dtype=np.float32)).shape
    (1, 522)
    """
    bag = np.zeros((len(sentences), _BAG), dtype=np.float32)
    for row, sentence in zip(bag, sentences, strict=True):
        for word in {item[:7] for item in _WORD.findall(sentence.lower())}:
            hashed = crc32(word.encode("utf-8", "surrogatepass"))
            row[hashed % _BAG] += 1.0 if hashed >> 31 else -1.0
    cues = np.array([_cues(item) for item in sentences], dtype=np.float32).reshape(-1, _CUES)
    return np.hstack((unit_rows(vectors).astype(np.float32), bag, cues))


def _cues(sentence: str) -> tuple[float, ...]:
    length = np.log1p(len(sentence)) - 4.5
    opens = _CONTINUES.match(sentence), _DATED.match(sentence), _YEAR.search(sentence)
    return (*map(bool, opens), length, sentence.startswith(('"', "“", "(")), sentence[:4] == "The ")


def sentence_features(rows: Vectors, windows: tuple[int, ...]) -> Vectors:
    """One row a sentence from `sentence_rows`: float32, shape (n, d + 8 + 4 · windows), in O(n·d).

    The unit vector, four times as long; the cues; the text's length and the place in it; then for each window, of the
    vectors and of the words weighted by idf in the text, the block similarity at the gap before the sentence and its
    depth (as in TextTiling), standardised over the text. The first sentence has 0 there.

    >>> rows = sentence_rows([""] * 4, np.eye(2, dtype=np.float32)[[0, 0, 1, 1]])
    >>> sentence_features(rows, (1,))[:, 10:12].astype(float).round(2).tolist()
    [[0.0, 0.0], [0.71, -0.71], [-1.41, 1.41], [0.71, -0.71]]
    """
    count, width = rows.shape
    vectors, bag, cues = np.split(rows, (width - _BAG - _CUES, width - _CUES), axis=1)
    held = np.count_nonzero(bag, axis=0)
    words = bag * (np.log(count / np.maximum(held, 1)) * (held > 1))
    columns = [
        4 * vectors,
        cues,
        np.full((count, 1), np.log(max(count, 1)) - 4),
        np.linspace(-1, 1, count)[:, None],
    ]
    for window in windows:
        for kind in (vectors, words):
            similarities = block_similarities(kind, window)
            columns += [_standardised(similarities), _standardised(depths(similarities))]
    return np.hstack(columns).astype(np.float32)


def _standardised(values: Floats) -> NDArray[np.float32]:
    column = np.zeros((len(values) + 1, 1), dtype=np.float32)
    if len(values):
        column[1:, 0] = (values - values.mean()) / (values.std() + 1e-6)
    return column


@dataclass(frozen=True, eq=False)
class Tagger:
    """A supervised segmenter: does each sentence begin a segment?

    Koshorek et al., "Text Segmentation as a Supervised Learning Task" (2018), as in Nguyen et al. (2025, 3.2). A
    bidirectional LSTM reads `sentence_features`; sentence vectors replace the paper's lower LSTM over words.
    A segment begins at each local maximum of the probability over the threshold.

    Attributes:
        networks: the weights of each network, whose probabilities are averaged.
        fingerprint: changes with the weights and settings.
        embedder: name of the model whose vectors the networks were trained on.
        windows: of `sentence_features`.
        threshold: the probability over which a segment begins.

    Cost: one call of the model for the distinct sentences; O(n·d) time and memory, about 10,000 sentences a second.

    >>> tagger = load_tagger()
    >>> tagger.embedder, tagger.find(sentence_rows(["One."], np.zeros((1, 384)))).tolist()
    ('all-MiniLM-L6-v2', [])
    """

    networks: Sequence[Mapping[str, Vectors]]
    fingerprint: str
    embedder: str
    windows: tuple[int, ...]
    threshold: float
    name: str = "tagger"

    def starts(self, sentences: Sequence[str], embedder: Embedder) -> Numbers:
        """See `Segmenter`. Loads its own model if `embedder` is another one."""
        if embedder.name.rpartition(":")[2] != self.embedder:
            embedder = get_embedder(self.embedder)
        return self.find(sentence_rows(sentences, embed(embedder, sentences)))

    def find(self, rows: Vectors) -> Numbers:
        """Which of the `sentence_rows` begin a segment, without the first."""
        if len(rows) < 2:
            return np.empty(0, dtype=np.int64)
        return peaks(self.probabilities(rows)[1:], self.threshold) + 1

    def probabilities(self, rows: Vectors) -> Vectors:
        """The probability that a segment begins at each of the `sentence_rows`. Raises `ModelError` for other rows."""
        features = sentence_features(rows, self.windows)
        expected = self.networks[0]["lstm.weight_ih_l0"].shape[1]
        if features.shape[1] != expected:
            raise ModelError(
                f"the segmenter {self.name!r} reads {expected} columns, from vectors of {self.embedder}; "
                f"got {features.shape[1]} columns: use the model that it was trained for"
            )
        answers = [boundary_probabilities(features, weights) for weights in self.networks]
        mean: Vectors = np.mean(answers, axis=0, dtype=np.float32)
        return mean


@lru_cache(maxsize=1)
def load_tagger() -> Tagger:
    """The tagger that ships with the package."""
    safetensors = needed("safetensors", "models", "read the segmenter's weights")
    with safetensors.safe_open(SHIPPED, framework="numpy") as file:
        settings = json.loads(file.metadata()["chunkcore"])
        networks: list[dict[str, Vectors]] = [{} for _ in range(settings["members"])]
        for name in file.keys():  # noqa: SIM118  it is no dictionary
            number, _, weight = name.partition(".")
            # The file holds half precision.
            networks[int(number)][weight] = file.get_tensor(name).astype(np.float32)
    return Tagger(
        networks,
        settings["fingerprint"],
        settings["embedder"],
        tuple(settings["windows"]),
        settings["threshold"],
    )


@segmenters.register("tagger")
def _read(options: str) -> Callable[[], Tagger]:
    """The trained network that ships with the package."""
    if options:
        raise OptionError(f"tagger:{options}: the segmenter tagger has no options")
    return load_tagger
