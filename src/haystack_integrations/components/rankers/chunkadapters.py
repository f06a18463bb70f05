"""Passages behind a Haystack retriever."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from haystack import Document, component

from chunkadapters.behind import (
    BALANCE,
    Behind,
    IndexLike,
    LocalIndex,
    MaxTokens,
    Order,
    Passage,
    Show,
    TokenCounterLike,
    core_documents,
    written_option,
)
from chunkadapters.haystack.documents import (
    KEYS,
    OF_ONE_CHUNK,
    ROOT,
    DocumentLists,
    Serialized,
    Values,
    check_documents,
    core_document,
    hit_of,
    root_of,
)
from chunkadapters.places import WHOLE
from chunkcore.errors import OptionError
from chunkcore.options import suggesting
from chunkcore.text import Document as CoreDocument

Documents = list[Document | CoreDocument]


@dataclass(eq=False)
class Indexed(Serialized):
    """A component with a local index, which is opened by `warm_up` or the first run."""

    index: IndexLike | None = None
    documents: Documents | None = None
    max_tokens: MaxTokens = 1000
    k: int | None = None
    counter: TokenCounterLike = "cl100k_base"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            setattr(cls, "__init__", suggesting(cls.__init__))  # noqa: B010  # mypy refuses an assignment

    def __post_init__(self) -> None:
        """Raise `ValueError`: there is no index, something else than documents, or an option is out of range."""
        rows = core_documents(self.documents, Document, "Haystack", core_document)
        self.local_index = LocalIndex(self.index, rows)
        self.behind()

    def behind(self) -> Behind:
        """What answers with the options."""
        return Behind.of(self, self.local_index)

    def __setattr__(self, name: str, value: object) -> None:
        """Assign an option. Raises `OptionError`: an index or documents, once these are opened."""
        if name in ("index", "documents") and hasattr(self, "local_index"):
            raise OptionError(f"{name} cannot be assigned: make another {type(self).__name__}")
        super().__setattr__(name, value)

    def warm_up(self) -> None:
        """Open the index, or make it of the documents."""
        _ = self.local_index.opened

    def _arguments(self) -> Values:
        if not isinstance(self.index, str | Path):
            raise OptionError(
                "only a saved index can be written down: save it, and give its folder as index"
            )
        arguments = Serialized._arguments(self)
        del arguments["documents"]
        for name in {"counter", "show"} & arguments.keys():
            arguments[name] = written_option(name, arguments[name])
        return {**arguments, "index": str(self.index)}


def passage_document(passage: Passage, hits: Sequence[Document]) -> Document:
    """A passage as a document."""
    text, document = passage.retrieved.text, passage.document
    if document is None:
        hit = deepcopy(hits[passage.hits[0]])
        return replace(hit, content=text) if text else hit
    meta = passage.metadata([hit.meta for hit in hits], KEYS, OF_ONE_CHUNK)
    spans = passage.retrieved.spans
    meta |= {"source_id": document.id, **KEYS.write(spans)}
    root, origin = root_of(document)
    if origin is not WHOLE:  # chunks were given as documents
        meta |= {"root_source_id": root, **ROOT.write(origin.place(spans))}
    return Document(id=passage.id, content=text, meta=meta, score=passage.retrieved.score)


@component
@dataclass(eq=False)
class ChunkcorePassageRanker(Indexed):
    """Passages behind a retriever: exact spans of its hits' text, of any size, under a budget of tokens.

    Connect any retriever, joiner or ranker with any chunks to ``documents``. Let the retriever give about 100 hits
    (``top_k=100``). docs/guides/passages.md says how passages are chosen.

    A passage has the source document's own text; ``split_idx_start``, ``split_idx_end`` and ``source_id`` (of chunks
    that were given as documents also ``root_source_id`` and its places), the metadata that its hits share, ``pages``
    where the source has pages, and a score, comparable within one answer. A hit without a place in the index, such as
    a summary or an image, stays as it is, at its rank.

    The index is a copy of the texts: after documents have changed, save it anew
    (``index.update(documents).save(folder)``). A folder is opened again at the next question.

    Args:
        index: a saved index's folder (``chunkcore index docs/ -o folder``), or an index of the retriever passages. A
            folder is opened by `warm_up`, or by the first run.
        documents: instead of an index: Haystack's or chunkcore's documents, indexed in memory, by words. Only a folder
            can be written to YAML.
        show, max_tokens, k, balance, order: see `chunkadapters.behind.Behind`.
        counter: your language model's tokenizer: a name (``"o200k_base"``, ``"hf:..."``) or a function.

    Raises `ValueError`: an option is out of range, or there is no index.

    Warns `PassageWarning` once about hits without a place, and about each document that has changed.

    >>> tea = Document(id="tea.md", content="Tea is hot. It boils. Ice is cold.")
    >>> hits = [Document(content="Tea is hot. It boils.", meta={"source_id": "tea.md"})]
    >>> passages = ChunkcorePassageRanker(documents=[tea]).run("What boils?", hits)["documents"]
    >>> [passage.content for passage in passages]
    ['Tea is hot. It boils.']
    """

    show: Show = "hits"
    balance: float = BALANCE
    order: Order = "score"

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> DocumentLists:
        """Make passages. Returns ``{"documents": passages}``, best first.

        `documents` are a retriever's answer, best first. Raises `TypeError`.
        """
        check_documents(self, documents)
        passages = self.behind().passages(query, list(map(hit_of, documents)))
        return {"documents": [passage_document(passage, documents) for passage in passages]}
