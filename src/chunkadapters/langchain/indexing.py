"""What LangChain's ``index()`` compares chunks by when a collection is indexed again."""

from __future__ import annotations

import json
from hashlib import blake2b

from langchain_core.documents import Document

from chunkadapters._told import SEGMENTS, SPANS

__all__ = ["content_key"]

_PLACES = ("start_index", "end_index", SPANS, SEGMENTS)


def content_key(document: Document) -> str:
    """A key of a chunk's source, text and metadata, but not of where it stands.

    For ``index(..., cleanup="incremental", source_id_key="source_id", key_encoder=content_key)``: after an edit only
    the chunks with another text are embedded and written, and the old ones deleted. Chunks that have only moved are
    left alone, and say in the store where they stood before; `evaluate_retriever` then finds them by their text. Of
    passages that a source repeats word for word, the first is indexed.

    Any of LangChain's own encoders (``key_encoder="sha256"``) also sees where a chunk stands: what has moved is
    written again, and says where it stands now. `ChunkcoreEmbeddings` over a cache then embeds only what is new.

    >>> moved = [Document(page_content="tea", metadata={"source_id": "a", "start_index": i}) for i in (0, 9)]
    >>> content_key(moved[0]) == content_key(moved[1])
    True
    """
    kept = {str(key): value for key, value in document.metadata.items() if key not in _PLACES}
    data = json.dumps([document.page_content, kept], sort_keys=True, ensure_ascii=True, default=repr)
    return blake2b(data.encode("ascii"), digest_size=16).hexdigest()
