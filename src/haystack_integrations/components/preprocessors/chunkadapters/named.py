"""`ChunkcoreDocumentSplitter` as one class per strategy; YAML names them by this module."""

from __future__ import annotations

from typing import ClassVar

from haystack import component

from chunkadapters.configuration import OneStrategy
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter

__all__ = ["ClusterSemanticSplitter", "LumberSplitter", "RecursiveSplitter", "SemanticSplitter"]


@component
class RecursiveSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with the strategy ``recursive``: separators from large to small.

    >>> from haystack import Document
    >>> splitter = RecursiveSplitter(options={"size": 3, "counter": "words"})
    >>> len(splitter.run([Document(content="One two three. One two three.")])["documents"])
    2
    """

    _own: ClassVar[str] = "recursive"


@component
class SemanticSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with ``breakpoint``: cuts where neighbouring sentences differ most."""

    _own: ClassVar[str] = "breakpoint"


@component
class ClusterSemanticSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with ``cluster_semantic``: the most similarity inside chunks up to ``max_size``."""

    _own: ClassVar[str] = "cluster_semantic"


@component
class LumberSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with ``lumber`` (LumberChunker): a language model says where the content changes."""

    _own: ClassVar[str] = "lumber"
