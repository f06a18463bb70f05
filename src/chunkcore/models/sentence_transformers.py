"""`SentenceTransformersEmbedder`: any model that sentence-transformers loads, with PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError, shortened
from chunkcore.escaping import encodable
from chunkcore.lazy import needed
from chunkcore.models.base import (
    DOCUMENT_PROMPTS,
    TokenizerEmbedder,
    Vectors,
    choose_prompt,
    fetch,
    folder_fingerprint,
    in_batches,
    padded,
    without_truncation,
)
from chunkcore.spans import Numbers

_BATCH_TEXTS = 32
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
        mode = getattr(pooling, "pooling_mode", None) or pooling.get_pooling_mode_str()
        if mode not in _MEANS or not getattr(pooling, "include_prompt", True):
            raise OptionError(
                f"{self.name}: its pooling is {mode}; choose a model that pools by mean"
            )
        rows = in_batches(windows, _BATCH_TEXTS, _BATCH_TOKENS, self._infer)
        return [row[: len(window)] for row, window in zip(rows, windows, strict=True)]

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
            answer: Vectors = encode(ready, batch_size=_BATCH_TEXTS, show_progress_bar=False)
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
            first_line, _, _ = str(error).strip().partition("\n")
            raise OptionError(
                f"no model {source!r} ({type(error).__name__}: {shortened(first_line, 500)}): expected "
                "the folder of a sentence-transformers model, or the name of one on the hub"
            ) from error
