"""Shared by `exact` for all frameworks: functions as options, pieces found in order, pieces joined to chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from operator import itemgetter
from types import CellType, CodeType, ModuleType
from typing import Any, ClassVar, Literal

import numpy as np

from chunkcore.chunkers import Chunker, Draft, strategies
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.packing import trim
from chunkcore.spans import Numbers
from chunkcore.tokens import CharacterCounter, TiktokenCounter, TokenCounter, TokenizedText

# ---- Functions as options

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_EMPTY = CellType()
# Attributes that change no text: keys, callbacks, caches.
_IRRELEVANT = re.compile(r"api_?key|secret|passw|credential|bearer|callback|client|cache|^_?warm", re.IGNORECASE)


class NamedFunction:
    """A function as an option, with a name for caches; the function cannot be rebuilt from the name.

    The name changes with the function's code, closure, `functools.partial` arguments and object.

    >>> NamedFunction(len) == NamedFunction(len), NamedFunction(lambda: 1) == NamedFunction(lambda: 2)
    (True, False)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = self.fingerprint = f"function:{_mark(function)}"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFunction) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class FunctionCounter(TokenCounter):
    """Counts by a function of a text. Boundaries are unknown, and spread evenly.

    >>> FunctionCounter(lambda text: text.count(" ") + 1).count("one two")
    2
    """

    def __init__(self, function: Callable[[str], int]) -> None:
        self.function = function
        self.name = f"function:{_mark(function)}"

    def count(self, text: str) -> int:
        return int(self.function(text))

    def boundaries(self, text: str) -> Numbers:
        spread: Numbers = np.linspace(0, len(text), self.count(text), endpoint=False).astype(np.int64)
        return spread


def counter_of(length: Callable[[str], int]) -> TokenCounter:
    """The counter of a length function; a fast one for known functions.

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


def tokenizer_of(tokenizer: Callable[[str], Sequence[Any]]) -> TokenCounter:
    """The counter of a function from text to tokens; a fast one for tiktoken's."""
    call = getattr(tokenizer, "func", tokenizer)
    owner: Any = getattr(call, "__self__", None)
    if type(owner).__module__.startswith("tiktoken") and getattr(call, "__name__", "") in ("encode", "encode_ordinary"):
        return TiktokenCounter(owner.name)
    return FunctionCounter(partial(_tokens, tokenizer))


def _tokens(tokenizer: Callable[[str], Sequence[Any]], text: str) -> int:
    return len(tokenizer(text))


def _closed_over(function: Any) -> dict[str, Any]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True) if cell != _EMPTY}


def _mark(function: Callable[..., Any]) -> str:
    """A function's name and eight digits of its hash (`_seen`)."""
    seen = _ADDRESS.sub("", repr(_seen(function)))
    name = getattr(function, "__qualname__", type(function).__qualname__)
    digest = blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{getattr(function, '__module__', '')}.{name}-{digest}"


def _seen(function: Callable[..., Any], depth: int = 2) -> Any:
    """A function's code, closure, defaults and object, to a depth, because functions can be recursive."""
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
    if isinstance(value, set | frozenset):  # ordered differently in each process
        return sorted(map(repr, value))
    if isinstance(value, CodeType):  # with that of inner functions
        return value.co_code, [_settings(each, 0) for each in value.co_consts], value.co_names
    if depth and (isinstance(value, partial) or hasattr(value, "__code__")):
        return _seen(value, depth - 1)
    if not depth or isinstance(value, type | ModuleType) or not hasattr(value, "__dict__"):
        return value
    # Names with two underscores are a framework's own state, such as a Haystack component's connections.
    named = (
        (name, _settings(each, depth - 1))
        for name, each in vars(value).items()
        if not (name.startswith("__") or _IRRELEVANT.search(name))
    )
    return type(value), sorted(named, key=itemgetter(0))


# ---- Any splitter: its pieces, found in order

# What becomes of pieces that are not in the text.
Unplaced = Literal["mark", "refuse"]


