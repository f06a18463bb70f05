"""`get_token_embedder`: the model's token vectors, where they depend on the text around them."""

from __future__ import annotations

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder, TokenEmbedder
from chunkcore.models.checks import embed_tokens
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder

__all__ = ["get_token_embedder"]

# Three different tokens to any vocabulary of words, of their parts or of bytes.
_PROBE = "river money bank"


def get_token_embedder(embedder: Embedder | str = DEFAULT_MODEL) -> TokenEmbedder:
    """The model behind a name, an `Embedder`, or a cache in front of one, as one that gives token vectors.

    It is asked once for two short sequences of tokens, to see that a token's vector depends on its neighbours.

    Raises:
        OptionError: the model gives no token vectors, or each is the same whatever stands around it (a static
            model, a mean of word vectors); or the name is none.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    model: object = get_embedder(embedder)
    while not isinstance(model, TokenEmbedder) and isinstance(getattr(model, "embedder", None), Embedder):
        model = model.embedder  # type: ignore[attr-defined]
    if not isinstance(model, TokenEmbedder):
        raise OptionError(
            f"the embedder {getattr(model, 'name', model)!r} gives vectors of texts only: late chunking needs those of "
            "tokens; choose a model of sentence-transformers, or an object that also has tokenize and embed_tokens"
        )
    if not _has_context(model):
        raise OptionError(
            f"the embedder {model.name!r} gives a token the same vector whatever stands around it, so that late "
            "chunking would give a chunk the vector that it has on its own; choose a model with attention"
        )
    return model


def _has_context(model: TokenEmbedder) -> bool:
    """Whether the last token's vector changes with the token before it, at the same place."""
    tokens = model.tokenize(_PROBE)
    stop = len(tokens.ids) - tokens.after
    around, own = tokens.ids[: tokens.before], tokens.ids[tokens.before : stop]
    if len(own) < 3:
        return False
    left, right = embed_tokens(model, [np.append(around, own[[0, -1]]), np.append(around, own[[1, -1]])])
    return not np.allclose(left[-1], right[-1], rtol=1e-3, atol=1e-6)
