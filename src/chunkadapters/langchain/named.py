"""`ChunkcoreTextSplitter` under the names by which people look for a strategy."""

from __future__ import annotations

from typing import Any, ClassVar

from chunkadapters._configuration import one_strategy
from chunkadapters.langchain.splitter import ChunkcoreTextSplitter

__all__ = ["ClusterSemanticTextSplitter", "LumberTextSplitter", "RecursiveTextSplitter", "SemanticTextSplitter"]


class _Named(ChunkcoreTextSplitter):
    """One strategy, which needs no naming."""

    _own: ClassVar[str]

    def __init__(self, *, strategy: str | None = None, **more: Any) -> None:
        super().__init__(strategy=one_strategy(self, self._own, strategy, more), **more)


class RecursiveTextSplitter(_Named):
    """The strategy ``recursive``: separators from large to small; `ChunkcoreTextSplitter` tells the rest.

    >>> splitter = RecursiveTextSplitter(chunk_size=9, chunk_overlap=0, counter="characters")
    >>> splitter.split_text("one two. one two.")
    ['one two.', 'one two.']
    """

    _own = "recursive"


class SemanticTextSplitter(_Named):
    """The strategy ``breakpoint``, known as SemanticChunker: cuts where neighbouring sentences differ most.

    >>> SemanticTextSplitter(max_size=200, embedder="all-MiniLM-L6-v2").chunker.name
    'breakpoint'
    """

    _own = "breakpoint"


class ClusterSemanticTextSplitter(_Named):
    """The strategy ``cluster_semantic`` of the Chroma report: chunks of the most similarity inside, up to `max_size`.

    >>> ClusterSemanticTextSplitter(max_size=200, embedder="all-MiniLM-L6-v2").chunker.max_size
    200
    """

    _own = "cluster_semantic"


class LumberTextSplitter(_Named):
    """The strategy ``lumber``, known as LumberChunker: a language model says where the content changes.

    >>> LumberTextSplitter(llm="openai:qwen3:8b@http://localhost:11434/v1").chunker.name
    'lumber'
    """

    _own = "lumber"
