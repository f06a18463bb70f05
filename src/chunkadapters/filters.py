"""What a retriever's search is filtered by, and of which documents passages may therefore show the whole text.

A filter may hide chunks of a document. No passage shows what it hides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from chunkadapters.places import BOOKKEEPING
from chunkcore.locating import Hit
from chunkcore.text import Document

UNKNOWN = "unknown"  # a filter that nobody has stated
# Metadata that name a document: a filter that reads them chooses documents.
_NAMES = frozenset(
    ["source", "source_id", "file_path", "file_name", "path", "url", "ref_doc_id", "root_source_id"]
)
ANY = "*"  # stands for the keys of a filter that cannot be read
_FILTERS = re.compile(r"_?((pre_|post_)?filters?|where(_document)?|expr|corpus_weight_mask)")
# Options of a search that choose among hits by their scores alone.
_OF_SCORES = ("k", "top_k", "fetch_k", "lambda_mult", "score_threshold", "search_type", "alpha")
# The frameworks' retrievers that filter by nothing but what their attributes say.
_READ = re.compile(
    r"(langchain|llama_index|chunkadapters)\w*\..*\.((VectorStore|Ensemble|Merger|MultiQuery|ParentDocument|MultiVector|"
    r"BM25|TFIDF|Index|VectorIndex|QueryFusion|AutoMerging)Retriever|Runnable(Binding|Retry|ConfigurableFields))"
)
_HELD = re.compile(
    r"_?(\w+_)?retrievers?|bound|default|object_map"
)  # where they have the retrievers that they ask

# Haystack's; in other filters `field`, `operator` and their like are keys of metadata.
_COMPARED = ("==", "!=", ">", ">=", "<", "<=", "in", "not in")
_JOINED = ("AND", "OR", "NOT")


def filter_keys(filters: Any) -> set[str]:
    """The metadata keys that filters read; with `ANY` for a function, a query language or the like.

    Knows mappings, as of most stores, LlamaIndex' `MetadataFilters` and Haystack's.

    >>> sorted(filter_keys([{"$and": [{"level": 1}, {"tenant": {"$ne": "a"}}]}, {"kind": 2}]))
    ['kind', 'level', 'tenant']
    """
    if isinstance(filters, Mapping):
        operator = filters.get("operator")
        if filters.keys() == {"field", "operator", "value"} and operator in _COMPARED:
            return {str(filters["field"]).removeprefix("meta.")}
        if filters.keys() == {"operator", "conditions"} and operator in _JOINED:
            return filter_keys(filters["conditions"])
        nested = {key for key in filters if str(key).startswith("$")}
        keys = {
            ANY if _is_query(value) else str(key)
            for key, value in filters.items()
            if key not in nested
        }
        return keys.union(*(filter_keys(filters[key]) for key in nested))
    if isinstance(filters, list | tuple):
        return set().union(*map(filter_keys, filters))
    if isinstance(inner := getattr(filters, "filters", None), list):
        return filter_keys(inner)
    key = getattr(filters, "key", None)
    return {key if isinstance(key, str) else ANY}


def _is_query(value: Any) -> bool:
    """Whether a value is part of a query language, as in ``{"term": {"metadata.level": 1}}``, and no condition."""
    if isinstance(value, Mapping):
        return not all(str(key).startswith("$") for key in value)
    return isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value)


def filters_in(options: Mapping[str, Any]) -> list[Any]:
    """The filters among the options of a search; `UNKNOWN` for an option that may choose by anything."""
    filters = []
    for name, value in options.items():
        if isinstance(value, Mapping) and name.endswith("kwargs"):
            filters += filters_in(value)
        elif _FILTERS.fullmatch(name):
            filters += [] if value is None else [value]
        elif name not in _OF_SCORES:
            filters.append(UNKNOWN)
    return filters


def filters_within(retriever: Any, depth: int = 8) -> list[Any]:
    """The filters of a retriever and of those that it holds; `UNKNOWN` for one that may have others."""
    kind = type(retriever)
    is_read = bool(depth and _READ.fullmatch(f"{kind.__module__}.{kind.__name__}"))
    filters: list[Any] = [] if is_read else [UNKNOWN]
    for name, value in getattr(retriever, "__dict__", {}).items() if depth else ():
        if _HELD.fullmatch(name):
            several = value.values() if isinstance(value, Mapping) else value
            for inner in several if isinstance(value, Mapping | list | tuple) else [value]:
                filters += filters_within(inner, depth - 1)
        elif _FILTERS.fullmatch(name) or (isinstance(value, Mapping) and name.endswith("kwargs")):
            filters += filters_in({name: value})
        elif name == "config" and isinstance(value, Mapping):
            filters += filters_in(value.get("configurable") or {})
        elif (
            name == "_node_ids"
            and is_read
            and value
            and len(value) < len(retriever._index.index_struct.nodes_dict)
        ):
            filters.append(UNKNOWN)
    return filters


def keys_of(stated: Any, seen: Iterable[Any]) -> set[str]:
    """The metadata keys by which a search is filtered: of what the user states, and of what is seen.

    What is stated stands for what cannot be read.
    """
    if isinstance(stated, str) and stated == UNKNOWN:
        return filter_keys(list(seen))
    keys = filter_keys([one for one in seen if one is not UNKNOWN])
    more = set() if stated is None else filter_keys(stated)
    return keys - {ANY} | more if more else keys


def whole_documents(
    hits: Iterable[tuple[Hit, str]], documents: Mapping[str, Document], keys: Collection[str]
) -> set[str]:
    """The hits' documents of which no filter that reads `keys` hides a part.

    It lets a whole document through if the index' document has the values that its hits have.
    """
    names, hidden = set(), set()
    for hit, name in hits:
        metadata = documents[name].metadata
        names.add(name)
        if any(
            key not in metadata or repr(metadata[key]) != repr(hit.metadata.get(key))
            for key in set(keys).difference(_NAMES, BOOKKEEPING)
        ):
            hidden.add(name)
    return names - hidden
