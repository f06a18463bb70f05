"""Training of a `Tagger` with PyTorch: seeded, with early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.errors import DataError
from chunkcore.evaluation.segmentation import LabelledText, pk, window_diff
from chunkcore.files import write_parts
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.options import check_options, check_ranges
from chunkcore.segmenters.base import TextTiling, peaks
from chunkcore.segmenters.tagger import (
    EXTRA,
    Tagger,
    TaggerSettings,
    features_beside,
    metadata_of,
    sentence_features,
    sentence_rows,
)
from chunkcore.spans import Numbers

SHORTEST = 10  # sentences in the shortest piece
_THRESHOLDS = tuple(round(0.01 * step, 2) for step in range(5, 81))
_FEWEST = 0.8  # segments found, of those there are
_LENGTHS = (5, 8, 12, 20)  # sentences of sections that are cut short
_LARGEST_GRADIENT = 1.0


class Labelled(NamedTuple):
    """A text: its `sentence_rows`, and the sentences that begin a segment, without the first."""

    id: str
    rows: Vectors
    starts: Numbers

    @property
    def vectors(self) -> Vectors:
        return self.rows[:, :-EXTRA]


class Parts(NamedTuple):
    """Texts for training, for choosing epoch and threshold, and for testing."""

    train: list[Labelled]
    dev: list[Labelled]
    test: list[Labelled]


def embed_texts(texts: Sequence[LabelledText], embedder: Embedder) -> list[Labelled]:
    """The texts with their sentences' rows, from one call of the model."""
    vectors = embed(embedder, [sentence for text in texts for sentence in text.sentences])
    ends = np.cumsum([len(text.sentences) for text in texts])
    parts = np.split(vectors, ends[:-1])
    return [
        Labelled(text.id, sentence_rows(text.sentences, part), text.starts)
        for text, part in zip(texts, parts, strict=True)
    ]


def split_texts(texts: Iterable[Labelled], seed: int) -> Parts:
    """Split texts 6 : 2 : 2 by a hash of seed and id. A text's part does not depend on other texts."""
    parts = Parts([], [], [])
    for text in texts:
        getattr(parts, part_of(text.id, seed)).append(text)
    return parts


def part_of(name: str, seed: int) -> Literal["train", "dev", "test"]:
    """The part of the text with this id."""
    hashed = blake2b(
        name.encode("utf-8", "surrogatepass"), digest_size=4, salt=seed.to_bytes(8, "little")
    )
    tenth = int.from_bytes(hashed.digest(), "big") % 10
    return "train" if tenth < 6 else "dev" if tenth < 8 else "test"


class SegmentationScores(NamedTuple):
    """Means over texts; lower is better."""

    pk: float
    window_diff: float


def score(texts: Sequence[Labelled], find: Callable[[Labelled], Numbers]) -> SegmentationScores:
    """Mean scores over texts of two or more sentences; 0 without such texts."""
    rows = []
    for text in texts:
        if len(text.rows) > 1:
            arguments = text.starts.tolist(), find(text).tolist(), len(text.rows)
            rows.append((pk(*arguments), window_diff(*arguments)))
    return (
        SegmentationScores(*np.mean(rows, axis=0).tolist())
        if rows
        else SegmentationScores(0.0, 0.0)
    )


def compare_on(test: Sequence[Labelled], tagger: Tagger) -> dict[str, SegmentationScores]:
    """Scores of the tagger, of TextTiling with its defaults, and of no boundary at all."""
    tiling = TextTiling()
    return {
        "trained": score(test, lambda text: tagger.find(text.rows)),
        tiling.name: score(test, lambda text: tiling.find(text.vectors)),
        "no boundary": score(test, lambda text: np.empty(0, dtype=np.int64)),
    }


@dataclass(frozen=True, kw_only=True)
class Training:
    """Options of a tagger's training. The defaults made the shipped weights."""

    hidden: int = 32  # width of each direction
    members: int = 2  # networks trained from different seeds; their probabilities are averaged
    windows: tuple[int, ...] = (1, 2, 4, 8, 15, 25)  # see `sentence_features`
    dropout: float = 0.4  # of states; twice of vectors, half as much of other inputs
    epochs: int = 30  # the most for one network
    patience: int = 6  # epochs without a lower development loss before training stops
    batch: int = 16  # pieces in one step
    piece: int = 150  # sentences in a piece of a text
    rate: float = 0.003  # Adam's learning rate
    shuffle: float = 0.5  # probability of shuffling a text's segments, without the first
    splice: float = 0.1  # probability of replacing a segment by one of another text
    short: float = (
        0.4  # probability of cutting a text's segments to runs of some 5, 8, 12 or 20 sentences
    )
    thin: float = 0.4  # largest share of a segment's sentences to leave out of other texts
    seed: int = 0  # of all random draws

    def __post_init__(self) -> None:
        check_options(self)
        counts = dict.fromkeys(("hidden", "members", "epochs", "patience", "batch"), (1, 10_000))
        shares = dict.fromkeys(("shuffle", "splice", "short"), (0, 1))
        check_ranges(
            self,
            **counts,
            **shares,
            dropout=(0, 0.99),
            thin=(0, 0.99),
            piece=SHORTEST,
            rate=(1e-9, 100),
            seed=0,
        )


