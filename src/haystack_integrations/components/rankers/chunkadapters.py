"""Passages behind a Haystack retriever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from haystack import Document, component

from chunkadapters._haystack import KEYS, Serialized, check_documents, hit_of
from chunkadapters.filters import UNKNOWN
from chunkadapters.passages import Limits, LocalIndex, Passage, PassageOptions, core_documents
from chunkadapters.places import marks_of
from chunkcore.errors import OptionError
from chunkcore.options import named_options
from chunkcore.text import Document as CoreDocument

# What a chunk states of its own place and neighbours.
_OF_ONE_HIT = (
    "_split_overlap",
    "split_id",
    "root_source_id",
    "root_idx_start",
    "root_idx_end",
    "root_spans",
)


def _core_document(document: Document) -> CoreDocument:
    return CoreDocument(document.id, document.content or "", document.meta, marks_of(document.meta))


_opening = Lock()  # of all components: they are copied and pickled


class Indexed(Serialized):
    """A component with a local index, which is opened once, by `warm_up` or the first run."""

    def __init__(self, index: Any, documents: list[Any] | None, options: Limits) -> None:
        if (index is None) == (documents is None):
            raise OptionError("give either an index (its folder, or an index) or documents")
        self.index, self.documents = index, documents
        self.options: Any = options
        self._opened: LocalIndex | None = None

    @property
    def local_index(self) -> LocalIndex:
        with _opening:
            if self._opened is None:
                documents = self.documents
                rows = (
                    None
                    if documents is None
                    else core_documents(documents, Document, "Haystack", _core_document)
                )
                self._opened = LocalIndex(self.index, rows)
            return self._opened

    def warm_up(self) -> None:
        """Open the index, or make it of the documents."""
        _ = self.local_index

    def _arguments(self) -> dict[str, Any]:
        if not isinstance(self.index, str | Path):
            raise OptionError(
                "only a saved index can be written down: save it, and give its folder as index"
            )
        return {"index": str(self.index), **self.options.model_dump()}


def passage_documents(passages: Iterable[Passage], hits: Sequence[Document]) -> list[Document]:
    """Passages as documents."""
    return [_passage_document(passage, hits) for passage in passages]


def _passage_document(passage: Passage, hits: Sequence[Document]) -> Document:
    text, document = passage.retrieved.text, passage.document
    if document is None:
        hit = hits[passage.hits[0]]
        return hit if text in ("", hit.content) else replace(hit, content=text)
    meta = passage.metadata([hit.meta for hit in hits], KEYS, _OF_ONE_HIT)
    meta["source_id"] = document.id
    return Document(id=passage.id, content=text, meta=meta, score=passage.retrieved.score)


@component
class ChunkcorePassageRanker(Indexed):
    """Passages behind a retriever: exact spans of any size under a budget of tokens.

    Connect any retriever, joiner or ranker with any chunks to ``documents``: the guide on passages
    (docs/guides/passages.md) has what counts.

    A passage has the source document's own text; ``split_idx_start``, ``split_idx_end`` and ``source_id``, the best
    hit's other metadata, ``pages`` where the source has pages, and a score, comparable within one answer. A document
    that is in no document of the index, such as a summary or an image, stays as it is, at its rank.

    The index is a copy of the texts: after documents have changed, save it anew
    (``index.update(documents).save(folder)``). A folder is opened again at the next question.

    Args:
        index: a saved index's folder (``chunkcore index docs/ -o folder``), or an index of the retriever passages. It
            is opened by `warm_up`, or by the first run.
        documents: instead of an index: Haystack's or chunkcore's documents, indexed in memory, by words. Only a folder
            can be written to YAML.
        words, balance, max_tokens, k: see `chunkadapters.passages.PassageOptions`.
        filters: what the retriever's search is filtered by, in any framework's form; its metadata keys count, not its
            values. None: nothing. It cannot be seen here: by default, or if a run has none, "safe" is as
            "text", and a warning says so.
        counter: of tokens, the language model's own: a name (``"o200k_base"``, ``"hf:..."``) or a function.

    Raises `ValueError`: an option is out of range, or there is no index.

    Warns `PassageWarning` once, of hits in no document, and of each document that has changed.

    >>> tea = Document(id="tea.md", content="Tea is hot. It boils. Ice is cold.")
    >>> hits = [Document(content="Tea is hot. It", meta={"source_id": "tea.md"})]
    >>> passages = ChunkcorePassageRanker(documents=[tea], filters=None).run("What boils?", hits)["documents"]
    >>> [found.content for found in passages]
    ['Tea is hot. It boils. Ice is cold.']
    """

    @named_options(*PassageOptions.model_fields)
    def __init__(
        self, index: Any = None, documents: list[Any] | None = None, **options: Any
    ) -> None:
        Indexed.__init__(self, index, documents, PassageOptions(**options))

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], filters: dict[str, Any] | None = None
    ) -> dict[str, list[Document]]:
        """Make passages. Returns ``{"documents": passages}``, best first.

        `documents` are a retriever's answer, best first; `filters` are the retriever's in this run, ``{}`` for none.
        Raises `TypeError`.
        """
        check_documents(self, documents)
        passages = self.local_index.opened.behind(
            query,
            list(map(hit_of, documents)),
            self.options,
            [UNKNOWN if filters is None else filters],
        )
        return {"documents": passage_documents(passages, documents)}
