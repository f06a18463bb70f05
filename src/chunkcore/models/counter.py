"""`EmbedderCounter`: sizes in the tokens that the embedding model itself reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder, TokenCountingEmbedder, TokenEmbedder
from chunkcore.models.loading import get_embedder
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter
from chunkcore.tokens.counters import counters

__all__ = ["EmbedderCounter", "tokenizing"]


@counters.register("embedder")
class EmbedderCounter(TokenCounter):
    """An embedder's own tokens, without those that it puts around every text.

    What counts at most ``max_tokens`` less those is read whole. By name: "embedder:" and a model as `get_embedder`
    knows them, or "embedder" for the default model, in whose place `run_experiment` and ``compare`` put their own.
    The model is loaded when the first text is counted.

    Args:
        embedder: its name or the object; "" for the default model.

    Raises:
        OptionError: when it is used, the name is none, or the model does not tell its tokens.
    """

    def __init__(self, embedder: Embedder | str = "") -> None:
        spec = embedder if isinstance(embedder, str) else embedder.name
        self.name = f"embedder:{spec}" if spec else "embedder"
        self._embedder = embedder

    @classmethod
    def read(cls, options: str) -> EmbedderCounter:
        """The counter of ``embedder:options``."""
        return cls(options)

    @cached_property
    def embedder(self) -> TokenEmbedder:
        """The model whose tokens are counted."""
        model = get_embedder(self._embedder) if self._embedder else get_embedder()
        found = tokenizing(model)
        if found is None:
            raise OptionError(
                f"the embedder {model.name!r} does not tell its tokens, so that sizes cannot be measured in them; "
                "choose another counter, such as cl100k_base or hf: and the model's tokenizer"
            )
        return found

    def boundaries(self, text: str) -> Numbers:
        tokens = self.embedder.tokenize(text)
        return tokens.starts[tokens.before : len(tokens.ids) - tokens.after]

    def count_many(self, texts: Sequence[str]) -> Numbers:
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return super().count_many(texts)
        place = {text: number for number, text in enumerate(dict.fromkeys(["", *texts]))}
        counts = self.embedder.count_tokens(list(place)).astype(np.int64)
        counts -= counts[0]
        return counts[[place[text] for text in texts]] if len(texts) else np.zeros(0, dtype=np.int64)


def tokenizing(embedder: object) -> TokenEmbedder | None:
    """The embedder, or the one behind a cache, that tells its tokens; None where none does."""
    while not isinstance(embedder, TokenEmbedder):
        embedder = getattr(embedder, "embedder", None)
        if embedder is None:
            return None
    return embedder
