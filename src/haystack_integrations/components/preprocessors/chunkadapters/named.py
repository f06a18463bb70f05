"""`ChunkcoreDocumentSplitter` under the names by which people look for a strategy."""

from __future__ import annotations

from typing import Any, ClassVar

from haystack import component

from chunkadapters._configuration import one_strategy
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter

__all__ = ["ClusterSemanticSplitter", "LumberSplitter", "RecursiveSplitter", "SemanticSplitter"]


class _Named(ChunkcoreDocumentSplitter):
    """One strategy, which needs no naming; YAML names it all the same."""

    _own: ClassVar[str]

    def __init__(
        self, *, strategy: str | None = None, options: dict[str, Any] | None = None, fit_to: Any = None
    ) -> None:
        super().__init__(strategy=one_strategy(self, self._own, strategy), options=options, fit_to=fit_to)


@component
class RecursiveSplitter(_Named):
    """The strategy ``recursive``: separators from large to small; `ChunkcoreDocumentSplitter` tells the rest.

    >>> from haystack import Document
    >>> splitter = RecursiveSplitter(options={"size": 3, "counter": "words"})
    >>> len(splitter.run([Document(content="One two three. One two three.")])["documents"])
    2
    """

    _own = "recursive"


@component
class SemanticSplitter(_Named):
    """The strategy ``breakpoint``, known as embedding-based splitting: cuts where neighbouring sentences differ most.

    >>> SemanticSplitter(options={"max_size": 200, "embedder": "all-MiniLM-L6-v2"}).strategy
    'breakpoint'
    """

    _own = "breakpoint"


@component
class ClusterSemanticSplitter(_Named):
    """The strategy ``cluster_semantic`` of the Chroma report: chunks of the most similarity inside, up to ``max_size``.

    >>> ClusterSemanticSplitter(options={"max_size": 200, "embedder": "all-MiniLM-L6-v2"}).chunker.max_size
    200
    """

    _own = "cluster_semantic"


@component
class LumberSplitter(_Named):
    """The strategy ``lumber``, known as LumberChunker: a language model says where the content changes.

    >>> LumberSplitter(options={"llm": "openai:qwen3:8b@http://localhost:11434/v1"}).strategy
    'lumber'
    """

    _own = "lumber"
