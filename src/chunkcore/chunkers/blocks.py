"""Strategies over blocks of a format: shared options, and the packer of whole blocks."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from chunkcore.boundaries.blocks import Block, lines
from chunkcore.boundaries.sentences import check_splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Span
from chunkcore.errors import OptionError
from chunkcore.options import check_ranges
from chunkcore.packing import join_small, split_to_maximum
from chunkcore.tokens import TokenizedText

_DEPTH = 100  # deeper blocks are cut as text


@dataclass(frozen=True, kw_only=True)
class BlockChunker(Chunker, ABC):
    """A strategy that packs the blocks of a format.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        minimum: a smaller chunk takes parts of the next block or joins a neighbour; ``0 <= minimum <= size``.
        maximum: no chunk's own text is over it; at least `size`. None: `size`.
        splitter: what cuts prose into sentences, as of `Sentence`.
    """

    size: int = 200
    minimum: int = 0
    maximum: int | None = None
    splitter: str | Callable[[str], Any] = "default"

    def validate(self) -> None:
        check_splitter(self.splitter, named=True)
        check_ranges(self, size=1, minimum=(0, "size"), maximum="size")

    @property
    def hard_maximum(self) -> int:
        return self.size if self.maximum is None else self.maximum


@dataclass(frozen=True, kw_only=True)
class HeadingChunker(BlockChunker, ABC):
    """A strategy over the blocks of a format that has headings.

    Attributes:
        heading_level: headings of level 1 to this begin a chunk, 0 to 6. With 0, none does.
    """

    heading_level: int = 6

    def validate(self) -> None:
        super().validate()
        if not 0 <= self.heading_level <= 6:
            raise OptionError(f"heading_level is 0 to 6, got {self.heading_level}")


class Packed(NamedTuple):
    """A chunk of blocks, `start` to `end`.

    Attributes:
        header: the range of the table header that it repeats.
        path: the headings or definitions around all of it.
        cut: strength of the cut before it: a section's is stronger than a list item's.
        size: its tokens.
    """

    start: int
    end: int
    header: tuple[int, int] | None
    path: tuple[str, ...]
    cut: tuple[int, int]
    size: int

    @property
    def spans(self) -> tuple[Span, ...]:
        """The header comes first."""
        span = Span(self.start, self.end)
        return (Span(*self.header), span) if self.header else (span,)


class _Unit(NamedTuple):
    """A block to pack: `after` is the end of the block before it, `joined` counts the white space between them."""

    block: Block
    after: int
    alone: int
    joined: int
    depth: int

    @property
    def is_last_resort(self) -> bool:
        """Cut only for the maximum, as a sentence is."""
        return self.block.whole or (self.block.parts is None and self.block.text == "words")


def pack_blocks(
    source: TokenizedText, blocks: Sequence[Block], chunker: BlockChunker, *, opening: int = 0, apart: bool = False
) -> list[Packed]:
    """Blocks in order, as many in a chunk as the target allows.

    A block over the target is cut into its inner blocks, a `whole` block only over the maximum. Blocks without inner
    blocks are cut into sentences or lines, then words, then graphemes. A leading block (a heading) stays with the next
    block if a piece of that fits. A chunk that begins inside a table repeats the table's header if it fits.

    Args:
        source: the text.
        blocks: they cover the text except white space.
        chunker: has the sizes, splitter and separator.
        opening: blocks of level 1 to this one begin a chunk.
        apart: the block after a cut block begins a chunk.
    """
    packed = _Packer(source, chunker, opening, apart=apart).pack(blocks)
    return _joined(packed, source, chunker) if chunker.minimum else packed


class _Packer:
    """State: the growing chunk (`units`, `size`, `header`), and the units after it, next one last (`waiting`)."""

    def __init__(self, source: TokenizedText, chunker: BlockChunker, opening: int, *, apart: bool) -> None:
        self.source = source
        self.chunker = chunker
        self.maximum = chunker.hard_maximum
        self.opening = opening
        self.apart = apart
        self.waiting: list[_Unit] = []
        self.units: list[_Unit] = []
        self.size = 0
        self.header: tuple[int, int] | None = None
        self.found: list[Packed] = []

    def pack(self, blocks: Sequence[Block]) -> list[Packed]:
        self._wait(blocks, 0, 0)
        while self.waiting:
            unit = self.waiting.pop()
            size, header = self._with(unit)
            if self._takes(unit, size):
                self.units.append(unit)
                self.size = size
                self.header = header
            elif self._is_open_to_parts(unit):
                self._wait(self._smaller(unit), unit.after, unit.depth + 1)
            else:
                self.waiting.append(unit)
                self._close()
            if self.units and not self.waiting:
                self._close()
        return self.found

    def _wait(self, blocks: Sequence[Block], after: int, depth: int) -> None:
        starts = np.array([block.start for block in blocks], dtype=np.int64)
        ends = np.array([block.end for block in blocks], dtype=np.int64)
        before = np.concatenate((np.array([after], dtype=np.int64), ends))[: len(ends)]
        both = self.source.counts(np.concatenate((starts, before)), np.concatenate((ends, ends))).tolist()
        alone, joined = both[: len(ends)], both[len(ends) :]
        units = zip(blocks, before.tolist(), alone, joined, strict=True)
        self.waiting.extend([_Unit(*unit, depth) for unit in units][::-1])

    @property
    def _is_bare(self) -> bool:
        return all(unit.block.leads for unit in self.units)

    def _opens(self, unit: _Unit) -> bool:
        return 0 < unit.block.level <= self.opening

    def _begins(self, unit: _Unit) -> bool:
        if self._opens(unit):
            return not self._is_bare
        return self.apart and bool(self.units) and unit.depth < self.units[0].depth

    def _with(self, unit: _Unit) -> tuple[int, tuple[int, int] | None]:
        """The chunk's approximate size with the unit, and the header it would repeat."""
        if self.units:
            return self.size + unit.joined, self.header
        header = unit.block.header
        if header and not (self.found and self.found[-1].spans[0].start > header[0]):  # or chunks were out of order
            size = _count(self.source, self.chunker, unit.block.start, unit.block.end, header)
            if size <= self.maximum:
                return size, header
        return unit.alone, None

    def _takes(self, unit: _Unit, size: int) -> bool:
        if self._begins(unit):
            return False
        if size <= self.chunker.size:
            return True
        keeps = unit.is_last_resort or unit.alone <= self.chunker.size
        return keeps and (size <= self.maximum or self._is_code_point_over(unit)) and self._is_bare

    def _is_code_point_over(self, unit: _Unit) -> bool:
        """Nothing smaller can be had of a single code point: it is a chunk, though over the maximum."""
        return unit.alone > self.maximum and unit.block.end - unit.block.start == 1

    def _is_open_to_parts(self, unit: _Unit) -> bool:
        """Cut the unit for the growing chunk: one that is bare or under the minimum."""
        if self._begins(unit):
            return False
        if unit.is_last_resort and (unit.alone <= self.maximum or self._is_code_point_over(unit)):
            return False
        return self._is_bare or self.size < self.chunker.minimum

    def _smaller(self, unit: _Unit) -> Sequence[Block]:
        block = unit.block
        parts = block.parts() if block.parts and unit.depth < _DEPTH else None
        if parts:
            return parts
        if block.text == "sentences":
            text = self.source.text[block.start : block.end]
            ranges = (sentence_ranges(text, self.chunker.splitter) + block.start).tolist()
        elif block.text == "lines":
            ranges = lines(self.source.text, block.start, block.end)
        else:
            ranges = split_to_maximum(self.source, block.start, block.end, self.maximum)
        path, leads, level, header = block.path, block.leads, block.level, block.header
        return [
            Block(start=start, end=end, path=path, leads=leads, level=level, header=header, text="words")
            for start, end in ranges
        ]

    def _close(self) -> None:
        """Make a chunk of the units; surplus units and leading ones at the end wait again."""
        keep = self._without_leads(len(self.units)) if self.waiting else len(self.units)
        size, step = self._size(keep), 1
        while keep > 1 and size > self.maximum:
            keep = self._without_leads(max(1, keep - step))
            size, step = self._size(keep), 2 * step
        first, last = self.units[0], self.units[keep - 1].block
        paths = [unit.block.path for unit in self.units[:keep] if not unit.block.leads]
        path = _common(paths or [unit.block.path for unit in self.units[:keep]])
        cut = (self.opening + 1 - first.block.level if self._opens(first) else 0, -first.depth)
        self.found.append(Packed(first.block.start, last.end, self.header, path, cut, size))
        self.waiting.extend(self.units[keep:][::-1])
        self.units, self.size, self.header = [], 0, None

    def _without_leads(self, keep: int) -> int:
        """How many of the first units remain without leading ones at their end; all, if all lead."""
        left = keep
        while left and self.units[left - 1].block.leads:
            left -= 1
        return left or keep

    def _size(self, keep: int) -> int:
        return _count(self.source, self.chunker, self.units[0].block.start, self.units[keep - 1].block.end, self.header)


def _joined(packed: list[Packed], source: TokenizedText, chunker: BlockChunker) -> list[Packed]:
    """Chunks under the minimum join the neighbour across the weaker cut."""

    def together(first: int, last: int) -> int:
        return _count(source, chunker, packed[first].start, packed[last - 1].end, packed[first].header)

    sizes, cuts = [chunk.size for chunk in packed], [chunk.cut for chunk in packed]
    joined = []
    for first, last in join_small(sizes, cuts, chunker.minimum, chunker.hard_maximum, together):
        path = _common([chunk.path for chunk in packed[first:last]])
        joined.append(packed[first]._replace(end=packed[last - 1].end, path=path))
    return joined


def _count(source: TokenizedText, chunker: BlockChunker, start: int, end: int, header: tuple[int, int] | None) -> int:
    if header is None:
        return source.count(start, end)
    text = source.text
    return source.counter.count(chunker.separator.join((text[slice(*header)], text[start:end])))


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False)))
