"""A saved index: one folder for every retriever, read by memory map, replaced in one step.

A folder holds ``manifest.json`` and one sub-folder of data. The manifest names the sub-folder, the retriever, chunker
and embedder, and the SHA-256 of every file. A save writes a new sub-folder, then replaces the manifest, then removes
the old sub-folder: a reader, or a program that is killed, sees the old index or the new one.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cache, partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import BLOCK
from chunkcore.errors import ChunkcoreError, DataError, echo
from chunkcore.files import check_no_link, installed_version, locked_folder, open_file, write_parts
from chunkcore.models.base import Embedder
from chunkcore.models.endpoint import check_stays_here
from chunkcore.plain import JsonObject, plain
from chunkcore.reading.visible import with_right_places
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import Postings
from chunkcore.retrieval.vectors import LazyRows, Rows, RowsKind, TextVectors
from chunkcore.spans import Numbers
from chunkcore.text import Chunk, Document, Mark, Span

FORMAT = 1
MANIFEST = "manifest.json"
_LOCK = ".lock"
SavedPlace = tuple[Path, str]  # the folder of a saved index, and the name of its data there
_ROWS: dict[RowsKind, str] = {"texts": "vectors.npy", "late": "late.npy", "norms": "norms.npy"}
# The arrays of postings, and the kinds of their items.
_POSTINGS = {"keys": "S", "begins": "i", "texts": "i", "counts": "iu", "lengths": "i"}
_LONGEST_SPEC = 1000
_DATA = re.compile("data-[0-9a-f]{16}")
_KEYS = re.compile(r"words-(\w+)-keys\.npy")
_OURS = re.compile(rf"{MANIFEST}|{_DATA.pattern}|\.{MANIFEST}\..*\.part|{_LOCK}")
_AGAIN = "make it again: chunkcore index DOCS -o FOLDER, or index.save(folder)"


@dataclass(frozen=True)
class IndexFacts:
    """What an index was when it was calibrated.

    Attributes:
        embedder: its name; "" without one.
        fingerprint: of the embedder.
        units: how many.
        documents: ids, of larger collections a thousand.
    """

    embedder: str = ""
    fingerprint: str = ""
    units: int = 0
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Enough:
    """The thresholds of an index, and what they promise.

    The promise is of the mean over questions like those that were labelled, whose answers are in the documents; it is
    none of a single question, and none of questions of another kind.

    Attributes:
        miss: the share of questions whose evidence is not all in the passages, at most.
        refuse: the share of questions that are called unrelated, at most.
        level: of the units that are shown.
        least: a question of less presence is unrelated.
        questions: how many were labelled.
        tokens: of the units shown for them, in the mean.
        behind: whether the level is of passages behind another retriever's hits.
        repeated: questions that another document answers in the same words, and that document; see `Needs`.
        presences: of the labelled questions.
        index: what was calibrated.
    """

    miss: float
    refuse: float
    level: float
    least: float
    questions: int
    tokens: float
    behind: bool = False
    repeated: Mapping[str, str] = field(default_factory=dict)
    presences: tuple[float, ...] = ()
    index: IndexFacts = IndexFacts()

    @classmethod
    def read(cls, values: JsonObject) -> Enough:
        """What a manifest has."""
        facts, presences = values["index"], tuple(values["presences"])
        index = IndexFacts(**{**facts, "documents": tuple(facts["documents"])})
        thresholds = {name: float(values[name]) for name in ("level", "least")}
        return cls(**{**values, **thresholds, "presences": presences, "index": index})


class Contents(NamedTuple):
    """What is saved of an index: its retriever's name, chunks, vectors, notes and thresholds, as of `Index`."""

    retriever: str
    corpus: ChunkedCorpus
    vectors: TextVectors | None
    notes: JsonObject
    enough: Enough | None = None


def write_index(
    contents: Contents,
    root: Path,
    base: SavedPlace | None,
) -> SavedPlace:
    """Write an index into a folder, see `Index.save`; `base` is the place of the index that this one updates."""
    if root.exists() and not (root.is_dir() and all(map(is_ours, root.iterdir()))):
        raise DataError(f"{root} is no saved index and not empty: name a new folder for the index")
    data = f"data-{secrets.token_hex(8)}"
    check_no_link(root / MANIFEST, root / _LOCK)
    with locked_folder(root, _LOCK):
        _check_base(base, root)
        try:
            files = {name: _written(root / data / name, parts) for name, parts in _files(contents)}
            manifest = _manifest(contents, data, files)
            manifest["checksum"] = _checksum(manifest)
            write_parts(root / MANIFEST, [json.dumps(manifest, indent=1).encode()])
        except BaseException:
            if not _names(root, data):  # else only the manifest's folder could not be synced
                shutil.rmtree(root / data, ignore_errors=True)
            raise
        _clear(root, data)
    return root.resolve(), data


