"""A saved index as a Haystack retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from haystack import Document, component
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter

from chunkadapters.haystack.documents import DocumentLists
from chunkadapters.places import MetadataLike
from chunkcore.errors import OptionError, echo
from chunkcore.retrieval.where import check_values
from haystack_integrations.components.rankers.chunkadapters import (
    Indexed,
    passage_document,
)

_NO_METADATA = {field.name for field in fields(Document)} - {"meta"}


def _check_filters(filters: object) -> None:
    """Raise `OptionError`: no filter of Haystack's, or one on a field that the index's documents do not have."""
    if filters is not None and not isinstance(filters, Mapping):
        raise OptionError(f"filters is a mapping, as of Haystack's filters, got {echo(filters)}")
    if filters:
        _check_fields(filters)
        try:
            document_matches_filter(dict(filters), Document(content=""))
        except FilterError as error:
            raise OptionError(f"filters: {error}") from error


def _check_fields(condition: MetadataLike) -> None:
    field = condition.get("field")
    if field in _NO_METADATA:
        raise OptionError(f"filters are on metadata, such as meta.level; got the field {field!r}")
    if "value" in condition:
        check_values({str(field): condition["value"]})
    for part in condition.get("conditions") or ():
        if isinstance(part, Mapping):
            _check_fields(part)


@component
@dataclass(eq=False)
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

    filters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_filters(self.filters)
        Indexed.__post_init__(
            self
        )  # which is no method of the class that `component` makes of this one

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
    ) -> DocumentLists:
        """Search. Returns ``{"documents": passages}``, best first."""
        _check_filters(filters)
        chosen = filters or self.filters or {}

        def is_allowed(metadata: MetadataLike) -> bool:
            return document_matches_filter(chosen, Document(content="", meta=dict(metadata)))

        where = is_allowed if chosen else None
        passages = self.behind().alone(query, where)
        return {"documents": [passage_document(passage, []) for passage in passages]}
