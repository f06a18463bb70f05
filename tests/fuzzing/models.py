"""Models and a tokenizer of the kind that strategies meet at worst."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore.models.base import Vectors
from chunkcore.models.llm import Message

from tests.fakes import FakeEmbedder, FakeLLM

__all__ = ["EMBEDDERS", "LLMS", "normalising_tokenizer"]


class ConstantEmbedder(FakeEmbedder):
    """Finds all texts alike."""

    def _vector(self, text: str) -> np.ndarray:
        return np.full(self.dimensions, self.dimensions**-0.5)


class TwoSidedEmbedder(FakeEmbedder):
    """Finds a text the same as another, or its very opposite."""

    def _vector(self, text: str) -> np.ndarray:
        return np.full(self.dimensions, self.dimensions**-0.5 * (-1) ** len(text))


class ZeroEmbedder(FakeEmbedder):
    """Finds nothing in any text."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.dimensions), dtype=np.float32)


class FlatteringLLM(FakeLLM):
    """Obeys the schema as cheaply as it can: the first of all choices, the least of all numbers, nothing in lists."""

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> str:
        return "{}" if schema is None else '{"split_after": [], "sections": [], "propositions": [], "context": ""}'


_ODD = {"constant": ConstantEmbedder, "two-sided": TwoSidedEmbedder, "zero": ZeroEmbedder}
_ODD_EMBEDDERS = [kind(8, name=name) for name, kind in _ODD.items()]
EMBEDDERS = (FakeEmbedder(8), FakeEmbedder(1, name="line"), *_ODD_EMBEDDERS)
LLMS = (FakeLLM(broken=0), FakeLLM(), FakeLLM(broken=1, name="broken"), FlatteringLLM(name="flattering"))


@lru_cache(maxsize=1)
def normalising_tokenizer() -> str | None:
    """A counter by a Hugging Face tokenizer that lower-cases, strips accents and drops characters; None without."""
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    except ImportError:
        return None
    pieces = ["[UNK]", "[CLS]", "[", "]", "ch", "##unk", "##s", "the", "a", "##b", "e", "n", "##a", "漢", "1", "##2"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    file = Path(tempfile.gettempdir()) / "chunkcore-fuzzing-tokenizer.json"
    tokenizer.save(str(file))
    return f"hf:{file}"
