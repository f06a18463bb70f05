"""The last step of updating an index, as a Haystack component: write, then delete."""

from __future__ import annotations

from dataclasses import dataclass

from haystack import Document, component
from haystack.document_stores.types import DocumentStore, DuplicatePolicy

from chunkadapters.haystack.documents import Serialized


@component
@dataclass(eq=False)
class ChunkcoreIndexWriter(Serialized):
    """Writes the embedded chunks of `ChunkcoreIndexUpdater`, then deletes the stale ones.

    In this order nothing is lost if an embedder or the store fails, and the next run continues. Documents with the same
    ids are overwritten.

    Args:
        document_store: the store that the updater compares with.

    >>> from haystack.document_stores.in_memory import InMemoryDocumentStore
    >>> writer = ChunkcoreIndexWriter(InMemoryDocumentStore())
    >>> writer.run(documents=[Document(id="1", content="tea")], moved=[], stale=[])
    {'documents_written': 1, 'documents_deleted': 0}
    >>> writer.run(documents=[Document(id="2", content="sea")], moved=[], stale=["1"])
    {'documents_written': 1, 'documents_deleted': 1}
    """

    document_store: DocumentStore

    @component.output_types(documents_written=int, documents_deleted=int)
    def run(
        self, documents: list[Document], moved: list[Document], stale: list[str]
    ) -> dict[str, int]:
        """Write, then delete. Returns ``documents_written``, as the store counts them, and ``documents_deleted``.

        All arguments are the updater's outputs; `documents` are embedded.
        """
        written = 0
        chunks = [*documents, *moved]
        if chunks:
            written = self.document_store.write_documents(chunks, policy=DuplicatePolicy.OVERWRITE)
        if stale:
            self.document_store.delete_documents(stale)
        return {"documents_written": written, "documents_deleted": len(stale)}
