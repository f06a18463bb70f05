"""`ChunkcoreNodeParser` under the names by which people look for a strategy."""

from __future__ import annotations

from typing import Any, ClassVar

from chunkadapters._configuration import one_strategy
from chunkadapters.llamaindex.node_parser import ChunkcoreNodeParser

__all__ = ["ClusterSemanticNodeParser", "LumberNodeParser", "RecursiveNodeParser", "SemanticNodeParser"]


class _Named(ChunkcoreNodeParser):
    """One strategy, which needs no naming; a configuration names it all the same."""

    _own: ClassVar[str]

    def __init__(self, *, strategy: str | None = None, **more: Any) -> None:
        super().__init__(strategy=one_strategy(self, self._own, strategy, more), **more)

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__


class RecursiveNodeParser(_Named):
    """The strategy ``recursive``: separators from large to small; `ChunkcoreNodeParser` tells the rest.

    >>> from llama_index.core import Document
    >>> parser = RecursiveNodeParser(chunk_size=9, chunk_overlap=0, counter="characters")
    >>> [node.start_char_idx for node in parser.get_nodes_from_documents([Document(text="one two. one two.")])]
    [0, 9]
    """

    _own = "recursive"


class SemanticNodeParser(_Named):
    """The strategy ``breakpoint``, known as SemanticSplitterNodeParser: cuts where neighbouring sentences differ most.

    >>> SemanticNodeParser(max_size=200, embedder="all-MiniLM-L6-v2").strategy
    'breakpoint'
    """

    _own = "breakpoint"


class ClusterSemanticNodeParser(_Named):
    """The strategy ``cluster_semantic`` of the Chroma report: chunks of the most similarity inside, up to `max_size`.

    >>> ClusterSemanticNodeParser(max_size=200, embedder="all-MiniLM-L6-v2").chunker.max_size
    200
    """

    _own = "cluster_semantic"


class LumberNodeParser(_Named):
    """The strategy ``lumber``, known as LumberChunker: a language model says where the content changes.

    >>> LumberNodeParser(llm="openai:qwen3:8b@http://localhost:11434/v1").strategy
    'lumber'
    """

    _own = "lumber"