def _clear(root: Path, data: str) -> None:
    """Delete what earlier saves left."""
    for other in filter(is_ours, list(root.iterdir())):
        if other.is_dir() and other.name != data:
            shutil.rmtree(other, ignore_errors=True)
        elif other.suffix == ".part":
            other.unlink(missing_ok=True)


def _check_base(base: SavedPlace | None, root: Path) -> None:
    """Raise `DataError`: the index is an update of one of this folder, which has got another one meanwhile."""
    if base is None or base[0] != root.resolve() or not (root / MANIFEST).exists():
        return
    if not _names(root, base[1]):
        raise DataError(
            f"another index was saved into {root} since the one that was updated: load_index({str(root)!r}), "
            "update that one and save it, else the other's changes are lost"
        )


def _names(root: Path, data: str) -> bool:
    """Whether the manifest names this folder of data."""
    try:
        return data in (root / MANIFEST).read_text(encoding="utf-8")
    except OSError:
        return False


def is_ours(path: Path) -> bool:
    """Whether saves write such a file: manifests, folders of data, the lock."""
    return _OURS.fullmatch(path.name) is not None


def read_manifest(folder: Path | str) -> JsonObject:
    """What a saved index says of itself: version, retriever, chunker, embedder, counts, notes.

    Raises `DataError`: there is none, or it is damaged.
    """
    file = Path(folder) / MANIFEST
    try:
        with open_file(file) as content:
            manifest = json.load(content)
    except FileNotFoundError as error:
        raise DataError(f"{folder} holds no index: expected {MANIFEST} in it; {_AGAIN}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read ({error}); {_AGAIN}") from error
    if not isinstance(manifest, dict):
        manifest = {}
    if manifest.get("format") != FORMAT:
        seen = echo(manifest.get("format"))
        raise DataError(f"{file} is of format {seen}, this version reads {FORMAT}; {_AGAIN}")
    if manifest.pop("checksum", None) != _checksum(manifest):
        raise _damaged(file)
    kinds = {"notes": dict, "files": dict, "retriever": str, "data": str}
    is_whole = all(isinstance(manifest.get(name), kind) for name, kind in kinds.items())
    is_whole = is_whole and len(manifest["retriever"]) <= _LONGEST_SPEC  # each part takes a call
    if not is_whole or not _DATA.fullmatch(manifest["data"]):
        raise _damaged(file)
    return manifest


def manifest_stamp(folder: Path) -> list[int]:
    """What changes whenever an index is saved into the folder; [] if there is none."""
    return stamp_of(folder / MANIFEST)


def stamp_of(file: Path) -> list[int]:
    """A file's size, its times of change and of its inode's change in nanoseconds, and its inode; [] if it is gone."""
    try:
        state = file.stat()
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]


# ---- Writing


