"""`exact`: your configured splitter, with the same chunk texts and right offsets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from chunkadapters.pieces import Aligned, Unplaced
from chunkcore.chunkers import Chunker
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from langchain_text_splitters import TextSplitter
    from llama_index.core.node_parser import NodeParser

    from chunkadapters.langchain import ChunkcoreTextSplitter

__all__ = ["Aligned", "exact", "exact_chunker"]


@overload
def exact(splitter: TextSplitter, *, unplaced: Unplaced = "mark") -> ChunkcoreTextSplitter: ...
@overload
def exact(splitter: NodeParser, *, unplaced: Unplaced = "mark") -> NodeParser: ...
@overload
def exact(splitter: Any, *, unplaced: Unplaced = "mark") -> Any: ...


def exact(splitter: Any, *, unplaced: Unplaced = "mark") -> Any:
    """Your splitter with right offsets, as a splitter of the same framework.

    Chunk texts are the original's; the guide (docs/guides/exact.md) lists the few intended differences, and the
    splitters that are rewritten on offsets. Any other splitter is run as it is: its chunks keep their metadata and
    relationships, and get the places where their texts are found in order; a chunk without a certain place has none.

    Args:
        splitter: a LangChain `TextSplitter` (or a splitter from text to documents, such as by headings), a LlamaIndex
            `NodeParser` or a Haystack splitter component.
        unplaced: pieces that are not in the text, such as rewritten HTML: "mark" them (no place; LangChain's
            ``start_index`` is -1; ``derived`` true; ``located`` "unlocated"), or "refuse" with a `DataError`.

    Returns a `ChunkcoreTextSplitter`; a `ChunkcoreNodeParser` or `PlacedNodeParser`; a `ChunkcoreExactSplitter`.
    Raises `OptionError`: no splitter of a known framework, or one that does not split text, such as JSON data.

    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> splitter = exact(CharacterTextSplitter(separator=" ", chunk_size=7, chunk_overlap=0))
    >>> [(row.page_content, row.metadata["start_index"]) for row in splitter.create_documents(["one two one two"])]
    [('one two', 0), ('one two', 8)]
    """
    return _module(splitter).exact(splitter, unplaced)


def exact_chunker(splitter: Any, *, unplaced: Unplaced = "mark") -> Chunker:
    """`exact` as a chunker, for `compare` and for use without a framework.

    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> exact_chunker(CharacterTextSplitter(separator=" ", chunk_size=7, chunk_overlap=0)).split_text("one two three")
    ['one two', 'three']
    """
    chunker: Chunker = _module(splitter).exact_chunker(splitter, unplaced)
    return chunker


def _module(splitter: Any) -> Any:
    roots = {cls.__module__.partition(".")[0] for cls in type(splitter).__mro__}
    if "langchain_text_splitters" in roots:
        return import_module("chunkadapters.langchain.exact")
    if "llama_index" in roots:
        return import_module("chunkadapters.llamaindex.exact")
    if hasattr(splitter, "__haystack_input__"):
        return import_module("haystack_integrations.components.preprocessors.chunkadapters")
    raise OptionError(
        "expected a configured LangChain TextSplitter, LlamaIndex NodeParser or Haystack splitter component, "
        f"got {type(splitter).__name__}; for a function from a text to its pieces, build chunkadapters.exact.Aligned"
    )
