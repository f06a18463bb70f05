"""The user's own functions: with a name that tells them apart, and as a `TokenCounter`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from operator import itemgetter
from types import CellType, CodeType, ModuleType
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker, Draft, strategies
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.packing import trim
from chunkcore.tokens import CharacterCounter, Offsets, TiktokenCounter, TokenCounter, TokenizedText

__all__ = ["Aligned", "FunctionCounter", "Joined", "Named", "counter_of", "joined"]

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_EMPTY = CellType()
# Keys, and what watches the work or is made by it: none of it changes a text.
_IRRELEVANT = re.compile(r"api_?key|secret|passw|credential|bearer|callback|client|cache|^_?warm", re.IGNORECASE)


class Named:
    """A function as an option: its name tells it apart from others, though nothing can be built from it.

    The name changes with the function's code, with what it has taken from where it was defined, with what is bound by
    `functools.partial`, and with what its object is set to.

    >>> Named(len).name == Named(len).name, Named(lambda: 1).name == Named(lambda: 2).name
    (True, False)
    >>> Named(len)("four")
    4
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = self.fingerprint = f"function:{_mark(function)}"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class FunctionCounter(TokenCounter):
    """Counts by a function of a text, one call a text.

    Where its tokens begin it can't know: they are spread evenly. Nothing that cuts by the places of tokens is to be
    given it.

    >>> FunctionCounter(lambda text: text.count(" ") + 1).count("one two")
    2
    """

    def __init__(self, function: Callable[[str], int]) -> None:
        self.function = function
        self.name = f"function:{_mark(function)}"

    def count(self, text: str) -> int:
        return int(self.function(text))

    def boundaries(self, text: str) -> Offsets:
        spread: Offsets = np.linspace(0, len(text), self.count(text), endpoint=False).astype(np.int64)
        return spread


def counter_of(length: Callable[[str], int]) -> TokenCounter:
    """The counter that gives the same numbers as a function, as a fast one where the function is known.

    >>> counter_of(len)
    CharacterCounter('characters')
    """
    if length is len:
        return CharacterCounter()
    owner: Any = getattr(length, "__self__", None)
    if isinstance(owner, TokenCounter) and getattr(length, "__func__", None) is type(owner).count:
        return owner
    inside = _closed_over(length)
    if getattr(length, "__qualname__", "").endswith("._tiktoken_encoder") and not inside.get("allowed_special"):
        return TiktokenCounter(inside["enc"].name)
    return FunctionCounter(length)


def _closed_over(function: Any) -> dict[str, Any]:
    """What a function has taken from where it was defined, by name."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True) if cell != _EMPTY}


def _mark(function: Callable[..., Any]) -> str:
    """A function's name, with eight digits that change with what `_seen` sees of it."""
    seen = _ADDRESS.sub("", repr(_seen(function)))
    name = getattr(function, "__qualname__", type(function).__qualname__)
    digest = blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{getattr(function, '__module__', '')}.{name}-{digest}"


def _seen(function: Callable[..., Any], depth: int = 2) -> Any:
    """A function's code, and what it works with: its object, what it has taken from where it was defined or was bound.

    The settings of an object are seen, and functions among them; a function may hold itself, hence the `depth`.
    """
    if isinstance(function, partial):
        bound = (*function.args, *(value for _, value in sorted(function.keywords.items())))
        return _seen(function.func, depth), [_settings(value, depth) for value in bound], sorted(function.keywords)
    code = getattr(function, "__code__", None)
    taken = (*_closed_over(function).values(), *(getattr(function, "__defaults__", None) or ()))
    return (
        _settings(code, 0),
        [_settings(value, depth) for value in taken],
        _settings(getattr(function, "__self__", None), depth),
    )


def _settings(value: Any, depth: int) -> Any:
    if isinstance(value, set | frozenset):  # their order differs from process to process
        return sorted(map(repr, value))
    if isinstance(value, CodeType):  # with that of the functions inside it
        return value.co_code, [_settings(each, 0) for each in value.co_consts], value.co_names
    if depth and (isinstance(value, partial) or hasattr(value, "__code__")):
        return _seen(value, depth - 1)
    if not depth or isinstance(value, type | ModuleType) or not hasattr(value, "__dict__"):
        return value
    # Names with two underlines are a framework's own state, such as what a component of Haystack is connected to.
    named = (
        (name, _settings(each, depth - 1))
        for name, each in vars(value).items()
        if not (name.startswith("__") or _IRRELEVANT.search(name))
    )
    return type(value), sorted(named, key=itemgetter(0))


