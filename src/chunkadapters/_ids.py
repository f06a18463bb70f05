"""Ids that are the same in every run, and never the same twice in one."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["digest", "unused_id"]


def digest(text: str) -> str:
    """32 hexadecimal digits of a text; unpaired surrogates are welcome."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def unused_id(chunk_id: str, taken: set[str]) -> str:
    """The id, or one made from it where it is `taken`; it then is.

    Chunks share an id where a document is handed in twice, or where an overlap stripped of its white
    space leaves the very span of the chunk before. Vector stores refuse equal ids or keep one of them.

    >>> taken = set()
    >>> unused_id("a", taken), unused_id("a", taken) == unused_id("a", taken), len(taken)
    ('a', False, 3)
    """
    unused, turn = chunk_id, 1
    while unused in taken:
        turn += 1
        unused = digest(f"{chunk_id}#{turn}")
    taken.add(unused)
    return unused
