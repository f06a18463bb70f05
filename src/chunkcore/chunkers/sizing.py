"""Sizes that were left out, from what the embedding model reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from chunkcore.chunkers.base import find_strategy
from chunkcore.chunkers.spec import format_spec, split_spec
from chunkcore.models.base import Embedder
from chunkcore.models.counter import tokenizing

__all__ = ["SHARE", "sized_options", "sized_spec"]

# the chunking survey, "Embedding Model Token Limits": 50 to 75 % of the limit.
SHARE = 0.6
_SIZES = ("size", "max_size")
# What a token is about, where sizes are not counted in tokens:
# the chunking survey, "Token Counting", has four characters.
_PER_TOKEN = {"characters": 4.0, "words": 0.75}


def sized_options(name: str, options: Mapping[str, Any], embedder: Embedder) -> dict[str, Any]:
    """A strategy's options and, where its size was left out, one that suits the model: 60 % of what it reads.

    The size is in the model's own tokens, with ``counter="embedder"``, unless a counter is among the options, or the
    model does not tell its tokens. A token of any other counter is taken for one of the model's, four characters for
    a token and three words for four. Nothing is added for a model without a limit, or a strategy without a size.

    Args:
        name: of the strategy.
        options: those that were given.
        embedder: the model that is to embed the chunks.

    >>> from types import SimpleNamespace
    >>> sized_options("recursive", {"counter": "characters"}, SimpleNamespace(max_tokens=256))
    {'counter': 'characters', 'size': 614}
    """
    found = dict(options)
    cls = find_strategy(name)
    defaults = {field.name: field.default for field in fields(cls)} if cls else {}
    option = next((each for each in _SIZES if type(defaults.get(each)) is int), "")
    if not option or option in found or embedder.max_tokens is None:
        return found
    counter = getattr(found.get("counter"), "name", found.get("counter"))
    size = int(SHARE * embedder.max_tokens * _PER_TOKEN.get(str(counter), 1.0))
    # A model of few tokens: a chunk is no smaller than the pieces that it is made of.
    piece = {**defaults, **found}.get("piece_size")
    found[option] = max(1, size, piece if isinstance(piece, int) else 1)
    if counter is None and tokenizing(embedder) is not None:
        found["counter"] = "embedder"
    return found


def sized_spec(spec: str, embedder: Embedder) -> str:
    """A strategy's string with what `sized_options` adds.

    Raises:
        OptionError: the string is malformed.

    >>> from types import SimpleNamespace
    >>> sized_spec("fixed_token:overlap=20", SimpleNamespace(max_tokens=512))
    'fixed_token:overlap=20,size=307'
    """
    name, options = split_spec(spec)
    added = {key: value for key, value in sized_options(name, options, embedder).items() if key not in options}
    if not added:
        return spec
    settings = format_spec("", added)[1:]
    return f"{spec},{settings}" if options else f"{name}:{settings}"
