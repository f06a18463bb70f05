"""A static model: a text's vector is the mean of its tokens' vectors. It stands for weak embedders in benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.models.base import Vectors


class StaticModel:
    """The one table of vectors (``*.safetensors``) and the tokenizer (``*token*.json``) under a folder.

    WordLlama's wheel has both: ``pip install --no-deps --target FOLDER wordllama``.
    """

    max_tokens = None
    symmetric = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = "static"
        self.fingerprint = sha256(self._file("*.safetensors").read_bytes()).hexdigest()

    def _file(self, pattern: str) -> Path:
        return min(self.folder.rglob(pattern))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._file("*token*.json")))

    @cached_property
    def _table(self) -> Vectors:
        from safetensors.numpy import load_file

        (table,) = load_file(self._file("*.safetensors")).values()
        return table.astype(np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        rows = [each.ids for each in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        found = np.zeros((len(rows), self._table.shape[1]), dtype=np.float32)
        for number, ids in enumerate(rows):
            if ids:
                found[number] = self._table[ids].mean(axis=0)
        return found

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)