@strategies.register("aligned")
@dataclass(frozen=True, kw_only=True)
class Aligned(Chunker):
    r"""The pieces that a function cuts a text into, with their places in it.

    Pieces are found by `Aligner.locate_in_order`: verbatim, up to white space, by letters and digits, by similarity;
    repeated text by its neighbours. An altered piece keeps the function's text and is `derived`. Metadata ``located``
    states how a piece was found, unless it occurs verbatim and once. A piece that is not in the text is `derived`,
    ``located`` is "unlocated", and its span is the text between its neighbours; adapters write no place for it.

    Cost: the function's own, and an index of each document, about 7 bytes per character.

    Attributes:
        split: from a text to its pieces in order, each a text, or a text and its metadata.
        similarity: see `Aligner`.
        unplaced: "mark" pieces that are not in the text, or "refuse" them.

    Raises:
        OptionError: `split` is not callable.
        DataError: `split` returned something other than texts, or a refused piece.

    >>> Aligned(split=str.splitlines, counter="words").chunk(Document("d", "one\ntwo\none"))[2].spans
    (Span(start=8, end=11),)
    """

    split: Callable[[str], Sequence[str | tuple[str, Mapping[str, Any]]]] | str = ""  # type: ignore[assignment]  # an option here, not the hook
    similarity: float | None = 0.8
    unplaced: Unplaced = "mark"

    @cached_property
    def fingerprint(self) -> str:
        """That of all options but `unplaced`, which changes no chunk."""
        twin = copy(self)
        names = [name for name in self.option_names() if name != "unplaced"]
        object.__setattr__(twin, "option_names", lambda: names)
        return super(Aligned, twin).fingerprint

    def validate(self) -> None:
        if not callable(self.split):
            raise OptionError(f"split is a function from a text to its pieces, got {self.split!r}")
        if not isinstance(self.split, NamedFunction):
            object.__setattr__(self, "split", NamedFunction(self.split))

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        pieces = list(self._pieces(source.text))
        if not pieces or not source.text:
            return []
        aligner = Aligner([Document("text", source.text)], similarity=self.similarity)
        places = aligner.locate_in_order([piece for piece, _ in pieces], document_id="text")
        drafts: list[Draft] = []
        for row, ((piece, metadata), found) in enumerate(zip(pieces, places, strict=True)):
            spans = found.spans
            if not spans and self.unplaced == "refuse":
                raise DataError(
                    f"the splitter gave a piece that stands nowhere in its text: {piece[:80]!r}; configure it "
                    'so that it keeps the text, or mark such pieces by unplaced="mark"'
                )
            if not spans:
                begin = max((span.end for draft in drafts[-1:] for span in draft.spans), default=0)
                end = next((each.spans[0].start for each in places[row + 1 :] if each.spans), len(source.text))
                begin = min(begin, len(source.text) - 1)
                spans = (Span(begin, max(begin + 1, end)),)
            verbatim = bool(found.spans) and self._text(source.text, spans) == piece
            located = {} if found.match == "exact" else {"located": found.match}
            drafts.append(Draft(spans, metadata | located, derived=None if verbatim else piece))
        return drafts

    def _pieces(self, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for given in self.split(text):  # type: ignore[operator]  # `validate` checked it
            piece, metadata = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
            if not isinstance(piece, str) or not isinstance(metadata, Mapping):
                raise DataError(
                    f"expected the splitter to give texts, or texts with their metadata, got {type(given).__name__}"
                )
            if piece:
                yield piece, dict(metadata)


# ---- Splitters whose rules are known: pieces, joined to chunks

Piece = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Joined(Chunker):
    """A strategy that joins pieces by its `separator`."""

    separator: ClassVar[str] = ""

    def _drafts(self, text: str, pieces: Sequence[Piece], rows: Iterable[Piece], *, strip: bool = False) -> list[Draft]:
        """The chunks of rows; a row is the index of its first piece and the one after its last."""
        found = (_joined(text, pieces[first:last], self.separator, strip=strip) for first, last in rows)
        return [draft for draft in found if draft]


def check_sizes(size: int, overlap: int, most: int) -> None:
    """Raise `OptionError` unless size >= 1 and 0 <= overlap <= `most`."""
    if size < 1 or not 0 <= overlap <= most:
        limit = "size" if most == size else "under size"
        raise OptionError(f"size is at least 1 and overlap 0 to {limit}, got {size} and {overlap}")


def _joined(text: str, pieces: Iterable[Piece], joiner: str, *, strip: bool) -> Draft | None:
    """A chunk of pieces joined by a string; None if nothing is left of it.

    Pieces separated by exactly the joiner share a span; others have one each. If the original's text differs from the
    joined spans, it is the chunk's derived text.

    >>> _joined("one, two,, three", [(0, 3), (5, 8)], ", ", strip=True).spans
    (Span(start=0, end=8),)
    >>> _joined("one, two,, three", [(5, 8), (11, 16)], ", ", strip=True).spans
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
        # Of pieces of white space alone the joiners stay.
        rows = list(_trimmed(text, rows)) or [(rows[0][1], rows[-1][0])]
    if not wanted:
        return None
    spans = tuple(Span(start, end) for start, end in rows)
    return Draft(spans) if joiner.join([span.slice(text) for span in spans]) == wanted else Draft(spans, derived=wanted)


def _trimmed(text: str, rows: list[Piece]) -> Iterator[Piece]:
    """The rows without white space ones, and without white space at both ends."""
    kept = [row for row in rows if not text[row[0] : row[1]].isspace()]
    for place, (start, end) in enumerate(kept):
        inner = trim(text, start, end)
        yield (inner[0] if place == 0 else start), (inner[1] if place == len(kept) - 1 else end)