@strategies.register("aligned")
@dataclass(frozen=True, kw_only=True)
class Aligned(Chunker):
    r"""The pieces that a function cuts a text into, with their places in it.

    Each piece is sought as `Aligner.locate_in_order` does: verbatim, but for white space, by letters and digits, by
    resemblance; of a text that stands several times, the place that its neighbours leave for it. A piece that
    was altered keeps the function's text (it is `derived`), and its metadata tell ``located``, how it was found,
    unless it stands there verbatim and once. A piece that is found nowhere is refused: it would have no place.

    Cost: the function's own, and an index of each document, about 7 bytes a character.

    Attributes:
        split: from a text to its pieces, in the text's order; a piece is a text, or a text and its metadata.
        similarity: see `Aligner`.

    Raises:
        OptionError: `split` can't be called.
        DataError: it gave something else than texts, or one that is found nowhere.

    >>> Aligned(split=str.splitlines, counter="words").chunk(Document("d", "one\ntwo\none"))[2].spans
    (Span(start=8, end=11),)
    """

    split: Callable[[str], Sequence[str | tuple[str, Mapping[str, Any]]]] | str = ""  # type: ignore[assignment]  # an option here, not the hook
    similarity: float | None = 0.8

    def validate(self) -> None:
        if not callable(self.split):
            raise OptionError(f"split is a function from a text to its pieces, got {self.split!r}")
        if not isinstance(self.split, Named):
            object.__setattr__(self, "split", Named(self.split))

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        pieces, metadata = self._pieces(source.text)
        if not pieces:
            return []
        aligner = Aligner([Document("text", source.text)], similarity=self.similarity)
        drafts = []
        places = aligner.locate_in_order(pieces, document_id="text")
        for piece, own, found in zip(pieces, metadata, places, strict=True):
            if not found.spans:
                raise DataError(
                    f"the splitter gave a piece that stands nowhere in its text: {piece[:80]!r}; "
                    "without a place it can't be evaluated: configure the splitter so that it keeps the text"
                )
            verbatim = self._text(source.text, found.spans) == piece
            told = {} if found.how == "exact" else {"located": found.how}
            drafts.append(Draft(found.spans, own | told, derived=None if verbatim else piece))
        return drafts

    def _pieces(self, text: str) -> tuple[list[str], list[dict[str, Any]]]:
        """The pieces that are not empty, and the metadata of each."""
        pieces: list[str] = []
        metadata: list[dict[str, Any]] = []
        for given in self.split(text):  # type: ignore[operator]  # `validate` has seen that it can be called
            piece, own = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
            if not isinstance(piece, str) or not isinstance(own, Mapping):
                raise DataError(
                    f"expected the splitter to give texts, or texts with their metadata, got {type(given).__name__}"
                )
            if piece:
                pieces.append(piece)
                metadata.append(dict(own))
        return pieces, metadata


Piece = tuple[int, int]


def joined(text: str, pieces: Iterable[Piece], joiner: str, *, strip: bool) -> Draft | None:
    """A chunk of pieces that are joined by a string; None where nothing is left of it.

    Pieces that the joiner itself parts are one span. Of others the chunk has a span each, and its text is theirs,
    joined. Where what the original writes can't be said so, it is the chunk's derived text.

    >>> joined("one, two,, three", [(0, 3), (5, 8)], ", ", strip=True).spans
    (Span(start=0, end=8),)
    >>> joined("one, two,, three", [(5, 8), (11, 16)], ", ", strip=True).spans
    (Span(start=5, end=8), Span(start=11, end=16))
    """
    rows: list[Piece] = []
    for start, end in pieces:
        if rows and text[rows[-1][1] : start] == joiner:
            rows[-1] = (rows[-1][0], end)
        else:
            rows.append((start, end))
    if len(rows) == 1:
        start, end = trim(text, *rows[0]) if strip else rows[0]
        return Draft((Span(start, end),)) if start < end else None
    wanted = joiner.join([text[start:end] for start, end in rows])
    if strip:
        wanted = wanted.strip()
        # Of pieces of white space alone the joiners stay, and stand between them.
        rows = list(_trimmed(text, rows)) or [(rows[0][1], rows[-1][0])]
    if not wanted:
        return None
    spans = tuple(Span(start, end) for start, end in rows)
    return Draft(spans) if joiner.join([span.slice(text) for span in spans]) == wanted else Draft(spans, derived=wanted)


def _trimmed(text: str, rows: list[Piece]) -> Iterator[Piece]:
    """The rows without the white space at the first one's start and the last one's end, nor rows of white space."""
    kept = [row for row in rows if not text[row[0] : row[1]].isspace()]
    for place, (start, end) in enumerate(kept):
        inner = trim(text, start, end)
        yield (inner[0] if place == 0 else start), (inner[1] if place == len(kept) - 1 else end)


@dataclass(frozen=True, kw_only=True)
class Joined(Chunker):
    """A strategy whose chunks are pieces, joined by a string that its options tell."""

    def _join_by(self, joiner: str) -> None:
        """What the pieces of this chunker's chunks are joined by: of a class it is one string for all."""
        object.__setattr__(self, "separator", joiner)
