"""Training of a `Tagger` with PyTorch: seeded, stopped early, and continued from where it was interrupted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chunkcore.errors import DataError, MissingExtraError, OptionError
from chunkcore.evaluation.segmentation import pk, window_diff
from chunkcore.models.base import Vectors
from chunkcore.segmenters.base import Starts
from chunkcore.segmenters.tagger import Tagger, TaggerSettings, metadata_of, peaks
from chunkcore.segmenters.texttiling import TextTiling
from chunkcore.training.data import SHORTEST, Batch, Labelled, Parts, Pieces, whole_texts

__all__ = [
    "Checkpoint",
    "Place",
    "Scores",
    "Training",
    "best_texttiling",
    "compare_on",
    "save_tagger",
    "score",
    "train_tagger",
    "write_tensors",
]

Find = Callable[[Labelled], Starts]

_WINDOWS = (3, 5, 8, 10, 12, 15, 20, 25)
_DEVIATIONS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_DRAWS = 20


class Scores(NamedTuple):
    """Lower is better."""

    pk: float
    window_diff: float

    @property
    def mean(self) -> float:
        """Of the two: what settings are chosen by."""
        return (self.pk + self.window_diff) / 2


def score(texts: Sequence[Labelled], find: Find) -> Scores:
    """The means over texts of two units or more; 0 where there are none."""
    rows = []
    for text in texts:
        if len(text.vectors) > 1:
            found = find(text).tolist()
            arguments = text.starts.tolist(), found, len(text.vectors)
            rows.append((pk(*arguments), window_diff(*arguments)))
    return Scores(*np.mean(rows, axis=0).tolist()) if rows else Scores(0.0, 0.0)


def compare_on(parts: Parts, tagger: Tagger, seed: int) -> dict[str, Scores]:
    """On texts to test on: the tagger, TextTiling as it does best on the other texts, and what looks at no sentence.

    "every n sentences" is the mean length of the other texts' segments; "random" has as many boundaries as they have,
    and its scores are a mean over 20 draws.
    """
    known, test = parts.train + parts.dev, parts.test
    rate = sum(len(text.starts) for text in known) / max(1, sum(len(text.vectors) for text in known))
    step = round(1 / rate) if rate else max((len(text.vectors) for text in test), default=1)
    tiling = best_texttiling(known)
    random = np.random.default_rng(seed)

    def drawn(text: Labelled) -> Starts:
        return np.flatnonzero(random.random(len(text.vectors) - 1) < rate) + 1

    draws = [score(test, drawn) for _ in range(_DRAWS)]
    return {
        "trained": score(test, lambda text: tagger.find(text.vectors)),
        f"TextTiling, window {tiling.window}, {tiling.deviations} deviations": score(
            test, lambda text: tiling.find(text.vectors)
        ),
        f"every {step} sentences": score(test, lambda text: np.arange(step, len(text.vectors), step)),
        "random": Scores(*np.mean(draws, axis=0).tolist()),
        "no boundary": score(test, lambda text: np.empty(0, dtype=np.int64)),
    }


def best_texttiling(texts: Sequence[Labelled]) -> TextTiling:
    """The window and the deviations that do best on some texts."""
    choices = [TextTiling(window=window, deviations=over) for window, over in product(_WINDOWS, _DEVIATIONS)]
    return min(choices, key=lambda tiling: score(texts, lambda text: tiling.find(text.vectors)).mean)


_FORMAT = "chunkcore-training-1"


@dataclass(frozen=True)
class Place:
    """How far a training is.

    Attributes:
        member: the network that is trained.
        epoch: how many epochs it has had.
        stale: how many of the last ones did not make it better.
        best: its lowest loss.
    """

    member: int = 0
    epoch: int = 0
    stale: int = 0
    best: float = float("inf")


class Checkpoint:
    """A file for the state of one training; without a path nothing is kept.

    Args:
        path: the file.
        training: the options, a dataclass: another's state is not gone on with.
        train: the texts, likewise.
        dev: likewise.
    """

    def __init__(self, path: Path | None, training: Any, train: Sequence[Labelled], dev: Sequence[Labelled]) -> None:
        self.path = path
        self._of = _identity(training, train, dev)

    def load(self) -> tuple[Place, dict[str, Vectors]]:
        """The state that was saved, or that of a beginning.

        Raises:
            DataError: the file is no checkpoint, or that of another training.
        """
        if self.path is None or not self.path.exists():
            return Place(), {}
        metadata, tensors = _read(self.path)
        if metadata.get("format") != _FORMAT:
            raise DataError(f"{str(self.path)!r} is no checkpoint of a training: give another path")
        if metadata.get("of") != self._of:
            raise DataError(
                f"the checkpoint {str(self.path)!r} is of a training with other options or texts: delete it to begin "
                "anew, or give another path"
            )
        return Place(**json.loads(metadata["place"])), tensors

    def save(self, place: Place, tensors: dict[str, Vectors]) -> None:
        """Keep a state in place of the last one."""
        if self.path is not None:
            write_tensors(self.path, tensors, {"format": _FORMAT, "of": self._of, "place": json.dumps(asdict(place))})


def write_tensors(path: Path, tensors: dict[str, Vectors], metadata: dict[str, str]) -> None:
    """Write a safetensors file whole, or leave what is there.

    Raises:
        MissingExtraError: safetensors is not installed.
    """
    try:
        from safetensors.numpy import save
    except ImportError as error:
        raise MissingExtraError.of("safetensors", "training", "write weights") from error
    data = save({name: np.ascontiguousarray(each) for name, each in tensors.items()}, metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)


def _read(path: Path) -> tuple[dict[str, str], dict[str, Vectors]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise MissingExtraError.of("safetensors", "training", "read a checkpoint") from error
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise DataError(f"the checkpoint {str(path)!r} cannot be read ({error}): delete it to begin anew") from error


def _identity(training: Any, *parts: Sequence[Labelled]) -> str:
    digest = blake2b(json.dumps(asdict(training), sort_keys=True).encode(), digest_size=16)
    for texts in parts:
        digest.update(b"part")
        for text in texts:
            digest.update(text.vectors.tobytes())
            digest.update(text.starts.astype(np.int64).tobytes())
    return digest.hexdigest()


Tensors = dict[str, Vectors]
Progress = Callable[[int, int, float, float], None]

_THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 17))
_LARGEST_GRADIENT = 1.0


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a tagger is trained. Defaults are those of the weights that ship.

    Attributes:
        hidden: width of each direction of each layer.
        layers: how many there are.
        members: networks that are trained one after the other, from different seeds; their probabilities are averaged.
        windows: see `sentence_features`.
        dropout: of inputs and states.
        epochs: at most so many a network.
        patience: a network's training ends after so many epochs that did not lower the loss on the development texts.
        batch: pieces of texts that are seen at once.
        piece: sentences a piece.
        rate: Adam's learning rate.
        shuffle: how often a text's segments are shuffled, but for the first.
        splice: how often a segment is replaced by one of any text.
        thin: up to this share of a segment's sentences is left out.
        seed: of everything that is drawn.

    Raises:
        OptionError: an option is out of range.
    """

    hidden: int = 48
    layers: int = 2
    members: int = 1
    windows: tuple[int, ...] = (1, 2, 4, 8, 15)
    dropout: float = 0.4
    epochs: int = 40
    patience: int = 8
    batch: int = 16
    piece: int = 150
    rate: float = 0.002
    shuffle: float = 0.7
    splice: float = 0.15
    thin: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", tuple(self.windows))
        for name in ("hidden", "layers", "members", "epochs", "patience", "batch"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, got {getattr(self, name)}")
        for name in ("dropout", "shuffle", "splice", "thin"):
            if not 0 <= getattr(self, name) < 1 and not (name in ("shuffle", "splice") and getattr(self, name) == 1):
                raise OptionError(f"{name} is at least 0 and less than 1, got {getattr(self, name)}")
        if self.piece < SHORTEST:
            raise OptionError(f"piece is at least {SHORTEST} sentences, got {self.piece}")
        if not self.rate > 0:
            raise OptionError(f"rate is over 0, got {self.rate}")
        if not self.windows or min(self.windows) < 1:
            raise OptionError(f"windows are at least 1 sentence each, got {list(self.windows)}")
        if self.seed < 0:
            raise OptionError(f"seed is at least 0, got {self.seed}")


def train_tagger(
    train: Sequence[Labelled],
    dev: Sequence[Labelled],
    training: Training,
    *,
    embedder: str,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Tagger:
    """Train on some texts; the best epoch of each network and the threshold are those that do best on others.

    Cross-entropy of whether a sentence begins a segment, with Adam, on pieces of the texts that are drawn anew each
    epoch. PyTorch runs in one thread, so that the same machine gives the same weights, and training that
    was interrupted those it would have given.

    Args:
        train: texts to learn from.
        dev: texts to choose by.
        training: see there.
        embedder: the name of the model that made the vectors.
        checkpoint: a file that holds the state after each epoch; what it holds is gone on with.
        progress: called after each epoch with the network, the epoch, and the losses on both sets of texts.

    Raises:
        DataError: there are no texts to train on or to choose by, or the checkpoint is of another training.
        MissingExtraError: PyTorch is not installed.
    """
    torch = _torch()
    for texts, what in ((train, "train on"), (dev, "choose by")):
        if not any(len(text.vectors) > SHORTEST for text in texts):
            raise DataError(f"there is no text of more than {SHORTEST} sentences to {what}: give more texts")
    course = _Course(torch, train, dev, training, checkpoint, progress)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            tensors = course.run()
    finally:
        torch.set_num_threads(threads)
    settings = TaggerSettings(embedder=embedder, windows=training.windows, threshold=0.5, members=training.members)
    return _with_threshold(Tagger({name: each.astype(np.float16) for name, each in tensors.items()}, settings), dev)


def save_tagger(tagger: Tagger, path: Path) -> None:
    """Write the weights, at half precision, and what they were trained for: one safetensors file.

    Raises:
        MissingExtraError: safetensors is not installed.
    """
    write_tensors(path, dict(tagger.tensors), metadata_of(tagger.settings))


def _with_threshold(tagger: Tagger, dev: Sequence[Labelled]) -> Tagger:
    """With the threshold whose mean of Pk and WindowDiff is best."""
    known = {text.id: tagger.probabilities(text.vectors) for text in dev if len(text.vectors) > 1}
    best = min(_THRESHOLDS, key=lambda least: score(dev, lambda text: peaks(known[text.id], least)).mean)
    return Tagger(tagger.tensors, replace(tagger.settings, threshold=best))


class _Course:
    """One training, from its beginning or from a checkpoint to its end."""

    def __init__(
        self,
        torch: Any,
        train: Sequence[Labelled],
        dev: Sequence[Labelled],
        training: Training,
        checkpoint: Path | None,
        progress: Progress | None,
    ) -> None:
        self.torch = torch
        self.training = training
        self.pieces = Pieces(train, training)
        self.dev = whole_texts(dev, training)
        self.width = train[0].vectors.shape[1] + 2 * len(training.windows)
        self.checkpoint = Checkpoint(checkpoint, training, train, dev)
        self.progress = progress or (lambda member, epoch, loss, dev_loss: None)

    def run(self) -> Tensors:
        """The best weights of each network, by their names with its number before them."""
        place, saved = self.checkpoint.load()
        done = {name: each for name, each in saved.items() if name[0].isdigit()}
        for member in range(place.member, self.training.members):
            best = self._fit(replace(place, member=member), saved, done)
            done |= {f"{member}.{name}": each for name, each in best.items()}
            place, saved = Place(member + 1), {}
        return done

    def _fit(self, place: Place, saved: Tensors, done: Tensors) -> Tensors:
        """Train one network, from where it is, until it gets no better."""
        network, optimizer = self._new(place.member)
        best = _weights(network)
        if place.epoch:
            best = _taken(saved, "best.")
            self._restore(network, optimizer, saved, place.epoch)
        while place.epoch < self.training.epochs and place.stale < self.training.patience:
            loss, dev_loss = self._epoch(network, optimizer, place)
            better = dev_loss < place.best
            best = _weights(network) if better else best
            place = Place(
                place.member, place.epoch + 1, 0 if better else place.stale + 1, dev_loss if better else place.best
            )
            self.checkpoint.save(place, {**done, **self._state(network, optimizer), **_named("best.", best)})
            self.progress(place.member, place.epoch, loss, dev_loss)
        return best

    def _new(self, member: int) -> tuple[Any, Any]:
        self.torch.manual_seed(self._seed(member, 0))
        network = _network(self.torch, self.width, self.training)
        return network, self.torch.optim.Adam(network.parameters(), lr=self.training.rate)

    def _seed(self, member: int, epoch: int) -> int:
        return int(np.random.default_rng([self.training.seed, member, epoch]).integers(2**31))

    def _epoch(self, network: Any, optimizer: Any, place: Place) -> tuple[float, float]:
        """One pass over the texts; the mean losses of training and of the development texts."""
        # What is drawn depends on the epoch alone: training that was interrupted draws the same.
        self.torch.manual_seed(self._seed(place.member, place.epoch + 1))
        random = np.random.default_rng([self.training.seed, place.member, place.epoch])
        network.train()
        losses = []
        for batch in self.pieces.batches(random):
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
        inputs, labels, counted = (self.torch.from_numpy(each) for each in batch)
        losses = self.torch.nn.functional.binary_cross_entropy_with_logits(network(inputs), labels, reduction="none")
        return (losses * counted).sum() / counted.sum()

    def _state(self, network: Any, optimizer: Any) -> Tensors:
        tensors = _named("now.", _weights(network))
        for name, parameter in network.named_parameters():
            moments = optimizer.state[parameter]
            for moment in ("exp_avg", "exp_avg_sq"):
                tensors[f"{moment}.{name}"] = moments[moment].numpy().copy()
        tensors["step"] = moments["step"].numpy().reshape(1).copy()
        return tensors

    def _restore(self, network: Any, optimizer: Any, saved: Tensors, epoch: int) -> None:
        tensor = self.torch.from_numpy
        network.load_state_dict({name: tensor(each.copy()) for name, each in _taken(saved, "now.").items()})
        for name, parameter in network.named_parameters():
            optimizer.state[parameter] = {
                "step": tensor(saved["step"].copy())[0],
                **{moment: tensor(saved[f"{moment}.{name}"].copy()) for moment in ("exp_avg", "exp_avg_sq")},
            }


def _network(torch: Any, width: int, training: Training) -> Any:
    """A bidirectional LSTM and a linear unit, whose weights have the names that `boundary_probabilities` reads."""

    class Network(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            between = training.dropout if training.layers > 1 else 0.0
            self.lstm = torch.nn.LSTM(
                width, training.hidden, training.layers, bidirectional=True, batch_first=True, dropout=between
            )
            self.out = torch.nn.Linear(2 * training.hidden, 1)
            self.dropout = torch.nn.Dropout(training.dropout)

        def forward(self, inputs: Any) -> Any:
            states, _ = self.lstm(self.dropout(inputs))
            return self.out(self.dropout(states)).squeeze(-1)

    return Network()


def _weights(network: Any) -> Tensors:
    return {name: each.detach().numpy().copy() for name, each in network.state_dict().items()}


def _named(before: str, tensors: Tensors) -> Tensors:
    return {before + name: each for name, each in tensors.items()}


def _taken(tensors: Tensors, before: str) -> Tensors:
    return {name[len(before) :]: each for name, each in tensors.items() if name.startswith(before)}


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError.of("torch", "training", "train a segmenter") from error
    return torch
