"""Haystack's splitters, run as they are, with right places."""

from __future__ import annotations

from functools import partial
from typing import Any

from haystack import Document as HaystackDocument

from chunkadapters._haystack import takes_and_gives_documents
from chunkadapters.aligned import Aligned, Piece, Unplaced
from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcoreExactSplitter
from chunkcore.chunkers import Chunker
from chunkcore.errors import OptionError

# Metadata of a place, which our component writes.
_OF_A_PLACE = frozenset(("source_id", "page_number", "split_id", "split_idx_start", "_split_overlap"))


def exact(splitter: Any, unplaced: Unplaced = "mark") -> ChunkcoreDocumentSplitter | ChunkcoreExactSplitter:
    """See `chunkadapters.exact.exact`."""
    if isinstance(splitter, ChunkcoreDocumentSplitter | ChunkcoreExactSplitter):
        return splitter
    if not takes_and_gives_documents(splitter):
        raise OptionError(f"expected a splitter, which takes and gives documents; {type(splitter).__name__} does not")
    return ChunkcoreExactSplitter(splitter, unplaced=unplaced)


def exact_chunker(splitter: Any, unplaced: Unplaced = "mark") -> Chunker:
    """The chunker with the splitter's texts."""
    if isinstance(splitter, ChunkcoreDocumentSplitter):
        return splitter.chunker
    component = exact(splitter, unplaced)
    return Aligned(split=partial(_pieces, getattr(component, "splitter", component)), unplaced=unplaced)


def _pieces(splitter: Any, text: str) -> list[Piece]:
    if hasattr(splitter, "warm_up"):
        splitter.warm_up()
    documents = splitter.run(documents=[HaystackDocument(content=text)])["documents"] if text else []
    return [
        Piece(
            document.content or "",
            {key: value for key, value in document.meta.items() if key not in _OF_A_PLACE},
            document.meta.get("split_idx_start"),
        )
        for document in documents
    ]