class Batch(NamedTuple):
    """Pieces side by side, padded, float32. `counted` is 0 for padding and first sentences."""

    inputs: Vectors
    labels: Vectors
    counted: Vectors


class VariedTexts:
    """Training texts, changed in every epoch: segments shuffled or replaced, sentences left out."""

    def __init__(self, texts: Sequence[Labelled], training: Training) -> None:
        self._texts = [_segments(text) for text in texts]
        self._pool = [segment for segments in self._texts for segment in segments]
        self._training = training

    def batches(self, random: np.random.Generator) -> Iterator[Batch]:
        """All texts, varied and cut into pieces, in random order."""
        pieces = []
        for segments in self._texts:
            inputs, labels = _prepared(self._varied(segments, random), self._training.windows)
            first = -int(random.integers(self._training.piece))
            for start in range(first, len(inputs), self._training.piece):
                rows = slice(max(0, start), start + self._training.piece)
                if len(inputs[rows]) >= SHORTEST:
                    pieces.append((inputs[rows], labels[rows]))
        order = random.permutation(len(pieces))
        for start in range(0, len(pieces), self._training.batch):
            yield _padded([pieces[place] for place in order[start : start + self._training.batch]])

    def _varied(self, segments: list[Vectors], random: np.random.Generator) -> list[Vectors]:
        if random.random() < self._training.shuffle:
            segments = [
                segments[0],
                *(segments[1 + place] for place in random.permutation(len(segments) - 1)),
            ]
        segments = [
            self._pool[random.integers(len(self._pool))]
            if random.random() < self._training.splice
            else segment
            for segment in segments
        ]
        if random.random() < self._training.short:
            return _short(segments, int(random.choice(_LENGTHS)), random)
        thinned = [
            segment[random.random(len(segment)) >= self._training.thin * random.random()]
            for segment in segments
        ]
        return [segment for segment in thinned if len(segment)] or segments


def shortened(texts: Sequence[Labelled], sentences: int, seed: int) -> list[Labelled]:
    """The texts with each segment cut to a run of about so many sentences (log-normal), from a random place in it."""
    random, texts_cut = np.random.default_rng(seed), []
    for text in texts:
        runs = _short(_segments(text), sentences, random)
        texts_cut.append(
            Labelled(text.id, np.concatenate(runs), np.cumsum([len(run) for run in runs])[:-1])
        )
    return texts_cut


def _short(
    segments: Sequence[Vectors], sentences: int, random: np.random.Generator
) -> list[Vectors]:
    runs = []
    for segment in segments:
        length = max(2, int(random.lognormal(np.log(sentences), 0.6)))
        first = random.integers(0, max(1, len(segment) - length + 1))
        runs.append(segment[first : first + length])
    return runs


def _segments(text: Labelled) -> list[Vectors]:
    return np.split(text.rows, text.starts)


def _prepared(segments: Sequence[Vectors], windows: tuple[int, ...]) -> tuple[Vectors, Vectors]:
    labels = np.zeros(sum(map(len, segments)), dtype=np.float32)
    labels[np.cumsum([len(segment) for segment in segments])[:-1]] = 1.0
    return sentence_features(np.concatenate(segments), windows), labels