def _files(contents: Contents) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The name and the bytes of each file of data."""
    corpus, vectors = contents.corpus, contents.vectors
    begin, rows, texts = 0, [], []
    for document in corpus.documents:
        text = document.text.encode("utf-8", "surrogatepass")
        values = {"metadata": document.metadata, "marks": document.marks}
        row = {"id": document.id, "begin": begin, "bytes": len(text), **values}
        rows.append(_json(row, document.id))
        texts.append(text)
        begin += len(text)
    yield "documents.jsonl", rows
    yield "texts.bin", texts
    yield "chunks.npy", _array_parts(corpus.columns)
    names = [field.name for field in fields(Chunk)]
    rows = []
    for place, chunk in sorted(corpus.special.items()):
        values = {name: getattr(chunk, name) for name in names}
        rows.append(_json({"place": place, **values}, chunk.document_id))
    yield "special.jsonl", rows
    for form, postings in corpus.made_postings.items():
        for name in _POSTINGS:
            yield f"words-{form}-{name}.npy", _array_parts(getattr(postings, name))
    if vectors is not None:
        for kind, matrix in vectors.held(corpus).items():
            yield _ROWS[kind], _array_parts(matrix)


def _json(row: JsonObject, name: str) -> bytes:
    try:
        values = plain(row, _saved)
        is_changed = values["metadata"] != row["metadata"]  # NumPy's arrays answer with ValueError
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"the metadata of {name!r} cannot be saved as JSON ({error}): use text, numbers, true or false, null, "
            "and lists and mappings of these"
        ) from error
    if is_changed:
        raise DataError(
            f"the metadata of {name!r} would come back changed: use lists, not tuples, and text as keys"
        )
    return json.dumps(values).encode("ascii") + b"\n"


def _saved(value: object) -> object:
    """For `plain`: places and marks in their saved form; ValueError for a number that JSON lacks."""
    if isinstance(value, Span):
        return [value.start, value.end]
    if isinstance(value, Mark):
        return value.to_dict()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    return value


def _array_parts(array: Rows | NDArray[Any]) -> Iterator[bytes]:
    """An array as the bytes of a .npy file, in blocks of rows."""
    first = np.asarray(array[:1])
    header = io.BytesIO()
    described = {"descr": first.dtype.str, "fortran_order": False, "shape": tuple(array.shape)}
    np.lib.format.write_array_header_1_0(header, described)
    yield header.getvalue()
    for start in range(0, len(array), BLOCK):
        yield np.ascontiguousarray(array[start : start + BLOCK]).tobytes()


def _written(path: Path, parts: Iterable[bytes]) -> JsonObject:
    """Write a file; returns its size and checksum."""
    digest, size = hashlib.sha256(), 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for part in parts:
            digest.update(part)
            size += len(part)
            yield part

    write_parts(path, counted())
    return {"bytes": size, "sha256": digest.hexdigest()}


def _manifest(contents: Contents, data: str, files: JsonObject) -> JsonObject:
    corpus = contents.corpus
    embedder = chunker = None
    if contents.vectors is not None:
        model = contents.vectors.embedder
        embedder = {"name": model.name, "fingerprint": model.fingerprint}
    if corpus.chunker is not None:
        # An option may have no name, such as a function; update then takes the chunker.
        with suppress(ChunkcoreError):
            chunker = corpus.chunker.spec
    return {
        "format": FORMAT,
        "version": installed_version(),
        "retriever": contents.retriever,
        "chunker": chunker,
        "embedder": embedder,
        "documents": len(corpus.documents),
        "chunks": len(corpus),
        "fingerprint": corpus.fingerprint,
        "notes": contents.notes,
        "enough": contents.enough and asdict(contents.enough),
        "data": data,
        "files": files,
    }


def _checksum(manifest: JsonObject) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


# ---- Reading


def read_index(folder: Path, embedder: Embedder | str | None) -> tuple[Contents, SavedPlace]:
    """What `write_index` wrote, and its place. Where another program saves meanwhile, its index is read.

    Raises `DataError`: no index, or a damaged or older one.
    """
    manifest = read_manifest(folder)
    model = manifest.get("embedder")
    if embedder is None and isinstance(model, dict):
        advice = "load_index(folder, embedder=...), or search --dense --embedder NAME"
        check_stays_here(str(model.get("name")), advice)
    try:
        contents = _contents(_Data(folder, manifest), manifest, embedder)
        return contents, (folder.resolve(), manifest["data"])
    except FileNotFoundError as error:
        if read_manifest(folder)["data"] != manifest["data"]:
            return read_index(folder, embedder)
        raise _damaged(Path(str(error.filename))) from error
    except OSError:
        raise
    except Exception as error:  # whatever is raised by parts that do not fit together
        raise _damaged(folder) from error


class _Data:
    """The files of a saved index's data. Raises `DataError`: one is not what the manifest expects."""

    def __init__(self, folder: Path, manifest: JsonObject) -> None:
        self._folder: Path = folder / manifest["data"]
        self.files: dict[str, JsonObject] = manifest["files"]

    def _file(self, name: str) -> Path:
        """A file that is a regular one, as others may never end, and as large as expected."""
        path = self._folder / name
        with open_file(path) as file:
            _check_fit(os.fstat(file.fileno()).st_size == self.files[name]["bytes"])
        return path

    def _check(self, path: Path, data: bytes | memoryview) -> None:
        if hashlib.sha256(data).hexdigest() != self.files[path.name]["sha256"]:
            raise _damaged(path)

    def lines(self, name: str) -> Iterator[Any]:
        return map(json.loads, self.bytes(name).splitlines())

    def bytes(self, name: str) -> bytes:
        path = self._file(name)
        data = path.read_bytes()
        self._check(path, data)
        return data

    def mapped(self, name: str, kinds: str, dimensions: int = 1) -> _MappedRows:
        """An array, whose checksum is compared when a row is first read; a later save may remove the file meanwhile."""
        path = self._file(name)
        array = np.asarray(np.lib.format.open_memmap(path, mode="r"))
        _check_fit(array.dtype.kind in kinds and array.ndim == dimensions)
        return _MappedRows(array, partial(self._check, path, np.memmap(path, mode="r").data))


