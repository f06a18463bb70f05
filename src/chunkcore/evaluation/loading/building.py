"""A text that is put together from parts, and where each part stands in it."""

from __future__ import annotations

from chunkcore.document import Span

__all__ = ["TextBuilder"]


class TextBuilder:
    r"""Joins parts with one separator. Blank parts are left out.

    >>> builder = TextBuilder("\n\n")
    >>> builder.add("Foxes"), builder.add(" "), builder.add("They nap.")
    (Span(start=0, end=5), None, Span(start=7, end=16))
    >>> builder.text
    'Foxes\n\nThey nap.'
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._parts: list[str] = []
        self._size = 0

    def add(self, part: str) -> Span | None:
        """Add a part, and tell where it stands; None for a blank one, which stands nowhere."""
        if not part.strip():
            return None
        start = self._size + len(self._separator) * bool(self._parts)
        self._parts.append(part)
        self._size = start + len(part)
        return Span(start, self._size)

    @property
    def text(self) -> str:
        """All parts so far."""
        return self._separator.join(self._parts)
