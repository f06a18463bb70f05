"""Haystack's documents as hits and as chunkcore's, and what its components share.

The components are in Haystack's own namespace, `haystack_integrations`, because `Pipeline.loads` trusts only that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import Any, TypeAlias

from haystack import Document, default_from_dict, default_to_dict, logging
from typing_extensions import Self

from chunkadapters.places import SPANS, PlaceKeys, is_derived, with_page_marks
from chunkcore.errors import DataError
from chunkcore.locating import Hit, names_of, score_of
from chunkcore.text import Document as CoreDocument

logger = logging.getLogger(__name__)

# A chunk's place in the document it was cut from, and in the document at the root of a chain of splitters.
KEYS = PlaceKeys("split_idx_start", "split_idx_end", SPANS)
ROOT = PlaceKeys("root_idx_start", "root_idx_end", "root_spans")
# Where Haystack's converters and fetchers, and users, write a document's name.
_NAMING_KEYS = ("file_path", "file_name", "name", "source", "path", "url", "title", "id")


def hit_of(document: object) -> Hit:
    """A document as a hit. Raises `DataError` for anything else."""
    if not isinstance(document, Document):
        raise DataError(
            f"expected Haystack documents, got a {type(document).__name__} among the answers"
        )
    meta, text = document.meta, document.content or ""
    source = meta.get("root_source_id") or meta.get("source_id")
    keys = ROOT if isinstance(meta.get("root_source_id"), str) else KEYS
    others = [meta.get(key) for key in _NAMING_KEYS]
    root = source if isinstance(source, str) else ""
    return Hit(
        text=text,
        score=score_of(document.score),
        names=names_of(meta.get("root_source_id"), meta.get("source_id"), document.id, *others),
        stated=keys.stated(meta, text),
        derived=is_derived(meta),
        document=root,
        metadata=meta,
        id=document.id,
    )


def from_document(document: CoreDocument) -> Document:
    """A chunkcore document, as from `join_pages` or `load_documents`, as Haystack's; its chunks say their pages.

    The metadata have ``page_marks``, which chunks of `ChunkcoreDocumentSplitter` do not inherit.
    """
    return Document(id=document.id, content=document.text, meta=with_page_marks(document))


def check_documents(component: object, documents: object) -> None:
    """Raise `TypeError` for anything but a list of `Document`, as Haystack's own components do."""
    expected = f"{type(component).__name__} expects a list of Documents as input"
    if not isinstance(documents, list):
        raise TypeError(f"{expected}, got {type(documents).__name__}")
    for place, document in enumerate(documents):
        if not isinstance(document, Document):
            how = "; from_document makes one" if isinstance(document, CoreDocument) else ""
            raise TypeError(f"{expected}, got {type(document)} at place {place}{how}")


def has_text(document: Document) -> bool:
    """Whether a document has content; if not, a warning says that it is skipped."""
    if document.content:
        return True
    logger.warning(
        "Document ID {doc_id} has an empty content. Skipping this document.", doc_id=document.id
    )
    return False


Values: TypeAlias = dict[str, Any]


class Serialized:
    """A component that Haystack can write as YAML. Its `run_async` is `run` in a thread."""

    run_async: Callable[..., Coroutine[object, object, Values]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        run: Callable[..., Values] | None = vars(cls).get("run")
        if run is not None and "run_async" not in vars(cls):

            @wraps(run)  # Haystack compares signatures and output types
            async def run_async(*values: object, **more: object) -> Values:
                return await asyncio.to_thread(run, *values, **more)

            cls.run_async = run_async

    def _arguments(self) -> Values:
        """The constructor's arguments as plain values or as objects with a `to_dict`: by default its attributes."""
        names = list(signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> Values:
        """The component as plain values. Raises `OptionError`: an argument has no name to be built from again."""
        return default_to_dict(self, **self._arguments())

    @classmethod
    def from_dict(cls, data: Values) -> Self:
        """The component that `to_dict` described. Raises `DeserializationError` for modules that Haystack distrusts."""
        return default_from_dict(cls, data)
