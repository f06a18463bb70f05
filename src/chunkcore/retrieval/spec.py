"""Searches as strings: ``dense``, ``bm25:k1=1.2,b=0.75``, ``hybrid:dense,bm25``, ``hybrid+rerank:depth=20``."""

from __future__ import annotations

import re
from typing import Any

from chunkcore.chunkers.spec import read_value, split_parts
from chunkcore.errors import OptionError
from chunkcore.retrieval.base import Search, SearchMethod, build_search
from chunkcore.retrieval.rerank import RERANK, Reranked

__all__ = ["get_search", "parse_search"]

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def get_search(spec: str | SearchMethod) -> SearchMethod:
    """The search that a string describes; a `SearchMethod` is handed back as it is.

    Raises:
        OptionError: malformed, no such search or option, or something else than these.
    """
    if isinstance(spec, str):
        return parse_search(spec)
    if isinstance(spec, SearchMethod):
        return spec
    raise OptionError(f"a retriever is a string or an object with name, embeds and index; got {type(spec).__name__}")


def parse_search(spec: str) -> Search:
    """The search that a string describes: its name, its options, and ``+rerank`` with those of the reranker.

    Values are read as in a strategy's string (`parse_chunker`).

    Raises:
        OptionError: malformed, or no such search or option, or a value that it cannot have.

    >>> parse_search("bm25:k1=2").k1, parse_search("hybrid:bm25,late,k=30+rerank:depth=20").name
    (2.0, 'hybrid:bm25,late,k=30+rerank:depth=20')
    """
    place = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), spec).rfind(RERANK)
    after = spec[place + len(RERANK) :].strip()
    if place >= 0 and after[:1] in ("", ":"):
        return Reranked.over(parse_search(spec[:place]), *_split(after[1:], spec))
    name, _, rest = spec.partition(":")
    return build_search(name.strip(), *_split(rest, spec))


def _split(text: str, spec: str) -> tuple[list[str], dict[str, Any]]:
    """What stands between the commas: parts without a name, and options."""
    parts: list[str] = []
    options: dict[str, Any] = {}
    for each in split_parts(text, spec, "retriever"):
        part = each.strip()
        if part.startswith('"'):
            parts.append(str(read_value(part, "methods")))
            continue
        option, equals, value = part.partition("=")
        option = option.strip()
        if not equals:
            parts.append(part)
        elif option in options:
            raise OptionError(f"the option {option} is given twice in the retriever {spec!r}; keep one")
        else:
            options[option] = read_value(value.strip(), option)
    return parts, options
