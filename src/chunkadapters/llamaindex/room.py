"""Sizes that leave room for the metadata that models read with a node's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode

from chunkcore.chunkers.base import Chunker
from chunkcore.document import Chunk, Document
from chunkcore.errors import OptionError

__all__ = ["chunk_beside_metadata", "size_option"]

# Options that may not be over the size, which shrink with it where they would be.
_WITHIN_THE_SIZE = ("overlap", "minimum", "min_size", "piece_size", "passage_size", "passage_minimum", "max_segment")


def size_option(chunker: Chunker) -> str:
    """The name of the option that says how large chunks are.

    Raises:
        OptionError: the strategy has none.
    """
    found = next((name for name in ("size", "max_size") if name in chunker.option_names()), "")
    if not found or getattr(chunker, found) is None:
        raise OptionError(f"metadata_aware needs a strategy with a size, and {chunker.name} has none: leave it out")
    return found


def chunk_beside_metadata(
    chunker: Chunker, documents: Iterable[Document], nodes: Sequence[BaseNode]
) -> Iterator[list[Chunk]]:
    """Each node's chunks, so much smaller than the size as the metadata count that a model reads with them.

    As LlamaIndex' own splitters do: the longer of what the embedding model and the language model read counts.

    Raises:
        OptionError: the metadata of a node leave no room.
    """
    smaller: dict[int, Chunker] = {}
    for document, node in zip(documents, nodes, strict=True):
        taken = _metadata_size(chunker, node)
        if taken not in smaller:
            smaller[taken] = _smaller(chunker, taken)
        yield smaller[taken].chunk(document)


def _metadata_size(chunker: Chunker, node: BaseNode) -> int:
    embedded, told = (node.get_metadata_str(mode=mode) for mode in (MetadataMode.EMBED, MetadataMode.LLM))
    longer = embedded if len(embedded) > len(told) else told
    return chunker.token_counter.count(longer) + int(getattr(chunker, "beside_metadata", 0))


def _smaller(chunker: Chunker, taken: int) -> Chunker:
    name = size_option(chunker)
    size = getattr(chunker, name) - taken
    if size < 1:
        raise OptionError(
            f"the metadata count {taken}, which leaves nothing of {name}={size + taken}: choose a larger {name}, or "
            "keep some metadata from the models by excluded_embed_metadata_keys and excluded_llm_metadata_keys"
        )
    options: dict[str, Any] = {name: size}
    for other in _WITHIN_THE_SIZE:
        value = getattr(chunker, other, None)
        if isinstance(value, int) and not isinstance(value, bool):
            options[other] = min(value, size)
    overlap = options.get("overlap", 0)
    if overlap == size and chunker.overlap < size + taken:  # type: ignore[attr-defined]
        options["overlap"] = size - 1  # some strategies want it under the size, and it was
    return replace(chunker, **options) if taken else chunker
