"""Chunks drawn on their text, as SVG: one colour a chunk, readable in light and dark, with any font."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from textwrap import wrap

from chunkcore import Chunk, Span

__all__ = ["DARK", "LIGHT", "Strip", "draw", "draw_overview"]

COLUMNS = 72
CHARACTER = 7.0  # what a character is wide: each row is told its length, whatever the font
ROW = 20.0
BAND = 17.0
LEFT = 62.0
WIDTH = 800.0
LEGEND = LEFT + COLUMNS * CHARACTER + 18
LEGEND_COLUMNS = 34
TOP = 52.0

# Ink, quiet ink, paper, frame; then a band and its edge for each colour.
LIGHT = (
    ("#1f2328", "#59636e", "#ffffff", "#d1d9e0"),
    (
        ("#cfe3f7", "#1f6fb2"),
        ("#fde0b5", "#a86200"),
        ("#cdebd3", "#1f7a3d"),
        ("#f7d3e4", "#b03a7a"),
        ("#e2d9f7", "#6a4bb8"),
        ("#f3eaa6", "#7d6900"),
        ("#c4e9ea", "#0e757a"),
        ("#f6d0c4", "#ad4526"),
    ),
)
DARK = (
    ("#e6edf3", "#9198a1", "#0d1117", "#3d444d"),
    (
        ("#173a5e", "#6db3f2"),
        ("#5a3a08", "#f0a848"),
        ("#15472a", "#62c885"),
        ("#5a1f43", "#ef86bd"),
        ("#3b2a70", "#a88cf0"),
        ("#4a4106", "#d9c645"),
        ("#0d4548", "#4fc3c7"),
        ("#5c2a1a", "#f08a68"),
    ),
)
COLOURS = len(LIGHT[1])


@dataclass(frozen=True)
class Band:
    """Chunks of the same place: one, or several that a model wrote from one passage.

    Attributes:
        chunks: what is drawn as one.
        first: the number of the first of them, from 1.
        colour: which of the colours.
    """

    chunks: tuple[Chunk, ...]
    first: int
    colour: int

    @property
    def label(self) -> str:
        last = self.first + len(self.chunks) - 1
        return f"{self.first}" if last == self.first else f"{self.first}–{last}"

    @property
    def spans(self) -> tuple[Span, ...]:
        return self.chunks[0].spans


@dataclass(frozen=True)
class Strip:
    """One line of the overview: a chunker's label and its chunks."""

    label: str
    chunks: Sequence[Chunk]


def draw(text: str, chunks: Sequence[Chunk], label: str) -> str:
    """The text with its chunks as bands of colour, numbered at the left, told at the right.

    Spans of one chunk have one colour; where chunks overlap, each has its share of the height.

    Args:
        text: what the chunks are of.
        chunks: in order.
        label: what made them, for the first line.
    """
    rows = list(_rows(text))
    bands = _bands(chunks)
    parts = [*_marks(rows, bands), *_lines(text, rows), *_ticks(rows, bands)]
    legend, end = _legend(rows, bands)
    height = max(TOP + len(rows) * ROW, end) + 14
    counts = [chunk.token_count for chunk in chunks]
    told = f"{len(chunks)} chunks, {min(counts)} to {max(counts)} tokens" if counts else "no chunks"
    head = [
        f'<text class="ink head" x="{LEFT:g}" y="29">{escape(label)}</text>',
        f'<text class="quiet" x="{WIDTH - 18:g}" y="29" text-anchor="end">{told}</text>',
        f'<path class="rule" d="M18 41H{WIDTH - 18:g}"/>',
    ]
    about = "; ".join(
        f"{band.label}: {', '.join(f'{span.start} to {span.end}' for span in band.spans)}"
        for band in bands
    )
    return _svg(
        height,
        f"{label}: {told}",
        f"Chunks and their characters: {about}",
        [*head, *parts, *legend],
    )