def _padded(pieces: Sequence[tuple[Vectors, Vectors]]) -> Batch:
    shape = len(pieces), max(len(labels) for _, labels in pieces)
    batch = Batch(
        np.zeros((*shape, pieces[0][0].shape[1]), np.float32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
    )
    for row, (inputs, labels) in enumerate(pieces):
        batch.inputs[row, : len(labels)] = inputs
        batch.labels[row, : len(labels)] = labels
        batch.counted[row, 1 : len(labels)] = 1.0
    return batch


def train_tagger(
    train: Sequence[Labelled],
    dev: Sequence[Labelled],
    training: Training,
    *,
    embedder: str,
    progress: Callable[[int, int, float, float], None] | None = None,
) -> Tagger:
    """Train a tagger: cross-entropy of "a segment begins here", with Adam.

    The best epoch of each network and the threshold are chosen on `dev`, whole and with segments cut short. The
    threshold has the lowest Pk of those that find as many segments as there are, within a fifth. PyTorch runs in one
    thread: the same machine gives the same weights.

    `embedder` is the name of the model that made the vectors. `progress` is called after each epoch with network,
    epoch, and the training and development loss. Raises `DataError`: no texts of enough sentences.
    """
    torch = needed("torch", "training", "train a segmenter")
    for texts, what in ((train, "train on"), (dev, "choose by")):
        if not any(len(text.rows) > SHORTEST for text in texts):
            raise DataError(
                f"there is no text of more than {SHORTEST} sentences to {what}: give more texts"
            )
    dev = [
        *dev,
        *(text for length in _LENGTHS[1::2] for text in shortened(dev, length, training.seed)),
    ]
    width = train[0].rows.shape[1] - EXTRA + features_beside(training.windows)
    whole = [
        _padded([_prepared(_segments(text), training.windows)])
        for text in dev
        if len(text.rows) > 1
    ]
    course = _Course(
        torch, training, VariedTexts(train, training), whole, width, progress or (lambda *_: None)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            tensors = course.run()
    finally:
        torch.set_num_threads(threads)
    settings = TaggerSettings(
        embedder=embedder, windows=training.windows, threshold=0.5, members=training.members
    )
    tagger = Tagger(
        {name: tensor.numpy().astype(np.float16) for name, tensor in tensors.items()}, settings
    )
    return Tagger(tagger.tensors, replace(settings, threshold=_threshold(tagger, dev)))


def _threshold(tagger: Tagger, texts: Sequence[Labelled]) -> float:
    probabilities = {
        id(text): tagger.probabilities(text.rows)[1:] for text in texts if len(text.rows) > 1
    }

    def ratio(threshold: float) -> float:
        """Segments found, of those there are: the geometric mean over texts."""
        texts_cut = [text for text in texts if id(text) in probabilities]
        cuts = [len(peaks(probabilities[id(text)], threshold)) + 1 for text in texts_cut]
        return float(
            np.exp(np.mean(np.log(cuts) - np.log([len(text.starts) + 1 for text in texts_cut])))
        )

    def error(threshold: float) -> float:
        return score(texts, lambda text: peaks(probabilities[id(text)], threshold) + 1).pk

    near = [threshold for threshold in _THRESHOLDS if _FEWEST < ratio(threshold) < 1 / _FEWEST]
    return min(near or _THRESHOLDS, key=error)


def save_tagger(tagger: Tagger, path: Path) -> None:
    """Write weights (half precision) and settings as one safetensors file."""
    safetensors = needed("safetensors.numpy", "training", "write weights")
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tagger.tensors.items()}
    write_parts(path, [safetensors.save(tensors, metadata_of(tagger))])


class _Course(NamedTuple):
    torch: Any
    training: Training
    texts: VariedTexts
    dev: list[Batch]  # whole texts
    width: int  # of the inputs
    progress: Callable[[int, int, float, float], None]

    def run(self) -> dict[str, Any]:
        """The best weights of each network, named "<network>.<weight>"."""
        members = range(self.training.members)
        return {
            f"{member}.{name}": tensor
            for member in members
            for name, tensor in self._fit(member).items()
        }

    def _fit(self, member: int) -> dict[str, Any]:
        self.torch.manual_seed(self._seed(member, 0))
        network = _network(self.torch, self.width, self.training)
        optimizer = self.torch.optim.Adam(network.parameters(), lr=self.training.rate)
        best, lowest, stale = _weights(network), float("inf"), 0
        for epoch in range(self.training.epochs):
            loss, dev_loss = self._epoch(network, optimizer, member, epoch)
            stale += 1
            if dev_loss < lowest:
                best, lowest, stale = _weights(network), dev_loss, 0
            self.progress(member, epoch + 1, loss, dev_loss)
            if stale >= self.training.patience:
                break
        return best

    def _seed(self, member: int, epoch: int) -> int:
        return int(np.random.default_rng([self.training.seed, member, epoch]).integers(2**31))

    def _epoch(self, network: Any, optimizer: Any, member: int, epoch: int) -> tuple[float, float]:
        self.torch.manual_seed(self._seed(member, epoch + 1))
        network.train()
        losses = []
        for batch in self.texts.batches(np.random.default_rng([self.training.seed, member, epoch])):
            optimizer.zero_grad()
            loss = self._loss(network, batch)
            loss.backward()
            self.torch.nn.utils.clip_grad_norm_(network.parameters(), _LARGEST_GRADIENT)
            optimizer.step()
            losses.append(loss.item())
        network.eval()
        with self.torch.no_grad():
            dev = [self._loss(network, batch).item() for batch in self.dev]
        return float(np.mean(losses)), float(np.mean(dev))

    def _loss(self, network: Any, batch: Batch) -> Any:
        inputs, labels, counted = (self.torch.from_numpy(array) for array in batch)
        losses = self.torch.nn.functional.binary_cross_entropy_with_logits(
            network(inputs), labels, reduction="none"
        )
        return (losses * counted).sum() / counted.sum()


def _network(torch: Any, width: int, training: Training) -> Any:
    """A bidirectional LSTM and a linear unit, with the weight names of `boundary_probabilities`."""

    class Network(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(width, training.hidden, bidirectional=True, batch_first=True)
            self.out = torch.nn.Linear(2 * training.hidden, 1)
            self.dropout = torch.nn.Dropout(training.dropout)
            self.other = torch.nn.Dropout(training.dropout / 2)
            self.beside = features_beside(training.windows)

        def forward(self, inputs: Any) -> Any:
            vectors, other = inputs[..., : -self.beside], inputs[..., -self.beside :]
            states, _ = self.lstm(
                torch.cat((self.dropout(self.dropout(vectors)), self.other(other)), dim=-1)
            )
            return self.out(self.dropout(states)).squeeze(-1)

    return Network()


def _weights(network: Any) -> dict[str, Any]:
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
