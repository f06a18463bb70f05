"""A saved index as a Haystack retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from haystack import Document, component
from haystack.utils.filters import document_matches_filter

from chunkadapters.passages import Limits
from chunkcore.errors import OptionError, check_type
from haystack_integrations.components.rankers.chunkadapters import Indexed, passage_documents

_NO_METADATA = {field.name for field in fields(Document)} - {"meta"}


def _check_fields(condition: Any) -> None:
    """Raise `OptionError`: a filter on a document's own fields, which the index's documents do not have."""
    if isinstance(condition, Mapping):
        if (field := condition.get("field")) in _NO_METADATA:
            raise OptionError(
                f"filters are on metadata, such as meta.level; got the field {field!r}"
            )
        for part in condition.get("conditions") or ():
            _check_fields(part)


@component
class ChunkcoreIndexRetriever(Indexed):
    """A saved index as a retriever, without a document store.

    An index with vectors of the units gives the passages of the retriever `passages`, one without searches by words.
    What comes out is described at `ChunkcorePassageRanker`.

    Args:
        index, documents, max_tokens, k, counter: see `ChunkcorePassageRanker`.
        filters: Haystack's, on the documents' metadata; those of a run replace them.

    Raises `ValueError`: an option is out of range, there is no index, or a filter is not on metadata.

    >>> retriever = ChunkcoreIndexRetriever(documents=[Document(content="Tea is hot.", meta={"level": 1})])
    >>> allowed = {"field": "meta.level", "operator": "<", "value": 1}
    >>> [len(retriever.run("Is tea hot?", filters)["documents"]) for filters in (None, allowed)]
    [1, 0]
    """

    def __init__(
        self,
        index: Any = None,
        documents: list[Any] | None = None,
        filters: dict[str, Any] | None = None,
        max_tokens: int = 1000,
        k: int | None = None,
        counter: Any = "cl100k_base",
    ) -> None:
        Indexed.__init__(
            self, index, documents, Limits(max_tokens=max_tokens, k=k, counter=counter)
        )
        self.filters = filters

    def _arguments(self) -> dict[str, Any]:
        return {**Indexed._arguments(self), "filters": self.filters}

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None) -> dict[str, list[Document]]:
        """Search. Returns ``{"documents": passages}``, best first."""
        chosen = filters or self.filters
        check_type("filters", chosen, Mapping | None, "a mapping, as of Haystack's filters")
        _check_fields(chosen)

        def allowed(metadata: Mapping[str, Any]) -> bool:
            return document_matches_filter(chosen or {}, Document(content="", meta=dict(metadata)))

        passages = self.local_index.opened.passages(
            query, self.options, allowed if chosen else None
        )
        return {"documents": passage_documents(passages, [])}