def draw_overview(text: str, strips: Sequence[Strip]) -> str:
    """Many ways to cut one text, a line each: from left to right its characters, and the chunks in colour."""
    left, right, top, pitch = 190.0, WIDTH - 70, 78.0, 24.0
    scale = (right - left) / max(1, len(text))
    parts = [
        '<text class="ink head" x="18" y="29">One text, cut in every way</text>',
        f'<text class="quiet" x="{WIDTH - 18:g}" y="{top - 12:g}" text-anchor="end">chunks</text>',
    ]
    height = top + len(strips) * pitch + 16
    for number, (title, at) in enumerate(_headings(text)):
        x, y = (
            left + at * scale,
            top - 12 - 15 * ((number + 1) % 2),
        )  # on two lines in turn: no title meets the next one's
        parts.append(f'<path class="rule" d="M{x:.1f} {y - 11:g}V{height - 14:g}"/>')
        parts.append(f'<text class="quiet small" x="{x + 4:.1f}" y="{y:g}">{escape(title)}</text>')
    for number, strip in enumerate(strips):
        y = top + number * pitch
        parts.append(f'<text class="ink" x="18" y="{y + 12:g}">{escape(strip.label)}</text>')
        parts.append(
            f'<text class="quiet" x="{WIDTH - 18:g}" y="{y + 12:g}" text-anchor="end">{len(strip.chunks)}</text>'
        )
        for start, end, share, of, band in _pieces(_bands(strip.chunks), 0, len(text)):
            x, width, part = left + start * scale, (end - start) * scale, 16 / of
            parts.append(
                f'<rect class="b{band.colour} edge" x="{x:.1f}" y="{y + share * part:.1f}" width="{width:.1f}" '
                f'height="{part:.1f}"/>'
            )
    names = ", ".join(f"{strip.label}: {len(strip.chunks)} chunks" for strip in strips)
    return _svg(height, "One text, cut in every way", names, parts)


def _rows(text: str) -> Iterator[tuple[int, int]]:
    """Where each row of the picture begins and ends: the text's lines, the long ones broken after spaces."""
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line.rstrip("\r\n"))
        place = start
        while end - place > COLUMNS:
            cut = text.rfind(" ", place, place + COLUMNS) + 1 or place + COLUMNS
            yield place, cut
            place = cut
        yield place, end
        start += len(line)


def _bands(chunks: Sequence[Chunk]) -> list[Band]:
    found: list[Band] = []
    for _, group in groupby(chunks, key=lambda chunk: (chunk.spans, chunk.derived)):
        same = tuple(group)
        first = found[-1].first + len(found[-1].chunks) if found else 1
        found.append(Band(same, first, len(found) % COLOURS))
    return found


def _pieces(
    bands: Sequence[Band], start: int, end: int
) -> Iterator[tuple[int, int, int, int, Band]]:
    """What is drawn between two places: start, end, which share of the height, of how many, and whose."""
    here = [
        (max(span.start, start), min(span.end, end), band)
        for band in bands
        for span in band.spans
        if span.start < end and span.end > start
    ]
    edges = sorted({edge for begin, stop, _ in here for edge in (begin, stop)})
    for begin, stop in pairwise(edges):
        over = [band for low, high, band in here if low <= begin and stop <= high]
        for share, band in enumerate(over):
            yield begin, stop, share, len(over), band


def _marks(rows: Sequence[tuple[int, int]], bands: Sequence[Band]) -> Iterator[str]:
    """The bands behind the text; where a blank line is in a chunk, a short one says so."""
    for number, (start, end) in enumerate(rows):
        y = TOP + number * ROW
        if start == end:
            inside = [
                band for band in bands if any(span.start < start < span.end for span in band.spans)
            ]
            for share, band in enumerate(inside):
                part = ROW / len(inside)
                yield (
                    f'<rect class="b{band.colour}" x="{LEFT:g}" y="{y + share * part - 1:g}" width="8" '
                    f'height="{part:g}"/>'
                )
        for begin, stop, share, of, band in _pieces(bands, start, end):
            x, part = LEFT + (begin - start) * CHARACTER, BAND / of
            yield (
                f'<rect class="b{band.colour}" x="{x:g}" y="{y + share * part:g}" '
                f'width="{(stop - begin) * CHARACTER:g}" height="{part:g}"/>'
            )


def _lines(text: str, rows: Sequence[tuple[int, int]]) -> Iterator[str]:
    for number, (start, end) in enumerate(rows):
        line = text[start:end].rstrip()
        if line:
            yield (
                f'<text class="ink" x="{LEFT:g}" y="{TOP + number * ROW + 12.5:g}" '
                f'textLength="{len(line) * CHARACTER:g}" lengthAdjust="spacingAndGlyphs">'
                f"{escape(line, quote=False)}</text>"
            )


def _ticks(rows: Sequence[tuple[int, int]], bands: Sequence[Band]) -> Iterator[str]:
    """Where each span begins an edge, and its chunk's number at the left; where a segment begins a dotted line."""
    taken: dict[int, float] = {}
    for band in bands:
        numbered = set()
        for span in band.spans:
            row, x = _place(rows, span.start)
            y = TOP + row * ROW
            yield f'<path class="e{band.colour}" d="M{x - 1:g} {y - 1:g}v{BAND + 2:g}"/>'
            if row in numbered:
                continue
            numbered.add(row)
            width = 8 + 7 * len(band.label)
            right = taken.get(row, LEFT - 7)
            taken[row] = right - width - 3
            yield (
                f'<rect class="f{band.colour}" x="{right - width:g}" y="{y + 1:g}" width="{width}" height="15" rx="4"/>'
                f'<text class="number" x="{right - width / 2:g}" y="{y + 12.5:g}">{band.label}</text>'
            )
        for segment in band.chunks[0].segments[1:]:
            row, x = _place(rows, min(span.start for span in segment))
            yield f'<path class="e{band.colour} dotted" d="M{x - 2:g} {TOP + row * ROW - 1:g}v{BAND + 2:g}"/>'


