"""PDF: text in reading order, page marks with boxes of words, headings, tables. By pypdfium2.

PDFium is native code that reads strangers' files, and one page may unpack to gigabytes. So it runs in a process of its
own (``python -m chunkcore.reading.pdf``), with limits to memory and to the time of a page, that sends page by page.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

from chunkcore.document import Document, Mark, Span, pack_boxes
from chunkcore.errors import MissingExtraError
from chunkcore.reading.base import Reader, Reading, UnreadError, is_utf8, readers

SECONDS = 60.0  # of one page
MEMORY = 2 * 1024**3  # bytes
_CHARACTERS = 2_000_000  # of a page
_HEADINGS = 10_000
_PAGES = 100_000


@readers.register("PDF")
class Pdf(Reader):
    """A PDF: lines as they are printed, columns one after another, a blank line between paragraphs.

    Marks: ``page`` with ``number``, ``label``, ``width``, ``height`` and ``boxes``; ``heading`` for titles of the
    outline that stand on their page, or without an outline for short lines in larger letters than most of the text;
    ``table`` for three or more lines of equally many cells (a footer's, too). Pages without text, such as scanned
    ones, keep their numbers and are told in a note. Memory grows with the text and some 10 bytes a word, not with the
    file.
    """

    endings = ("pdf",)
    magic = b"%PDF-"

    def recognises(self, head: bytes) -> bool:
        # Some begin with other bytes. A text that speaks of the mark is UTF-8, which a PDF's second line is not.
        begin = head.find(self.magic)
        return begin >= 0 and (not head[:begin].strip() or not is_utf8(head))

    def read(self, path: Path, name: str) -> Reading:
        if find_spec("pypdfium2") is None:
            missing = MissingExtraError.of("pypdfium2", "files", "read PDF")
            raise UnreadError(path, f"cannot be read: {missing}") from missing
        texts: list[str] = []
        marks: list[Mark] = []
        headings: list[Mark] = []
        lines: list[_Printed] = []
        without: list[int] = []
        told: dict[str, Any] = {}
        size = 0
        for row in _rows(path):
            if "pages" in row:
                told = row
                continue
            text, number = row["text"], row["number"]
            if not text:
                without.append(number)
                continue
            joint = _joint(texts[-1], text) if texts else ""
            start = size + len(joint)
            texts += [joint, text]
            size = start + len(text)
            data = {"number": number, "width": row["width"], "height": row["height"], "boxes": row["boxes"]}
            marks.append(Mark("page", Span(start, size), data | ({"label": row["label"]} if row["label"] else {})))
            headings += _headings(text, start, told["outline"].get(str(number), ()))
            lines += [_Printed(start + begin, start + end, *others) for begin, end, *others in row["lines"]]
        if not texts:
            count = told.get("pages", 0)
            raise UnreadError(
                path, f"has no text on its {count:,} pages: {_OCR}" if count > 1 else f"has no text: {_OCR}"
            )
        metadata = {"format": "prose", **told["metadata"]}
        notes = [f"no text on {_listed(without)} of its {told['pages']:,} pages: {_OCR}"] if without else []
        headings = headings or list(_large(lines))
        return Reading(Document(name, "".join(texts), metadata, (*marks, *headings, *_tables(lines))), tuple(notes))


_OCR = "they may be pictures; recognise their text first (OCR)"


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    more = f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else ""
    return f"page{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _joint(before: str, after: str) -> str:
    """What joins two blocks or pages: a line end within a sentence, else a blank line."""
    goes_on = not before.rstrip().endswith((".", "!", "?", ":", "。", "”", '"')) and after.lstrip()[:1].islower()
    return "\n" if goes_on else "\n\n"


def _headings(text: str, start: int, titles: Sequence[tuple[int, str]]) -> Iterator[Mark]:
    place = 0
    for level, title in titles:
        words = [re.escape(word) for word in title.split()]
        found = re.compile(r"\s+".join(words), re.IGNORECASE).search(text, place) if words else None
        if found:
            place = found.end()
            yield Mark("heading", Span(start + found.start(), start + place), {"level": level})


class _Printed(NamedTuple):
    """A printed line: its place in the document, the height of its letters, and its cells."""

    start: int
    end: int
    height: float
    cells: int

    @property
    def size(self) -> int:
        return self.end - self.start


_LARGER, _LONGEST_TITLE = 1.15, 200
_SHORTEST_TITLE = 4  # letters; a drop cap and a page number have fewer


def _large(lines: Sequence[_Printed]) -> Iterator[Mark]:
    """Short lines in larger letters than most of the text; the largest are level 1."""
    letters: dict[float, int] = {}
    for line in lines:
        letters[line.height] = letters.get(line.height, 0) + line.size
    usual = max(letters, key=lambda height: letters[height], default=0.0)
    found: list[list[_Printed]] = []
    for line in lines:
        if line.height < _LARGER * usual or line.cells > 1 or line.size < _SHORTEST_TITLE or not usual:
            continue
        before = found[-1] if found else None
        if before and before[-1].end + 1 == line.start and before[-1].height == line.height:
            before.append(line)  # a title of several lines
        else:
            found.append([line])
    titles = [each for each in found if each[-1].end - each[0].start <= _LONGEST_TITLE][:_HEADINGS]
    levels = {height: level for level, height in enumerate(sorted({-each[0].height for each in titles}), start=1)}
    for each in titles:
        yield Mark("heading", Span(each[0].start, each[-1].end), {"level": levels[-each[0].height]})


def _tables(lines: Sequence[_Printed]) -> Iterator[Mark]:
    for cells, group in groupby(lines, key=lambda line: line.cells):
        rows = list(group)
        if cells > 1 and len(rows) > 2:
            yield Mark("table", Span(rows[0].start, rows[-1].end))


# ---- The process, seen from here

_idle: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


def _started() -> subprocess.Popen[bytes]:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.poll() is None:
                return worker
    paths = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(  # our own module, in this interpreter
        [sys.executable, "-m", "chunkcore.reading.pdf"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _stop(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):
            assert pipe is not None
            pipe.close()
    worker.wait()


@atexit.register
def _stop_idle() -> None:
    with _lock:
        while _idle:
            _stop(_idle.pop())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """What the process says of the file: first of the whole, then of each page."""
    worker = _started()
    ended = False
    try:
        assert worker.stdin is not None
        assert worker.stdout is not None
        with suppress(OSError):  # it died; reading says so
            worker.stdin.write(json.dumps(str(path.absolute())).encode() + b"\n")
            worker.stdin.flush()
        page = 0
        while True:
            timer = threading.Timer(SECONDS, worker.kill)
            timer.daemon = True
            timer.start()
            line = worker.stdout.readline()
            timer.cancel()
            row = json.loads(line) if line.endswith(b"\n") else None
            if row is None:
                limits = f"{SECONDS:.0f} s and {MEMORY / 1024**3:.0f} GB of memory"
                raise UnreadError(path, f"cannot be read within {limits} at page {page + 1:,}: take it out")
            if "error" in row:
                ended = True
                raise UnreadError(path, row["error"])
            if "end" in row:
                ended = True
                return
            page = row.get("number", page)
            yield row
    finally:
        if ended:
            with _lock:
                _idle.append(worker)
        else:
            _stop(worker)


# ---- The process itself


def _serve() -> None:
    """Read the files that standard input names, one a line, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    with suppress(ImportError, OSError, ValueError):  # Windows has no limits, and macOS refuses this one
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        for row in _told(json.loads(line)):
            output.write(json.dumps(row).encode("ascii") + b"\n")
            output.flush()


def _told(path: str) -> Iterator[dict[str, Any]]:
    import pypdfium2

    try:
        source: Any = path
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:  # PDFium takes UTF-8 names
            source = Path(path).read_bytes()
        pdf = pypdfium2.PdfDocument(source)
    except (pypdfium2.PdfiumError, OSError) as error:
        is_locked = "password" in str(error).lower() or "security" in str(error).lower()
        locked = "is encrypted: remove its password, or take it out"
        yield {"error": locked if is_locked else "is no PDF, or is broken: mend it, or take it out"}
        return
    try:
        if len(pdf) > _PAGES:
            yield {"error": f"has {len(pdf):,} pages, over {_PAGES:,}: split it, or take it out"}
            return
        named = {key.lower(): pdf.get_metadata_value(key).strip()[:1000] for key in ("Title", "Author")}
        metadata = {key: _clean(value) for key, value in named.items() if value}
        yield {"pages": len(pdf), "metadata": metadata, "outline": _outline(pdf)}
        for number in range(len(pdf)):
            yield {"number": number + 1, **_page_row(pdf, number)}
        yield {"end": True}
    finally:
        pdf.close()


def _outline(pdf: Any) -> dict[int, list[tuple[int, str]]]:
    from pypdfium2 import PdfiumError

    found: dict[int, list[tuple[int, str]]] = {}
    with suppress(PdfiumError, ValueError):
        for count, mark in enumerate(pdf.get_toc()):
            target = mark.get_dest()
            page = None if target is None else target.get_index()
            if count == _HEADINGS:
                break
            if page is not None and (title := mark.get_title().strip()[:300]):
                found.setdefault(page + 1, []).append((mark.level + 1, _clean(title)))
    return found


def _page_row(pdf: Any, number: int) -> dict[str, Any]:
    from pypdfium2 import PdfiumError

    row: dict[str, Any] = {"text": "", "label": "", "width": 0.0, "height": 0.0, "boxes": "", "lines": []}
    try:
        page = pdf.get_page(number)
    except PdfiumError:
        return row  # a page that cannot be read has no text
    try:
        row["width"], row["height"] = (round(each, 2) for each in page.get_size())
        with suppress(PdfiumError):
            row["label"] = _clean(pdf.get_page_label(number))[:40]
        words = list(_words(page))
        row["text"], boxes, row["lines"] = _laid_out(words)
        row["boxes"] = pack_boxes(boxes, row["width"], row["height"])
    finally:
        page.close()
    return row


def _clean(text: str) -> str:
    """Without what JSON and terminals cannot show."""
    return "".join(each for each in text if each.isprintable() or each in "\t\n")


class _Word(NamedTuple):
    """A word, and its box in points from the page's top left; `begins` a line of PDFium's."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    begins: bool = False

    @property
    def height(self) -> float:
        return max(self.bottom - self.top, 1.0)


_HYPHENS = {0x02: "-", 0xFFFE: "-", 0xAD: "-"}  # PDFium's mark of a hyphen at a line's end, and soft ones


def _words(page: Any) -> Iterator[_Word]:
    from pypdfium2 import raw

    handle = page.get_textpage()
    try:
        text_page = handle.raw
        count = min(raw.FPDFText_CountChars(text_page), _CHARACTERS)
        box = raw.FS_RECTF()
        placed = _placed(page)
        letters: list[str] = []
        edges: list[tuple[float, float, float, float]] = []
        begins = True

        def word() -> _Word:
            text = "".join(letters).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            corners = [placed(*edge) for edge in edges] or [(0.0, 0.0, 0.0, 0.0)]
            letters.clear()
            edges.clear()
            return _Word(text, *_hull(corners), begins)

        last = -1
        for index in range(count + 1):
            code = raw.FPDFText_GetUnicode(text_page, index) if index < count else 0x20
            letter = _HYPHENS.get(code) or (chr(code) if code < 0x110000 else "\ufffd")
            if letter.isspace() or code == 0:
                if letters:
                    if last > -1 and raw.FPDFText_GetLooseCharBox(text_page, last, ctypes.byref(box)):
                        edges.append((box.left, box.bottom, box.right, box.top))
                    yield word()
                    begins = False
                if letter in "\r\n":
                    begins = True
                continue
            if not (letter.isprintable() or code >= 0xD800):
                continue
            if not letters and raw.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(box)):
                edges.append((box.left, box.bottom, box.right, box.top))
            letters.append(letter)
            last = index
    finally:
        handle.close()


def _hull(boxes: Iterable[tuple[float, float, float, float]]) -> tuple[float, float, float, float]:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _placed(page: Any) -> Any:
    """A function from a box in the page's own units to left, top, right, bottom as the page is shown."""
    left, bottom, right, top = page.get_cropbox()
    turn = page.get_rotation() % 360

    def shown(x0: float, y0: float, x1: float, y1: float) -> tuple[float, float, float, float]:
        if turn == 90:
            return y0 - bottom, x0 - left, y1 - bottom, x1 - left
        if turn == 180:
            return right - x1, y0 - bottom, right - x0, y1 - bottom
        if turn == 270:
            return top - y1, right - x1, top - y0, right - x0
        return x0 - left, top - y1, x1 - left, top - y0

    return shown


# ---- Reading order


class _Run(NamedTuple):
    """Neighbouring words of a line, without a gap as wide as the line is high."""

    words: list[_Word]
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return max(self.bottom - self.top, 1.0)

    @property
    def letters(self) -> int:
        return sum(len(word.text) for word in self.words)


_Row = list[_Run]
_FEWEST = 3  # lines of a column
_PROSE = 15  # letters of a column's line, on average: a table's cells have fewer
_MANY = 2_000  # runs of a page whose columns are not sought


_Boxes = list[tuple[int, int, float, float, float, float]]


def _laid_out(words: Sequence[_Word]) -> tuple[str, _Boxes, list[tuple[int, int, float, int]]]:
    """The text in reading order; each word's place in it with its box; and each line's, with its height and cells."""
    runs = _runs(words)
    level = [run for run in runs if not _is_upright(run)]
    blocks = [*_columns(level, 0), *([[run]] for run in runs if _is_upright(run))]
    text = ""
    boxes: _Boxes = []
    lines: list[tuple[int, int, float, int]] = []
    before = ""
    for block in blocks:
        pitch = median_low([b[0].top - a[0].top for a, b in pairwise(block)]) if len(block) > 1 else 0.0
        for turn, row in enumerate(block):
            first = row[0].words[0].text
            if before:
                if not turn:
                    text += _joint(before, first)
                else:
                    text += "\n\n" if _is_gap(block[turn - 1], row, pitch) else "\n"
            begin = len(text)
            for number, run in enumerate(row):
                text += "  " if number else ""
                for place, word in enumerate(run.words):
                    text += " " if place else ""
                    boxes.append((len(text), len(text) + len(word.text), word.left, word.top, word.right, word.bottom))
                    text += word.text
            before = row[-1].words[-1].text
            lines.append((begin, len(text), round(2 * row[0].words[0].height) / 2, len(row)))
    return text, boxes, lines


def _is_gap(above: _Row, row: _Row, pitch: float) -> bool:
    """Whether a paragraph ends between two lines: by their distance, or as the letters' size changes."""
    distance = row[0].top - above[0].top
    sizes = sorted((above[0].height, row[0].height))
    return distance > max(1.35 * pitch, 1.15 * sizes[0]) or sizes[1] > 1.25 * sizes[0]


def _is_upright(run: _Run) -> bool:
    return run.letters > 3 and run.bottom - run.top > 2.5 * (run.right - run.left)


def _runs(words: Sequence[_Word]) -> list[_Run]:
    found: list[list[_Word]] = []
    for word in words:
        before = found[-1][-1] if found else None
        if before is not None and not word.begins:
            apart = max(word.left - before.right, before.left - word.right)
            level = min(before.bottom, word.bottom) - max(before.top, word.top)
            height = min(before.height, word.height)
            if apart < height and 2 * level > height:
                found[-1].append(word)
                continue
        found.append([word])
    return [_Run(each, *_hull([word[1:5] for word in each])) for each in found]


def _columns(runs: list[_Run], depth: int) -> list[list[_Row]]:
    """Blocks of lines: columns from left to right, and between lines that cross the gap of the columns."""
    gutter = _gutter(runs) if depth < 4 and len(runs) <= _MANY else None
    if gutter is None:
        return [_rows_of(runs)] if runs else []
    blocks: list[list[_Row]] = []
    left: list[_Run] = []
    right: list[_Run] = []
    across: list[_Run] = []
    is_rtl = sum(map(_is_rtl, runs)) > len(runs) / 2

    def close() -> None:
        sides = (right, left) if is_rtl else (left, right)
        for side in sides:
            blocks.extend(_columns(list(side), depth + 1))
            side.clear()

    for run in sorted(runs, key=lambda run: (run.top, run.left)):
        if run.right > gutter and run.left < gutter:
            if left or right:
                close()
            across.append(run)
            continue
        if across:
            blocks.append(_rows_of(across))
            across = []
        (left if run.right <= gutter else right).append(run)
    close()
    return [*blocks, _rows_of(across)] if across else blocks


def _gutter(runs: Sequence[_Run]) -> float | None:
    """The middle of the gap between two columns of prose; None if there is none."""
    if len(runs) < 2 * _FEWEST:
        return None
    low, high = min(run.left for run in runs), max(run.right for run in runs)
    edges = sorted({round(run.left, 1) for run in runs})
    best: tuple[int, float, float] | None = None
    for edge in edges[:: max(1, len(edges) // 100)]:
        x = edge - 0.5
        if not low + 0.15 * (high - low) < x < low + 0.85 * (high - low):
            continue
        crossing = sum(run.left < x < run.right for run in runs)
        before = [run for run in runs if run.right <= x]
        after = [run for run in runs if run.left >= x]
        if 4 * crossing > len(runs) or not (_is_prose(before) and _is_prose(after)) or not _are_beside(before, after):
            continue
        clear = x - max(run.right for run in before)
        if best is None or (crossing, -clear) < best[:2]:
            best = (crossing, -clear, x - clear / 2)
    return None if best is None or -best[1] < 3 else best[2]


def _is_prose(runs: Sequence[_Run]) -> bool:
    return len(runs) >= _FEWEST and sum(run.letters for run in runs) >= _PROSE * len(runs)


def _are_beside(one: Sequence[_Run], other: Sequence[_Run]) -> bool:
    """Whether two groups share at least 30 % of the height of the lower one."""
    tops = [min(run.top for run in side) for side in (one, other)]
    bottoms = [max(run.bottom for run in side) for side in (one, other)]
    shared = min(bottoms) - max(tops)
    return shared > 0.3 * min(bottom - top for top, bottom in zip(tops, bottoms, strict=True))


def _rows_of(runs: Sequence[_Run]) -> list[_Row]:
    rows: list[_Row] = []
    for run in sorted(runs, key=lambda run: (run.top, run.left)):
        row = rows[-1] if rows else None
        if row is not None:
            level = min(row[0].bottom, run.bottom) - max(row[0].top, run.top)
            if 2 * level > min(row[0].height, run.height):
                row.append(run)
                continue
        rows.append([run])
    return [sorted(row, key=lambda run: -run.right if _is_rtl(run) else run.left) for row in rows]


def _is_rtl(run: _Run) -> bool:
    return any("\u0590" <= letter <= "\u08ff" for word in run.words[:3] for letter in word.text[:3])


if __name__ == "__main__":
    _serve()
