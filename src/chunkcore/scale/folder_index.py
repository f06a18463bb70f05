"""`FolderIndex`: which words are where in the files of a folder, kept on disk and updated by content."""

from __future__ import annotations

import io
import json
import warnings
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker
from chunkcore.concurrency import batches_of
from chunkcore.document import Document, Mark, Span, page_marks
from chunkcore.errors import ChunkcoreError, DataError
from chunkcore.evaluation.benchmarks.documents import LeftOut, tell_written
from chunkcore.files import NoTextError, write_parts
from chunkcore.reading.base import UnreadError
from chunkcore.retrieval.corpus import ChunkedCorpus, Titles, title_keys
from chunkcore.retrieval.lexicon import Postings, has_tags, without_tags
from chunkcore.scale.sources import Piece, Sources
from chunkcore.scale.workers import ChangedError, cut_batches, piece_documents
from chunkcore.stored import document_later

_FORMAT = b"chunkcore folder index 4"
_WHOLE = 2**62  # bytes: no file is cut in parts
_BATCH = 8_000_000  # bytes of files that are read together
_ENTRY = 1000  # bytes of text that take as long as opening a file
_UNREAD = -2


class _Entry(NamedTuple):
    """An indexed document: where it is, its text's digest and size, and how many units it has; -1: it has no text; -2:
    it could not be read, and is read again each time. `titles` are its `title_keys`. `kept` is the name of its text's
    file, if it was converted.
    """

    piece: Piece
    id: str
    digest: str = ""
    size: int = 0
    units: int = -1
    kept: str = ""
    titles: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What changes when the file does."""
        return self.piece.path, self.piece.begin, self.piece.stamp

    def to_row(self) -> list[Any]:
        piece = self.piece
        where = piece.kind, piece.id, piece.place, piece.path, piece.begin, piece.end, *piece.stamp, piece.listed
        return [*where, *self[1:]]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> _Entry:
        kind, name, place, path, begin, end, size, time, listed = row[:9]
        piece = Piece(kind, name, place, 0, listed, path, begin, end, stamp=(size, time))
        return cls(piece, *row[9:-1])._replace(titles=tuple(row[-1]))

    def read(self, texts: Path | None) -> Document:
        """The document; of a converted file the kept text, with its pages.

        Raises `DataError`: it is no longer what was indexed.
        """
        if self.kept and texts is not None and (texts / self.kept).exists():
            try:
                return self._from(texts / self.kept)
            except Exception as error:  # noqa: BLE001  # damaged in any way
                told = f"{texts / self.kept} is damaged ({error}); {self.piece.path} is read again"
                warnings.warn(told, stacklevel=2)
        piece = self.piece
        if piece.kind == "line":
            with Path(piece.path).open("rb") as file:
                file.seek(piece.begin)
                piece = piece._replace(data=file.read(piece.end - piece.begin))
        document = next(iter(piece_documents(piece, _WHOLE)), None)
        if document is None or _digest(document) != self.digest:
            raise DataError(f"{self.piece.path} has changed since it was indexed: search again")
        if self.kept and texts is not None:
            _keep(document, texts)
        return document

    def _from(self, file: Path) -> Document:
        """The document that `_keep` wrote into the file. Raises any exception: it is damaged."""
        most = 64 * (self.size + 1)  # bytes: a character takes 6 at most, and a page with one character has few more
        data = zlib.decompressobj().decompress(file.read_bytes(), most)
        if blake2b(data, digest_size=16).hexdigest() != file.name:
            raise ValueError("its checksum is another")
        text, pages = json.loads(data.decode("utf-8", "surrogatepass"))
        marks = [Mark("page", Span(start, end), {"number": number}) for start, end, number in pages]
        return Document(self.id, text, marks=tuple(marks))


def _keep(document: Document, texts: Path) -> str:
    """Write text and pages of a document into a file of the folder; returns its name, which is their digest."""
    pages = [(page.span.start, page.span.end, page.data["number"]) for page in page_marks(document.marks)]
    data = json.dumps([document.text, pages], ensure_ascii=False).encode("utf-8", "surrogatepass")
    name = blake2b(data, digest_size=16).hexdigest()
    with suppress(OSError):  # then the document is converted again
        texts.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_parts(texts / name, [zlib.compress(data)], sync=False)
    return name


def _digest(document: Document) -> str:
    """Of the text, and of whether its tags count as words."""
    kind = b"tags left out" if has_tags(document.id) else b""
    return blake2b(document.text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind).hexdigest()


class FolderIndex:
    """The units (small chunks) of files, and which words are in which.

    Attributes:
        settings: what units and words follow from; only an index of equal settings is updated.
        added: how many documents `update` cut and counted.
        changed: whether `update` made another index than the earlier one.
        marks: of the documents of `corpus` whose texts were read, by id.
        stale: the files of `corpus` that are no longer what was indexed.
    """

    def __init__(
        self, settings: Mapping[str, str], entries: Sequence[_Entry], units: NDArray[np.int32], postings: Postings
    ) -> None:
        self.settings = dict(settings)
        self.added = 0
        self.changed = True
        self.marks: dict[str, tuple[Mark, ...]] = {}
        self.stale: set[str] = set()
        self._entries = list(entries)
        self._units = units  # start, end and tokens of each
        self._postings = postings
        self._texts: Path | None = None

    def __len__(self) -> int:
        return len(self._units)

    @property
    def documents(self) -> int:
        return sum(entry.units >= 0 for entry in self._entries)

    @classmethod
    def update(
        cls,
        path: Path,
        chunker: Chunker,
        form: str,
        earlier: FolderIndex | None = None,
        progress: Callable[[int], None] | None = None,
        processes: int = 1,
        texts: Path | None = None,
        stale: Collection[str] = (),
    ) -> FolderIndex:
        """The index of a folder, a file or a ``documents.jsonl``; what `earlier` has of equal content is taken over.

        A file is read if its size or time of change is another than before; its document is cut and counted if its text
        is. Over 8 MB are read by several processes, if they may be. `progress` gets the bytes that were read. The
        folder `texts` keeps the texts of converted files (PDF, DOCX, e-mail), which are then converted once. Files that
        are `stale` are read in any case.
        """
        settings = {"strategy": chunker.spec, "words": form}
        before = earlier._entries if earlier is not None and earlier.settings == settings else []
        known = {
            entry.key: number
            for number, entry in enumerate(before)
            if entry.units != _UNREAD and entry.piece.path not in stale
        }
        same = {entry.digest: number for number, entry in enumerate(before) if entry.digest}
        entries: list[_Entry] = []
        origins: list[int] = []  # of each entry, its number in `earlier`; -1: it is new
        waiting: deque[int] = deque()  # the entries that are being read
        sources = Sources([path], _WHOLE)
        left_out = LeftOut()

        def unread() -> Iterator[Piece]:
            for piece in sources:
                entry = _Entry(piece._replace(data=None, error=None), piece.id)
                origin = -1 if piece.error is not None else known.get(entry.key, -1)
                entries.append(entry if origin < 0 else before[origin]._replace(piece=entry.piece))
                origins.append(origin)
                if origin < 0:
                    waiting.append(len(entries) - 1)
                    yield piece

        batches = batches_of(unread(), lambda piece: _ENTRY + piece.end - piece.begin, _BATCH)
        first = list(islice(batches, processes))
        new: list[_Counted] = []
        read = 0
        for (counted,) in cut_batches(
            _Counting(chunker, form, frozenset(same), texts), chain(first, batches), max(1, len(first))
        ):
            for entry, error in counted.entries:
                place = waiting.popleft()
                origins[place] = origin = same.get(entry.digest, -1)
                if origin >= 0:
                    entry = entry._replace(units=before[origin].units)
                entries[place] = entry
                read += entry.piece.end - entry.piece.begin
                if error is not None:
                    left_out.add(entry.piece.id, error)
            new.append(counted)
            if progress is not None:
                progress(read)
        if all(entry.units < 0 for entry in entries):
            raise DataError(
                f"{path} holds no documents: expected files with text in it, or a documents.jsonl{left_out}"
            )
        tell_written(path, sources.written.get(0, []))
        left_out.tell(path)
        found = cls(settings, entries, *_joined(earlier if before else None, entries, origins, new))
        found._texts = texts
        found.changed = entries != before
        found.added = sum(origin < 0 <= entry.units for entry, origin in zip(entries, origins, strict=True))
        return found

    def corpus(self) -> ChunkedCorpus:
        """The units as a corpus with postings; texts are read when they are used."""
        entries = [entry for entry in self._entries if entry.units >= 0]

        def read(entry: _Entry) -> str:
            try:
                document = entry.read(self._texts)
            except DataError:
                self.stale.add(entry.piece.path)
                raise
            self.marks[entry.id] = document.marks
            return document.text

        documents = [document_later(entry.id, entry.size, partial(read, entry)) for entry in entries]
        counts = np.array([entry.units for entry in entries], dtype=np.int64)
        numbers = np.repeat(np.arange(len(entries), dtype=np.int64), counts)
        begins = np.repeat(np.cumsum(counts) - counts, counts)
        columns = np.stack([numbers, np.arange(len(numbers)) - begins, *self._units.T.astype(np.int64)])
        titles = Titles([entry.titles for entry in entries])
        corpus = ChunkedCorpus.of_columns(documents, columns, postings={self.settings["words"]: self._postings})
        corpus.titles = titles
        return corpus

    def place(self, document_id: str) -> str:
        """The file of a document, as messages name it."""
        return next(entry.piece.path for entry in self._entries if entry.id == document_id)

    def save(self, file: Path) -> None:
        """Write the index as NumPy arrays with a table in JSON, replacing the file at once; drop kept texts that it
        lacks.
        """
        table = {"settings": self.settings, "documents": [entry.to_row() for entry in self._entries]}
        own = self._postings
        arrays: dict[str, NDArray[Any]] = {
            "table": np.frombuffer(json.dumps(table).encode("ascii"), dtype=np.uint8),
            "units": self._units,
            "keys": own.keys,
            "begins": own.begins,
            "texts": own.texts,
            "counts": own.counts,
            "lengths": own.lengths,
        }
        data = io.BytesIO()
        told = {"format": np.frombuffer(_FORMAT, dtype=np.uint8), "checksum": _checksum(arrays)}
        np.savez(data, **told, **arrays)  # type: ignore[arg-type]
        write_parts(file, [data.getvalue()])
        wanted = {entry.kept for entry in self._entries}
        for each in self._texts.glob("[0-9a-f]" * 32) if self._texts is not None else ():
            if each.name not in wanted:
                with suppress(OSError):  # on Windows another process may be reading it
                    each.unlink()

    @classmethod
    def load(cls, file: Path) -> FolderIndex:
        """The saved index. Nothing in the file is executed; its checksum is that of every number."""
        try:
            arrays = _whole(file)
            table = json.loads(bytes(arrays.pop("table")))
            entries = [_Entry.of_row(row) for row in table["documents"]]
            return cls(table["settings"], entries, arrays.pop("units"), Postings(**arrays))
        except FileNotFoundError as error:
            raise DataError(f"there is no {file}") from error
        except DataError:
            raise
        except Exception as error:  # a damaged file may fail NumPy in any way
            raise DataError(f"{file} is damaged, or no index of a folder ({error})") from error


def _whole(file: Path) -> dict[str, NDArray[Any]]:
    with np.load(file, allow_pickle=False) as opened:
        arrays = {name: opened[name] for name in opened.files}
    if bytes(arrays.pop("format", b"")) != _FORMAT:
        raise DataError(f"{file} is of another version, or no index of a folder")
    if not np.array_equal(arrays.pop("checksum"), _checksum(arrays)):
        raise ValueError("its checksum is another")
    return arrays


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    hashed = blake2b(_FORMAT, digest_size=16)
    for name, each in sorted(arrays.items()):
        hashed.update(f"{name} {each.dtype} {each.shape} ".encode())
        hashed.update(np.ascontiguousarray(each).data)
    return np.frombuffer(hashed.digest(), dtype=np.uint8)


def _read(piece: Piece, texts: Path | None) -> tuple[_Entry, Document | None, NoTextError | None]:
    """The entry with its text's digest and size, and its document; None for a file without text, and the error."""
    entry = _Entry(piece._replace(data=None, error=None), piece.id)
    try:
        document = next(iter(piece_documents(piece, _WHOLE)), None)
    except NoTextError as error:
        if not piece.listed:
            raise
        return entry._replace(units=_UNREAD if isinstance(error, UnreadError) else -1), None, error
    except ChangedError:  # a log that grows
        if not piece.listed:
            raise
        return entry._replace(units=_UNREAD), None, UnreadError(piece.path, "has changed while it was read")
    if document is None or not document.text:
        return entry, None, None
    converted = piece.kind == "file" or (piece.kind == "text" and "format" in document.metadata)
    entry = entry._replace(id=document.id, digest=_digest(document), size=document.size, units=0)
    kept = _keep(document, texts) if converted and texts is not None else ""
    return entry._replace(kept=kept, titles=tuple(title_keys(document))), document, None


