"""Small documents to find large ones by, for Haystack's `AutoMergingRetriever`."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from haystack import Document, component

from chunkadapters._haystack import Serialized, check_documents, hit_of, keys_of
from chunkadapters.hits import segments_of
from chunkadapters.places import SEGMENTS, decode_segments, digest, unused_id
from chunkcore.errors import OptionError
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter

_OWN_PLACE = (SEGMENTS, "spans", "_split_overlap", "root_spans", "__children_ids")


@component
class ChunkcoreChildSplitter(Serialized):
    """Cuts chunks into children to embed and search; the chunks stay for the answer.

    Both have the metadata of Haystack's `AutoMergingRetriever`: ``__parent_id``, ``__children_ids``, ``__level`` and
    ``__block_size`` (the strategy's ``size``; 0 if it has none). The children of a chunk are its segments (strategy
    ``hierarchical``), else its chunks by `strategy`.

    Args:
        strategy: a spec string, for chunks without segments; None makes such a chunk its own only child.

    Raises:
        OptionError: a `ValueError`: no spec string.

    >>> place = {"source_id": "a", "split_idx_start": 0}
    >>> parent = Document(id="p", content="One two three. Four five six.", meta=place)
    >>> found = ChunkcoreChildSplitter("recursive:size=3,counter=words").run([parent])
    >>> [each.content for each in found["children"]], len(found["parents"][0].meta["__children_ids"])
    (['One two three.', 'Four five six.'], 2)
    """

    def __init__(self, strategy: str | None = None) -> None:
        if not isinstance(strategy, str | None):
            raise OptionError(f"strategy is a spec string such as 'recursive:size=50', got {type(strategy).__name__}")
        self.strategy = strategy
        self._splitter = None if strategy is None else ChunkcoreDocumentSplitter(strategy, keep_white_space=False)

    def warm_up(self) -> None:
        """Load the strategy's tokenizer and models."""
        if self._splitter is not None:
            self._splitter.warm_up()

    @component.output_types(parents=list[Document], children=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Cut chunks from `ChunkcoreDocumentSplitter`. Returns ``children``, and ``parents`` with their children's ids.

        Raises `TypeError` unless given a list of `Document`.
        """
        check_documents(self, documents)
        size = getattr(getattr(self._splitter, "chunker", None), "size", 0)
        parents: list[Document] = []
        children: list[Document] = []
        for chunk in documents:
            level = chunk.meta.get("__level", 0)
            own = self._children(chunk)
            block = size if isinstance(size, int) else 0
            link = {"__level": level + 1, "__block_size": block, "__parent_id": chunk.id, "__children_ids": []}
            children += [replace(each, meta={**each.meta, **link}) for each in own]
            meta = {"__block_size": 0, "__parent_id": None, "__level": level, **chunk.meta}
            parents.append(replace(chunk, meta={**meta, "__children_ids": [each.id for each in own]}))
        return {"parents": parents, "children": children}

    def _children(self, chunk: Document) -> list[Document]:
        if not decode_segments(chunk.meta.get(SEGMENTS)) and self._splitter is not None and chunk.content:
            found: list[Document] = self._splitter.run([chunk])["documents"]
            return found
        keys = keys_of(chunk.meta)
        kept = {key: value for key, value in chunk.meta.items() if key not in _OWN_PLACE}
        made: list[Document] = []
        taken: set[str] = set()
        for spans, text in segments_of(hit_of(chunk), chunk.meta):
            meta = deepcopy(kept) | keys.write(spans)
            made.append(Document(id=unused_id(digest(f"{chunk.id}{spans}{text}"), taken), content=text, meta=meta))
        return made
