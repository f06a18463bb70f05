"""`get_retriever`: a retrieval method of a string. `load_index`: an index of a folder."""

from __future__ import annotations

import re
from pathlib import Path

from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.retrieval.base import Index, RetrievalMethod, retrievers
from chunkcore.retrieval.saved import OpenedFolder
from chunkcore.retrieval.stage import stages
from chunkcore.specs import split_options

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SUFFIX = re.compile(r"\+\s*(\w+)\s*(?::|$)")


def get_retriever(spec: str | RetrievalMethod) -> RetrievalMethod:
    """The retrieval method of a string (or a `RetrievalMethod` unchanged).

    A string has the method's name, its options, and any `stages` with theirs. Values are read as in a strategy's string
    (`get_chunker`).

    Raises `OptionError`: a malformed string, no such method or option, or a bad value.

    >>> get_retriever("bm25:k1=2").name, get_retriever("hybrid:bm25,late,depth=50+rerank:depth=20+window:2").name
    ('bm25:k1=2.0', 'hybrid:bm25,late,depth=50+rerank:depth=20+window:2')
    """
    if isinstance(spec, RetrievalMethod):
        return spec
    if not isinstance(spec, str):
        raise OptionError(f"a retriever is a string or a RetrievalMethod; got {type(spec).__name__}")
    parts: list[str] = []
    shown = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), spec)
    for suffix in reversed(list(_SUFFIX.finditer(shown))):
        if suffix[1] in stages:
            method = get_retriever(spec[: suffix.start()])
            options = split_options(spec[suffix.end() :], spec, "retriever", parts)
            if "method" in options:
                raise OptionError(f"{suffix[1]}: the method stands before +{suffix[1]}, as in bm25+{suffix[1]}")
            return stages.get(suffix[1]).read(parts, {**options, "method": method})
    name, _, rest = spec.partition(":")
    before, plus, unknown = name.rpartition("+")
    if plus and before.strip() in retrievers:
        stages.get(unknown.strip())
    options = split_options(rest, spec, "retriever", parts)
    return retrievers.get(name.strip()).read(parts, options)


def load_index(folder: Path | str, *, embedder: Embedder | str | None = None) -> Index:
    """The index that `Index.save` wrote. Vectors stay on disk and are read by memory map; no model is loaded until a
    question is embedded.

    Args:
        folder: of the index.
        embedder: the model that made the vectors, where its name alone does not load it.

    Raises:
        DataError: there is no index, it is damaged, of another version, or `embedder` is another model.

    >>> import tempfile
    >>> from chunkcore import Document, chunk_corpus, get_retriever
    >>> fox = Document("fox.txt", "The fox naps at noon. The crow sings at night.")
    >>> index = get_retriever("passages:lexical").index(chunk_corpus([fox], "sentence:size=6"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = load_index(index.save(folder))
    ...     [passage.text for passage in loaded.retrieve("Who sings?", max_tokens=6)]
    ['The crow sings at night.']
    """
    opened = OpenedFolder(folder)
    corpus, vectors = opened.read(embedder)
    index = get_retriever(opened.manifest["retriever"]).index(corpus, vectors)
    index.origin = opened.folder.resolve(), opened.manifest["data"]
    return index