class _Counted(NamedTuple):
    """What comes of a batch of files: entries, those left out with the error; the units and postings of the others."""

    entries: Sequence[tuple[_Entry, NoTextError | None]]
    units: NDArray[np.int32]
    postings: Postings
    error: ChunkcoreError | None = None


@dataclass(frozen=True)
class _Counting:
    """Cuts the documents of files, but for those of `known` digests, and counts their words; keeps converted texts."""

    chunker: Chunker
    form: str
    known: frozenset[str]
    texts: Path | None
    workers: int = 1

    def __call__(self, pieces: Sequence[Piece]) -> list[_Counted]:
        entries: list[tuple[_Entry, NoTextError | None]] = []
        units = array("i")

        def texts() -> Iterator[str]:
            for piece in pieces:
                entry, document, error = _read(piece, self.texts)
                if document is not None and entry.digest not in self.known:
                    chunks = self.chunker.chunk(document)
                    entry = entry._replace(units=len(chunks))
                    text = without_tags(document)
                    for chunk in chunks:
                        units.extend((chunk.start, chunk.end, chunk.token_count))
                        yield text[chunk.start : chunk.end]
                entries.append((entry, error))

        postings = Postings.of(texts(), self.form)
        return [_Counted(entries, np.array(units, dtype=np.int32).reshape(-1, 3), postings)]


