"""Strategies as the command line names them, ready to cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.models import Embedder

__all__ = ["build_chunkers"]

_NAMES_EMBEDDER = re.compile(r"[:,]\s*embedder\s*=")


def build_chunkers(specs: Sequence[str], model: Embedder) -> list[Chunker]:
    """The strategies; those that embed do so with this model unless they name another.

    Raises:
        OptionError: a strategy is malformed, or stands there twice.
        MissingExtraError: what loads the model that a strategy names is not installed.
    """
    from chunkcore.chunkers import get_chunker
    from chunkcore.errors import OptionError
    from chunkcore.models import get_embedder

    made: dict[str, Chunker] = {}
    for spec in specs:
        chunker = get_chunker(spec)
        if "embedder" in chunker.option_names():
            # One that is named is loaded here: as a name it could not be told from the default, which runs share.
            own = get_embedder(chunker.embedder) if _NAMES_EMBEDDER.search(spec) else model  # type: ignore[attr-defined]
            chunker = replace(chunker, embedder=own)  # type: ignore[call-arg]
        for other, known in made.items():
            if known == chunker:
                raise OptionError(f"the strategies {other!r} and {spec!r} are the same: give each once")
        made[spec] = chunker
    return list(made.values())