def _place(rows: Sequence[tuple[int, int]], at: int) -> tuple[int, float]:
    """The row of a character, and where in it; one that no row shows, such as a line's end, begins the next row."""
    row = next((number for number, (_, end) in enumerate(rows) if at < end), len(rows) - 1)
    return row, LEFT + max(0, at - rows[row][0]) * CHARACTER


def _legend(rows: Sequence[tuple[int, int]], bands: Sequence[Band]) -> tuple[list[str], float]:
    """What is known of each chunk, beside where it begins; and where the list ends."""
    parts: list[str] = []
    free = TOP
    for band in bands:
        y = max(free, TOP + _place(rows, band.chunks[0].start)[0] * ROW)
        parts.append(
            f'<text class="e{band.colour} label" x="{LEGEND:g}" y="{y + 12.5:g}">{band.label}</text>'
        )
        x = LEGEND + 10 + 7.5 * len(band.label)
        parts.append(f'<text class="quiet" x="{x:g}" y="{y + 12.5:g}">{escape(_size(band))}</text>')
        y += 16
        for line in _details(band):
            parts.append(
                f'<text class="quiet small" x="{LEGEND:g}" y="{y + 11:g}">{escape(line, quote=False)}</text>'
            )
            y += 14
        free = y + 4
    return parts, free


def _size(band: Band) -> str:
    counts = [chunk.token_count for chunk in band.chunks]
    tokens = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
    spans = f", {len(band.spans)} spans" if len(band.spans) > 1 else ""
    segments = f", {count} segments" if (count := len(band.chunks[0].segments)) > 1 else ""
    return f"{tokens} tokens{spans}{segments}"


def _details(band: Band) -> list[str]:
    """What was written about the chunks, or of them, in short lines."""
    told = []
    for number, chunk in enumerate(band.chunks, start=band.first):
        if chunk.derived:
            told.append(f"{number}: {chunk.text}")
        if chunk.context:
            told.append(f"context: {chunk.context}")
        if "section_title" in chunk.metadata:
            told.append(f"title: {chunk.metadata['section_title']}")
        told += [
            " › ".join(chunk.metadata[key])
            for key in ("headings", "scope")
            if chunk.metadata.get(key)
        ]
    return [line for each in told for line in wrap(each, LEGEND_COLUMNS, subsequent_indent="  ")]


def _headings(text: str) -> Iterator[tuple[str, int]]:
    """The titles of a Markdown text's sections, without the document's own, and where they begin."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            yield line.strip("# \n"), at
        at += len(line)


def _svg(height: float, title: str, about: str, parts: Sequence[str]) -> str:
    frame = f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1:g}" height="{height - 1:g}" rx="8"/>'
    body = "\n".join([frame, *parts])
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" \
height="{height:g}" role="img" aria-labelledby="title about">
<title id="title">{escape(title)}</title>
<desc id="about">{escape(about)}</desc>
<style>
text {{ font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }}
.head, .label {{ font-weight: 600 }}
.quiet {{ font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }}
.small {{ font-size: 11px }}
.number {{ font: 600 11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; text-anchor: middle }}
path {{ stroke-width: 2; fill: none }}
.dotted {{ stroke-dasharray: 3 2; stroke-width: 3 }}
.paper, .rule {{ stroke-width: 1 }}
{_style(LIGHT)}
@media (prefers-color-scheme: dark) {{
{_style(DARK)}
}}
</style>
{body}
</svg>
"""


def _style(scheme: tuple[tuple[str, str, str, str], tuple[tuple[str, str], ...]]) -> str:
    (ink, quiet, paper, frame), colours = scheme
    rules = [
        f".ink {{ fill: {ink} }} .quiet {{ fill: {quiet} }} .number {{ fill: {paper} }}",
        f".paper {{ fill: {paper}; stroke: {frame} }} .rule {{ stroke: {frame} }} .edge {{ stroke: {paper} }}",
    ]
    for number, (band, edge) in enumerate(colours):
        rules.append(
            f".b{number} {{ fill: {band} }} .f{number} {{ fill: {edge} }} .e{number} {{ stroke: {edge} }} "
            f".label.e{number} {{ fill: {edge}; stroke: none }}"
        )
    return "\n".join(rules)
