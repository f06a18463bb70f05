"""LangChain's splitters on offsets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from langchain_text_splitters import (
    CharacterTextSplitter,
    RecursiveCharacterTextSplitter,
    TextSplitter,
    TokenTextSplitter,
)

from chunkadapters.configuration import counter_of
from chunkadapters.exact import Aligned, Unplaced, joined_drafts
from chunkadapters.langchain.splitter import ChunkcoreTextSplitter
from chunkcore.boundaries.separators import Keep
from chunkcore.chunkers import Chunker, Draft, FixedToken, Recursive, chunkers
from chunkcore.errors import OptionError, warn_user
from chunkcore.options import Bounds
from chunkcore.packing import pack
from chunkcore.tokens import TiktokenCounter, TokenizedText

_KEEPS: dict[bool | str, Keep] = {"end": "end", "start": "start", True: "start", False: "drop"}
_LOOK_AROUND = ("(?=", "(?<!", "(?<=", "(?!")


class ExactWarning(UserWarning):
    """The original loses text, or writes text of its own: here the document's own text stands there."""


def exact(splitter: Any, unplaced: Unplaced) -> ChunkcoreTextSplitter:
    """See `chunkadapters.exact.exact`."""
    if isinstance(splitter, ChunkcoreTextSplitter):
        return splitter
    if isinstance(splitter, TextSplitter):
        return ChunkcoreTextSplitter(_of_texts(splitter, unplaced))
    if hasattr(splitter, "split_json") or not hasattr(splitter, "split_text"):
        raise OptionError(
            f"expected a splitter of texts, which have places in them; {type(splitter).__name__} is none"
        )
    split = partial(_documents, splitter)
    return ChunkcoreTextSplitter(Aligned(split=split, unplaced=unplaced, counter="characters"))


def _of_texts(splitter: Any, unplaced: Unplaced) -> Chunker:
    counter = counter_of(splitter._length_function)
    sizes = {"size": splitter._chunk_size, "overlap": splitter._chunk_overlap}
    if _cuts_like(splitter, TokenTextSplitter) and not splitter._allowed_special:
        return LangChainToken(counter=TiktokenCounter(splitter._tokenizer.name), **sizes)
    keep = _KEEPS[splitter._keep_separator]
    is_recursive = _cuts_like(splitter, RecursiveCharacterTextSplitter)
    separators = getattr(splitter, "_separators", None) or [getattr(splitter, "_separator", "")]
    is_regex = getattr(splitter, "_is_separator_regex", False)
    is_lossy = is_regex and any(map(_is_lossy, separators))
    if keep == "drop" and is_lossy:
        warn_user(
            f"{type(splitter).__name__} drops what a regular expression matches, and writes the expression or nothing "
            "between words. Here the document's own text stands there, so that chunks can be a little longer",
            ExactWarning,
        )
        keep = "end" if is_recursive else keep
    options = {**sizes, "counter": counter, "keep": keep, "regex": is_regex}
    options["strip"] = splitter._strip_whitespace
    if is_recursive and keep != "drop":
        return LangChainRecursive(separators=tuple(separators), **options)
    if _cuts_like(splitter, CharacterTextSplitter):
        return LangChainCharacter(separator_text=splitter._separator, **options)
    return Aligned(split=splitter.split_text, unplaced=unplaced, counter=counter)


def _is_lossy(expression: str) -> bool:
    """Whether the original, which joins pieces by the expression, writes text that is not the document's."""
    return not expression.startswith(_LOOK_AROUND) and not re.fullmatch(expression, expression)


def _documents(splitter: Any, text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(document.page_content, document.metadata) for document in splitter.split_text(text)]


def _cuts_like(splitter: Any, cls: type[TextSplitter]) -> bool:
    """Whether it is of this class, with no overridden cutting."""
    ways = ("split_text", "_split_text", "_merge_splits", "_join_docs")
    return isinstance(splitter, cls) and all(
        getattr(type(splitter), way, None) is getattr(cls, way, None) for way in ways
    )


@chunkers.register("langchain_recursive")
@dataclass(frozen=True, kw_only=True)
class LangChainRecursive(Recursive):
    """LangChain's RecursiveCharacterTextSplitter on offsets: `Recursive`, but HTML is cut with its tags."""

    cuts_source: ClassVar[bool] = True


@chunkers.register("langchain_token")
@dataclass(frozen=True, kw_only=True)
class LangChainToken(FixedToken):
    """LangChain's TokenTextSplitter on offsets: `FixedToken`, but HTML is cut with its tags."""

    cuts_source: ClassVar[bool] = True


@chunkers.register("langchain_character")
@dataclass(frozen=True, kw_only=True)
class LangChainCharacter(Chunker):
    r"""LangChain's CharacterTextSplitter on offsets: pieces between one separator, merged up to a size. Linear.

    A piece over `size` stays whole. Dropped separators join the pieces of a chunk; several between two pieces give the
    chunk several spans. Where a
    regular expression is dropped that does not match its own text, the document's text stands between the pieces; the
    original writes the expression there.

    Attributes:
        size: the target, in the counter's unit.
        overlap: the most that neighbouring chunks share, in whole pieces.
        separator_text: between pieces; "" for single characters.
        keep: separators go to the "start" of the next piece, the "end" of the last one, or are "drop"ped.
        regex: `separator_text` is a regular expression.
        strip: strip chunks, and drop chunks of white space.

    Raises `OptionError`: an option is out of range.

    >>> chunker = LangChainCharacter(size=9, overlap=0, separator_text=",", counter="characters")
    >>> [[(span.start, span.end) for span in spans] for spans in chunker.spans("one,two,,three")]
    [[(0, 7)], [(9, 14)]]
    """

    bounds = Bounds(size=1, overlap=(0, "size"))
    cuts_source: ClassVar[bool] = True

    size: int = 4000
    overlap: int = 200
    separator_text: str = "\n\n"
    keep: Keep = "drop"
    regex: bool = False
    strip: bool = True

    def validate(self) -> None:
        self._splitter()

    def _splitter(self) -> Recursive:
        """What cuts at the separator. Raises `OptionError`: the separator is no regular expression."""
        return Recursive(separators=(self.separator_text,), keep=self.keep, regex=self.regex)

    def cut(self, source: TokenizedText) -> list[Draft]:
        places, _ = self._splitter().pieces(
            source, self.separator_text, source.parts, self.keep, is_last=True
        )
        sizes = source.counts(places.starts, places.ends)
        is_around = self.regex and self.separator_text.startswith(_LOOK_AROUND)
        joiner = self.separator_text if self.keep == "drop" and not is_around else ""
        gap = source.counter.count(joiner)
        sums = np.append(0, np.cumsum(sizes + gap))
        packed = pack(sums, self.size, self.overlap, gap=gap)
        rows = list(zip(places.starts.tolist(), places.ends.tolist(), strict=True))
        if self.regex and joiner and _is_lossy(joiner):
            # The document's own text stands between the pieces of a chunk.
            rows = [(rows[first][0], rows[last - 1][1]) for first, last in packed]
            packed = list(pairwise(range(len(rows) + 1)))
        return joined_drafts(source.text, rows, packed, joiner, strip=self.strip)
