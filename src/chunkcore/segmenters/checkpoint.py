"""Where a training is, in one safetensors file that is replaced whole: tensors, and JSON in its header. No pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.errors import DataError, MissingExtraError
from chunkcore.models.base import Vectors
from chunkcore.segmenters.labelled import Labelled

__all__ = ["Checkpoint", "Place", "write_tensors"]

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
