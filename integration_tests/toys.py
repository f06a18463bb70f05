"""A chunker that needs no other: windows of characters, and, if asked, two distant windows a chunk."""

from __future__ import annotations

from dataclasses import dataclass

from chunkcore.chunkers.base import Chunker
from chunkcore.document import Span
from chunkcore.errors import OptionError
from chunkcore.tokens import TokenizedText


@dataclass(frozen=True, kw_only=True)
class Windows(Chunker):
    """Windows of `size` characters; with `scattered`, the first and the last make one chunk, and so on inward."""

    name = "windows"
    separator = " / "

    counter: str = "characters"
    size: int = 10
    overlap: int = 0
    scattered: bool = False

    def _validate(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise OptionError(f"overlap is under size ({self.size}), got {self.overlap}")

    def _split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        length = len(source.text)
        starts = range(0, length, self.size - self.overlap)
        windows = [Span(start, min(start + self.size, length)) for start in starts]
        if not self.scattered:
            return [(window,) for window in windows]
        half = (len(windows) + 1) // 2
        pairs = zip(windows[:half], [*reversed(windows[half:]), None], strict=False)
        return [(first, last) if last else (first,) for first, last in pairs]
