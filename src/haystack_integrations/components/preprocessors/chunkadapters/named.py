"""`ChunkcoreDocumentSplitter` as one class per strategy; YAML names them by this module."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict

from haystack import component
from typing_extensions import Unpack

from chunkadapters.configuration import (
    ClusterSemanticOptions,
    LumberOptions,
    OneStrategy,
    RecursiveOptions,
    SemanticOptions,
)
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter


class _Beside(TypedDict, total=False):
    fit_to: Any
    keep_white_space: bool


class _Recursive(_Beside, RecursiveOptions): ...


class _Semantic(_Beside, SemanticOptions): ...


class _ClusterSemantic(_Beside, ClusterSemanticOptions): ...


class _Lumber(_Beside, LumberOptions): ...


@component
class RecursiveSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with the strategy ``recursive``: separators from large to small.

    >>> from haystack import Document
    >>> splitter = RecursiveSplitter(options={"size": 3, "counter": "words"})
    >>> len(splitter.run([Document(content="One two three. One two three.")])["documents"])
    2
    """

    _own: ClassVar[str] = "recursive"

    def __init__(self, *, options: RecursiveOptions | None = None, **more: Unpack[_Recursive]) -> None:
        OneStrategy.__init__(self, options=options, **more)  # super() finds the class as it was before `component`


@component
class SemanticSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with ``breakpoint``: cuts where neighbouring sentences differ most."""

    _own: ClassVar[str] = "breakpoint"

    def __init__(self, *, options: SemanticOptions | None = None, **more: Unpack[_Semantic]) -> None:
        OneStrategy.__init__(self, options=options, **more)


@component
class ClusterSemanticSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with ``cluster_semantic``: the most similarity inside chunks up to ``size``."""

    _own: ClassVar[str] = "cluster_semantic"

    def __init__(self, *, options: ClusterSemanticOptions | None = None, **more: Unpack[_ClusterSemantic]) -> None:
        OneStrategy.__init__(self, options=options, **more)


@component
class LumberSplitter(OneStrategy, ChunkcoreDocumentSplitter):
    """`ChunkcoreDocumentSplitter` with ``lumber`` (LumberChunker): a language model says where the content changes."""

    _own: ClassVar[str] = "lumber"

    def __init__(self, *, options: LumberOptions | None = None, **more: Unpack[_Lumber]) -> None:
        OneStrategy.__init__(self, options=options, **more)
