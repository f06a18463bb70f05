"""`exact`: your configured splitter, with the same chunk texts and right offsets.

base.py: functions as options, `Aligned`, joining pieces to chunks. langchain.py, llamaindex.py, haystack.py: each
framework's splitters on offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from chunkadapters.exact.base import Aligned, Unplaced
from chunkcore.chunkers import Chunker
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from haystack.components.preprocessors import DocumentSplitter, RecursiveDocumentSplitter
    from langchain_text_splitters import TextSplitter
    from llama_index.core.node_parser import NodeParser

    from chunkadapters.haystack import ChunkcoreDocumentSplitter
    from chunkadapters.langchain import ChunkcoreTextSplitter
    from chunkadapters.llamaindex import ChunkcoreNodeParser

__all__ = ["Aligned", "exact", "exact_chunker"]


@overload
def exact(splitter: TextSplitter, *, unplaced: Unplaced = "mark") -> ChunkcoreTextSplitter: ...
@overload
def exact(splitter: NodeParser, *, unplaced: Unplaced = "mark") -> ChunkcoreNodeParser: ...
@overload
def exact(
    splitter: DocumentSplitter | RecursiveDocumentSplitter, *, unplaced: Unplaced = "mark"
) -> ChunkcoreDocumentSplitter: ...
@overload
def exact(splitter: Any, *, unplaced: Unplaced = "mark") -> Any: ...


def exact(splitter: Any, *, unplaced: Unplaced = "mark") -> Any:
    """Your splitter with right offsets, as a splitter of the same framework.

    Chunk texts are the original's; the guide lists the few intended differences. Offsets are right by construction for
    LangChain's recursive, character and token splitters, LlamaIndex' sentence and token splitters, and Haystack's
    document and recursive splitters. Any other splitter is run, and its pieces are searched in the document in order.
    Metadata that a splitter adds, such as LangChain's headings, are kept.

    Args:
        splitter: a LangChain `TextSplitter` (or a splitter from text to documents, such as by headings), a LlamaIndex
            `NodeParser` or a Haystack splitter component.
        unplaced: pieces that are not in the text, such as rewritten HTML: "mark" them (no place; LangChain's
            ``start_index`` is -1; ``derived`` true; ``located`` "unlocated"), or "refuse" with a `DataError`.

    Returns:
        A `ChunkcoreTextSplitter`, `ChunkcoreNodeParser` or `ChunkcoreDocumentSplitter`.

    Raises:
        OptionError: (a ValueError) no splitter of a known framework, or one that does not split text, such as JSON
            data.

    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> splitter = exact(CharacterTextSplitter(separator=" ", chunk_size=7, chunk_overlap=0))
    >>> [(each.page_content, each.metadata["start_index"]) for each in splitter.create_documents(["one two one two"])]
    [('one two', 0), ('one two', 8)]
    """
    modules = {cls.__module__.partition(".")[0] for cls in type(splitter).__mro__}
    if "langchain_text_splitters" in modules:
        from chunkadapters.exact import langchain

        return langchain.exact(splitter, unplaced)
    if "llama_index" in modules:
        from chunkadapters.exact import llamaindex

        return llamaindex.exact(splitter, unplaced)
    if hasattr(splitter, "__haystack_input__"):
        from chunkadapters.exact import haystack

        return haystack.exact(splitter, unplaced)
    raise OptionError(
        "expected a configured LangChain TextSplitter, LlamaIndex NodeParser or Haystack splitter component, "
        f"got {type(splitter).__name__}; for a function from a text to its pieces, build chunkadapters.exact.Aligned"
    )


def exact_chunker(splitter: Any, *, unplaced: Unplaced = "mark") -> Chunker:
    """`exact` as a chunker, for `compare` and for use without a framework.

    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> exact_chunker(CharacterTextSplitter(separator=" ", chunk_size=7, chunk_overlap=0)).split_text("one two three")
    ['one two', 'three']
    """
    found: Chunker = exact(splitter, unplaced=unplaced).chunker
    return found