def _joined(
    earlier: FolderIndex | None,
    entries: Sequence[_Entry],
    origins: Sequence[int],
    new: Sequence[_Counted],
) -> tuple[NDArray[np.int32], Postings]:
    """The units and postings of the entries: the earlier ones of those with an origin, the new ones of the others."""
    if earlier is None and len(new) == 1:
        return new[0].units, new[0].postings
    if earlier is not None and list(origins) == list(range(len(earlier._entries))):
        return earlier._units, earlier._postings
    begins = _begins(entries)
    units = np.zeros((int(begins[-1]), 3), dtype=np.int32)
    fresh = np.ones(len(units), dtype=np.bool_)
    parts: list[tuple[Postings, NDArray[np.int64]]] = []
    if earlier is not None:
        parts = _taken_over(earlier, entries, origins, units, fresh)
    own = np.split(np.flatnonzero(fresh), np.cumsum([len(each.units) for each in new], dtype=np.int64))
    for each, numbers in zip(new, own, strict=False):
        units[numbers] = each.units
        parts.append((each.postings, numbers))
    return units, Postings.joined(parts, len(units))


def _taken_over(
    earlier: FolderIndex,
    entries: Sequence[_Entry],
    origins: Sequence[int],
    units: NDArray[np.int32],
    fresh: NDArray[np.bool_],
) -> list[tuple[Postings, NDArray[np.int64]]]:
    """Write the earlier units in their new places, which are then not `fresh`; their postings, with these places."""
    begins, starts = _begins(entries), _begins(earlier._entries)
    old = np.full(len(earlier), -1, dtype=np.int64)
    parts = [(earlier._postings, old)]
    for entry, origin, begin in zip(entries, origins, begins.tolist(), strict=False):
        if origin < 0 or entry.units <= 0:
            continue
        here, there = slice(begin, begin + entry.units), slice(starts[origin], starts[origin] + entry.units)
        units[here], fresh[here] = earlier._units[there], False
        numbers = old
        if old[there.start] >= 0:  # two files with one text
            numbers = np.full(len(earlier), -1, dtype=np.int64)
            parts.append((earlier._postings, numbers))
        numbers[there] = np.arange(here.start, here.stop)
    return parts


def _begins(entries: Sequence[_Entry]) -> NDArray[np.int64]:
    """The first unit of each entry, and the number of all."""
    return np.cumsum([0, *(max(0, entry.units) for entry in entries)], dtype=np.int64)