class _MappedRows(LazyRows):
    """An array in a file, read by memory map, which is checked before it is first read."""

    def __init__(self, rows: NDArray[Any], check: Callable[[], None]) -> None:
        self._rows, self._check = rows, cache(check)
        self.shape = rows.shape

    def __getitem__(self, rows: slice | Numbers) -> NDArray[Any]:
        self._check()
        return self._rows[rows]

    def __reduce__(self) -> Any:
        return np.array, (self[:],)  # the file may be gone where it is unpickled


def _check_fit(is_fit: object) -> None:
    """Raise ValueError: what a manifest describes rightly does not fit together."""
    if not is_fit:
        raise ValueError


def _check_inside(numbers: Numbers, end: int) -> None:
    _check_fit(((numbers >= 0) & (numbers < end)).all())


def _contents(data: _Data, manifest: JsonObject, embedder: Embedder | str | None) -> Contents:
    corpus = _corpus(data, manifest)
    model, enough, vectors = manifest["embedder"], manifest.get("enough"), None
    if model is not None:
        name = model["name"] if embedder is None else embedder
        vectors = TextVectors(name, fingerprint=model["fingerprint"])
        for kind, file in _ROWS.items():
            if file in data.files:
                rows = data.mapped(file, "f", 2)
                count = len(corpus.owners) if kind == "texts" else len(corpus)
                _check_fit(len(rows) == count)
                vectors.hold(corpus, rows, kind)
    enough = enough and Enough.read(enough)
    return Contents(manifest["retriever"], corpus, vectors, manifest["notes"], enough)


def _corpus(data: _Data, manifest: JsonObject) -> ChunkedCorpus:
    texts = memoryview(data.bytes("texts.bin"))
    documents = [_document(row, texts) for row in data.lines("documents.jsonl")]
    special = {}
    for row in data.lines("special.jsonl"):
        row["spans"] = _spans(row["spans"])
        row["segments"] = tuple(map(_spans, row["segments"]))
        place = row.pop("place")
        special[place] = Chunk(**row)
    columns = data.mapped("chunks.npy", "i", 2)[:]
    _check_chunks(columns, documents, special)
    spec, fingerprint = manifest["chunker"], manifest["fingerprint"]
    _check_fit(isinstance(fingerprint, str | None))
    corpus = ChunkedCorpus.of_columns(
        documents,
        columns,
        special=special,
        fingerprint=fingerprint,
        chunker=spec,
    )
    for form in filter(None, map(_KEYS.fullmatch, data.files)):
        corpus.made_postings[form[1]] = _postings(data, form[1], len(corpus))
    return corpus


def _document(row: JsonObject, texts: memoryview) -> Document:
    begin = row["begin"]
    text = str(texts[begin : begin + row["bytes"]], "utf-8", "surrogatepass")
    marks = tuple(map(Mark.from_dict, row["marks"]))
    return with_right_places(Document(row["id"], text, row["metadata"], marks))


def _spans(pairs: Sequence[Sequence[int]]) -> tuple[Span, ...]:
    return tuple(starmap(Span, pairs))


def _check_chunks(
    columns: Numbers, documents: Sequence[Document], special: Mapping[int, Chunk]
) -> None:
    numbers, _, starts, ends, _ = columns
    _check_inside(numbers, len(documents))
    sizes = np.array([document.size for document in documents], np.int64)[numbers]
    _check_fit(((starts >= 0) & (starts <= ends) & (ends <= sizes)).all())
    _check_fit(all(chunk.end <= sizes[place] for place, chunk in special.items()))


def _postings(data: _Data, form: str, count: int) -> Postings:
    """The postings of so many texts."""
    arrays = [
        data.mapped(f"words-{form}-{name}.npy", kinds)[:] for name, kinds in _POSTINGS.items()
    ]
    keys, begins, texts, counts, lengths = arrays
    sizes = len(keys) + 1, len(texts), count
    _check_fit((len(begins), len(counts), len(lengths)) == sizes)
    _check_fit((np.diff(begins, prepend=0, append=len(texts)) >= 0).all())
    _check_inside(texts, count)
    return Postings(*arrays)


def _damaged(path: Path) -> DataError:
    return DataError(f"{path} is damaged; {_AGAIN}")
