"""What the tests of the three adapters share: chunkers that need no model, and questions about two short texts."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest.mock import patch

from chunkcore import Benchmark, Document, Evidence, OptionError, Query, Span
from chunkcore.chunkers import chunkers
from chunkcore.chunkers.base import Chunker, Draft, get_chunker
from chunkcore.tokens import TokenizedText


@dataclass(frozen=True, kw_only=True)
class Windows(Chunker):
    """Windows of `size` characters; with `scattered`, the first and the last make one chunk, and so on inward."""

    name = "windows"

    counter: str = "characters"
    size: int = 10
    overlap: int = 0
    scattered: bool = False

    def validate(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise OptionError(f"overlap is under size ({self.size}), got {self.overlap}")

    def cut(self, source: TokenizedText) -> list[Draft]:
        length = len(source.text)
        starts = range(0, length, self.size - self.overlap)
        windows = [Span(start, min(start + self.size, length)) for start in starts]
        if not self.scattered:
            return [Draft((window,)) for window in windows]
        half = (len(windows) + 1) // 2
        pairs = zip(windows[:half], [*reversed(windows[half:]), None], strict=False)
        return [Draft((first, last) if last else (first,)) for first, last in pairs]


@dataclass(frozen=True, kw_only=True)
class Telling(Chunker):
    """Windows of ten characters that in turn tell nothing, metadata and a context, a model's text, several spans."""

    name = "telling"

    counter: str = "characters"

    def cut(self, source: TokenizedText) -> list[Draft]:
        text = source.text
        windows = [Span(start, min(start + 10, len(text))) for start in range(0, len(text), 10)]
        return [self._told(i, window, text, source.document) for i, window in enumerate(windows)]

    def _told(self, i: int, window: Span, text: str, document: Document | None) -> Draft:
        if i % 4 == 1:
            language = document.metadata.get("language") if document else None
            metadata = {"headings": ["Top", f"Part {i}"], "language": language, "weights": {"a": i}, "empty": []}
            return Draft((window,), metadata, context=f"Window {i} of {text[:3]}.")
        if i % 4 == 2:
            return Draft((window,), derived=f"A model wrote of {text[:2]}.")
        if i % 4 == 3:
            return Draft((window, Span(0, 5)))
        return Draft((window,))


CHUNKERS = [
    Windows(size=7, overlap=3),
    Windows(size=5, scattered=True),
    get_chunker("recursive", size=12, overlap=0, counter="characters"),
    get_chunker("recursive", size=8, overlap=3, counter="cl100k_base"),
    get_chunker("fixed_token", size=6, overlap=2, counter="cl100k_base"),
]


def registered(*toys: type[Chunker]) -> AbstractContextManager[None]:
    """The toys have names meanwhile, and no other test meets them among the chunkers."""
    return patch.dict(chunkers.entries, {toy.name: toy for toy in toys})


Places = list[tuple[int, int]]


JOINTS = {" ", "\n"}  # what stands between the spans of a chunk


def lost(source: str, chunks: Iterable[Places]) -> list[int]:
    """Where the source has a character that is not white space and in no chunk."""
    covered = {place for places in chunks for start, end in places for place in range(start, end)}
    return [place for place, char in enumerate(source) if not char.isspace() and place not in covered]


TEXTS = {
    "tea.md": "Green tea is steeped at eighty degrees. Black tea takes boiling water.\n\nAsk the staff.",
    "docs/coffee.md": "Espresso is pressed in thirty seconds. Filter coffee drips for minutes.\n\nAsk the staff.",
}


def evidence(texts: dict[str, str], document_id: str, excerpt: str, occurrence: int = 0) -> Evidence:
    """An excerpt as evidence, at the place where it stands for the first time, or after so many others."""
    place = -1
    for _ in range(occurrence + 1):
        place = texts[document_id].index(excerpt, place + 1)
    return Evidence(document_id, Span(place, place + len(excerpt)))


BENCHMARK = Benchmark(
    "drinks",
    [Document(key, text) for key, text in TEXTS.items()],
    [
        Query("q1", "green tea", (evidence(TEXTS, "tea.md", "Green tea is steeped at eighty degrees."),)),
        Query("q2", "espresso", (evidence(TEXTS, "docs/coffee.md", "Espresso is pressed in thirty seconds."),)),
        Query("q3", "staff of the coffee house", (evidence(TEXTS, "docs/coffee.md", "Ask the staff."),)),
    ],
)
