"""`read_run` and `write_run`: runs as JSON lines, or in TREC's six columns of another program; also pools of chunks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError, OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, slices_digest
from chunkcore.evaluation.results import Report
from chunkcore.files import json_lines, text_lines, utf8_line, write_parts
from chunkcore.locating.alignment import Aligner
from chunkcore.plain import digest
from chunkcore.run import Retrieved, Run
from chunkcore.spans import pairs_of
from chunkcore.text import Document, Span, text_of_spans


def read_pool(
    path: Path | str,
    benchmark: Benchmark,
) -> dict[str, Retrieved]:
    """The chunks of a JSON-lines file by id, in file order; read line by line.

    A line has "id", "document_id" and "spans", pairs of offsets in code points. "text" is checked against the
    documents, or the passage's "digest" if "derived" is true. Other keys are ignored.

    Raises `DataError`: with file and line: a malformed line, an unknown document, a place outside it, a text that is
    not at its place, or a repeated id. Or no chunks, or a damaged file.
    """
    place = Path(path)
    documents = {document.id: document for document in benchmark.documents}
    pool: dict[str, Retrieved] = {}
    for number, row in _checked_rows(place, "pool"):
        where = f"{place}, line {number}"
        piece = _read_chunk(row, documents, where)
        if piece.id in pool:
            raise DataError(
                f"{where}: a second chunk has the id {echo(piece.id)}: cut the documents once, into one file"
            )
        pool[piece.id] = piece
    if not pool:
        raise DataError(
            f"{place} holds no chunks: expected a line a chunk, as chunkcore chunk writes it"
        )
    return pool


def _read_chunk(
    row: Mapping[str, Any],
    documents: Mapping[str, Document],
    where: str,
) -> Retrieved:
    name = row.get("id")
    if not isinstance(name, str) or not name:
        seen = ", ".join(map(repr, row)) or "no keys"
        raise DataError(
            f"{where}: expected a chunk with an id, as chunkcore chunk writes it, got the keys {echo(seen)}"
        )
    document = documents.get(row.get("document_id", ""))
    if document is None:
        raise DataError(
            f"{where}: the chunk is of the document {row.get('document_id')!r}, which the benchmark does not have: "
            "give the documents that were cut, under the same ids"
        )
    spans = _read_spans(row.get("spans"), document, where)
    text = row.get("text", "")
    if not isinstance(text, str):
        raise DataError(f"{where}: a chunk's text is a string, got {type(text).__name__}")
    if row.get("derived") is True:  # such a text is checked by the digest of its passage
        is_there = row.get("digest") in (None, slices_digest(document.text, spans))
    else:
        is_there = text == "" or _stands(text, spans, document)
    if not is_there:
        raise DataError(
            f"{where}: the chunk's text does not stand at its spans in {document.id!r}: the chunks were cut from "
            "another version of it; cut this one"
        )
    return Retrieved(document.id, spans, 0.0, text, id=name)


def _header(
    kind: str,
    body: Sequence[bytes],
) -> dict[str, Any]:
    """The first line of a file that we write, for `_checked_rows`."""
    checksum = digest(b"".join(body))
    return {"format": f"chunkcore {kind} 1", "lines": len(body), "checksum": checksum}


def _with_header(
    kind: str,
    lines: Iterable[bytes],
) -> list[bytes]:
    body = list(lines)
    return [utf8_line(_header(kind, body)), *body]


def _checked_rows(
    path: Path,
    kind: str,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines' objects, compared with the header that we wrote; a file of another program has none."""
    for number, row in json_lines(path):
        if number != 1 or row.get("format") != f"chunkcore {kind} 1":
            yield number, row
            continue
        with path.open("rb") as file:
            body = list(file)[1:]
        if row != _header(kind, body):
            raise DataError(
                f"{path}, line 1: what follows is not what was written ({row.get('lines')} lines then, {len(body)} "
                "now): the file was damaged or edited; write it again, or take line 1 away to accept it"
            )


def _read_spans(
    value: Any,
    document: Document,
    where: str,
) -> tuple[Span, ...]:
    try:
        spans = tuple(Span(*pair) for pair in value)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where}: spans are pairs of offsets such as [[0, 40]], got {value!r:.80}"
        ) from error
    if not spans:
        raise DataError(f"{where}: there is no span: expected pairs of offsets such as [[0, 40]]")
    last = max(span.end for span in spans)
    if last > len(document.text):
        raise DataError(
            f"{where}: a span ends at {last}, its document {echo(document.id)} at {len(document.text)}"
        )
    return spans


def _stands(
    text: str,
    spans: Sequence[Span],
    document: Document,
) -> bool:
    """Whether a text is that of the spans, whatever white space joins them."""
    source = text_of_spans(document.text, spans)
    return text == source or "".join(text.split()) == "".join(source.split())


def write_pool(
    pool: Sequence[Retrieved],
    path: Path | str,
    benchmark: Benchmark,
) -> Path:
    """Write chunks for `read_pool`, atomically.

    Raises:
        DataError: a chunk has no id or no place.
        OSError: the file cannot be written.
    """
    documents = {document.id: document for document in benchmark.documents}

    def lines() -> Iterator[bytes]:
        for number, piece in enumerate(pool):
            if not piece.id or not piece.spans or piece.document_id not in documents:
                raise DataError(
                    f"piece {number} of the pool has no {'place in the documents' if piece.id else 'id'}"
                )
            document = documents[piece.document_id]
            row: dict[str, Any] = {"document_id": document.id, "id": piece.id}
            row |= {"spans": pairs_of(piece.spans), "text": piece.text}
            if not _stands(piece.text, piece.spans, document):
                row |= {"derived": True, "digest": slices_digest(document.text, piece.spans)}
            yield utf8_line(row)

    return write_parts(Path(path), _with_header("pool", lines()))


def read_run(
    path: Path | str,
    benchmark: Benchmark,
    *,
    chunks: Path | str | None = None,
    name: str = "",
    aligner: Aligner | None = None,
) -> Run:
    """A system's results from a file.

    A ``.jsonl`` file has one hit per line, ``{"query_id", "document_id", "spans", "text", "score", "rank"}``, or one
    query per line, ``{"query_id", "results": [hit, ...]}``. A hit is placed by its spans (offsets in code points), else
    by its text (`Aligner`), else by the "id" of a chunk; else it is its whole document. Rank and score are optional. A
    "digest" of the text at the spans is checked.

    Any other file has TREC's six columns, ``query_id Q0 id rank score tag``; an id names a chunk or a document.

    Args:
        chunks: the file of the searched chunks (see `read_pool`): the run's pool, for k = "min" and PrecisionOmega.
        name: the run's; by default the file's stem.
        aligner: of the benchmark's documents, to share its index between runs.

    Raises `DataError`: with file and line: a malformed line, an unknown query or document, a non-finite score, a
    repeated hit, ranks or scores out of order, or a wrong digest. Or no hits, or a damaged file.
    """
    place = Path(path)
    pool: dict[str, Retrieved] = {}
    if chunks is not None:
        pool = read_pool(chunks, benchmark)
    rows = _json_rows(place) if _is_json(place) else _trec_rows(place)
    reader = _RunReader(benchmark, pool, aligner)
    for where, row in rows:
        reader.add(where, row)
    if not reader.results:
        raise DataError(f"{place} holds no hits: expected a line a hit, TREC's six columns or JSON")
    return Run(
        name or place.stem,
        reader.results,
        list(pool.values()) or None,
    )


def write_run(
    run: Run,
    path: Path | str,
    benchmark: Benchmark | None = None,
) -> Path:
    """Write a run's results atomically as JSON lines, one hit each, for `read_run`.

    If a query's scores rise, or one is not finite, minus the rank is written instead. A hit has its place, or its text
    if it is not located; with the benchmark also a digest of the text at the place, so that `read_run` detects changed
    documents. Raises `OSError`: the file cannot be written.
    """
    place = Path(path)
    if not _is_json(place):
        raise OptionError(f"a run is written as JSON lines: name the file .jsonl, got {place.name}")
    return write_parts(place, _with_header("run", _json_run(run, benchmark)))


def _is_json(path: Path) -> bool:
    return path.suffix.lower() in (".jsonl", ".ndjson")


_TEXTS = ("id", "document_id", "text", "digest")


def _trec_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line, text in text_lines(path):
        where, columns = f"{path}, line {line}", text.split()
        if columns and len(columns) != 6:
            raise DataError(
                f"{where}: expected TREC's six columns, query_id Q0 id rank score tag, got {len(columns)}: "
                f"{echo(text.strip()[:60])} (a file of JSON lines is named .jsonl)"
            )
        if columns:
            yield where, dict(zip(("query_id", "Q0", "id", "rank", "score"), columns, strict=False))


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """A row a hit; and a row with empty "results" for each query that has a line."""
    for line, row in _checked_rows(path, "run"):
        where = f"{path}, line {line}"
        if "results" not in row:
            yield where, row
            continue
        if not isinstance(row["results"], list):
            raise DataError(
                f'{where}: "results" is a list of hits, got {type(row["results"]).__name__}'
            )
        query = {"query_id": row.get("query_id")}
        yield where, query | {"results": []}
        for hit in row["results"]:
            if not isinstance(hit, dict):
                raise DataError(f"{where}: a hit is a JSON object, got {type(hit).__name__}")
            yield where, hit | query


class _RunReader:
    """Places the hits of a file, line by line."""

    def __init__(
        self,
        benchmark: Benchmark,
        pool: Mapping[str, Retrieved],
        aligner: Aligner | None,
    ) -> None:
        self.results: dict[str, list[Retrieved]] = {}
        self._benchmark = benchmark
        self._pool = pool
        self._aligner = aligner
        self._queries = {query.id for query in benchmark.queries}
        self._documents = {document.id: document for document in benchmark.documents}
        self._seen: dict[object, str] = {}  # the line of each hit, by its query and place
        self._last: dict[str, tuple[float | None, float | None]] = {}

    def add(
        self,
        where: str,
        row: Mapping[str, Any],
    ) -> None:
        """Add a line's hit; a line with "results" says only that its question was asked."""
        query = self._query(where, row)
        pieces = self.results.setdefault(query, [])
        if "results" in row:
            return
        texts = {key: row.get(key) or "" for key in _TEXTS}
        for key, value in texts.items():
            if not isinstance(value, str):
                raise DataError(f'{where}: "{key}" is a string, got {value!r:.60}')
        if not (texts["id"] or texts["document_id"] or texts["text"]):
            raise DataError(
                f'{where}: a hit has "document_id" and "spans", a "text", or the "id" of a chunk'
            )
        rank = _number(row.get("rank"), "rank", where)
        score = _number(row.get("score"), "score", where)
        self._check_order(where, query, rank, score)
        spans = row.get("spans")
        piece = self._placed(where, texts, spans, score or 0.0)
        self._check_repeats(
            where,
            query,
            piece,
            is_text=bool(texts["text"]) and spans is None,
        )
        pieces.append(piece)

    def _query(
        self,
        where: str,
        row: Mapping[str, Any],
    ) -> str:
        query = row.get("query_id")
        if not isinstance(query, str):
            raise DataError(f'{where}: expected a "query_id" that is a string, got {query!r:.60}')
        if query not in self._queries:
            raise DataError(
                f"{where}: the query {query!r} is none of the {len(self._queries)} of {self._benchmark.name!r}, such "
                f"as {echo(min(self._queries, default=''))}: give the questions that were asked"
            )
        return query

    def _check_repeats(
        self,
        where: str,
        query: str,
        piece: Retrieved,
        *,
        is_text: bool,
    ) -> None:
        if is_text and not piece.id:
            return  # two hits with the same text may be different passages
        place = (query, piece.id) if piece.id else (query, piece.document_id, piece.spans)
        first = self._seen.setdefault(place, where)
        if first is not where:
            raise DataError(
                f"{where}: the query {echo(query)} has this hit already, in {first.rpartition(', ')[2]}"
            )

    def _check_order(
        self,
        where: str,
        query: str,
        rank: float | None,
        score: float | None,
    ) -> None:
        last_rank, last_score = self._last.get(query, (None, None))
        self._last[query] = rank, score
        if rank is not None and last_rank is not None and rank <= last_rank:
            raise DataError(
                f"{where}: rank {rank:g} of the query {query!r} comes after rank {last_rank:g}: sort them"
            )
        if score is not None and last_score is not None and score > last_score:
            raise DataError(
                f"{where}: the score {score:g} of the query {query!r} comes after {last_score:g}, which is lower"
            )

    def _placed(
        self,
        where: str,
        texts: Mapping[str, str],
        spans: Any,
        score: float,
    ) -> Retrieved:
        """A hit by its spans, its text, the id of its chunk, or as its whole document."""
        name, text, document_id = texts["id"], texts["text"], texts["document_id"]
        places: tuple[Span, ...] = ()
        if spans is not None:
            document = self._document(document_id, where)
            places = _read_spans(spans, document, where)
            if texts["digest"] not in ("", slices_digest(document.text, places)):
                raise DataError(
                    f"{where}: in {echo(document.id)} another text stands at these spans than when the run was "
                    "written: give the documents that were searched, or search these"
                )
        elif document_id:
            self._document(document_id, where)
        if text:
            self._aligner = self._aligner or Aligner(self._benchmark.documents)
            piece = self._aligner.locate(
                text,
                document_id=document_id,
                spans=places,
                score=score,
            )
            return replace(piece, id=name)
        if places:
            return Retrieved(document_id, places, score, id=name)
        if name in self._pool:
            return self._pool[name].with_score(score)
        if not document_id and self._pool:
            raise DataError(
                f"{where}: {name!r} is none of the {len(self._pool):,} chunks: give those searched"
            )
        whole = self._document(document_id or name, where)
        if whole.text:
            places = (Span(0, len(whole.text)),)
        return Retrieved(whole.id, places, score, id=name)

    def _document(self, name: str, where: str) -> Document:
        document = self._documents.get(name)
        if document is not None:
            return document
        if name:
            problem = (
                f"{name!r} is none of the {len(self._documents):,} documents of {self._benchmark.name!r}: give the "
                "documents that were searched or, for a run of chunks, the file of chunks"
            )
        else:
            problem = 'there are "spans", and no "document_id" that says what they are of: give both, or the text alone'
        raise DataError(f"{where}: {problem}")


def _number(
    value: object,
    what: str,
    where: str,
) -> float | None:
    if value is None:
        return None
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise DataError(f"{where}: the {what} is a finite number, got {value!r:.60}")
    return number


def _json_run(
    run: Run,
    benchmark: Benchmark | None,
) -> Iterator[bytes]:
    documents: dict[str, Document] = {}
    if benchmark is not None:
        documents = {document.id: document for document in benchmark.documents}
    for query, pieces in run.results.items():
        if not pieces:
            yield utf8_line({"query_id": query, "results": []})
        for rank, (piece, score) in enumerate(zip(pieces, _scores(pieces), strict=True), start=1):
            row: dict[str, Any] = {"query_id": query, "rank": rank, "score": score}
            if piece.id:
                row["id"] = piece.id
            row["document_id"] = piece.document_id
            if piece.spans:
                row["spans"] = pairs_of(piece.spans)
            else:
                row["text"] = piece.text
            if piece.spans and piece.document_id in documents:
                row["digest"] = slices_digest(documents[piece.document_id].text, piece.spans)
            yield utf8_line(row)


def _scores(pieces: Sequence[Retrieved]) -> list[float]:
    scores = [float(piece.score) for piece in pieces]
    if all(map(math.isfinite, scores)) and scores == sorted(scores, reverse=True):
        return scores
    return [-float(rank) for rank in range(1, len(pieces) + 1)]


_NO_FILE_NAME = re.compile(r"[^\w.=-]+")


def write_runs(
    reports: Sequence[Report],
    benchmark: Benchmark,
    folder: Path,
) -> list[Path]:
    """Write each report's run, and the chunks that it names.

    The files of a system are its number and name with the endings ``.jsonl`` and ``.chunks.jsonl``.
    """
    digits = len(str(len(reports)))
    paths = []
    for number, report in enumerate(reports, start=1):
        if report.run is not None and report.run.pool is not None:
            stem = f"{number:0{digits}}-{_NO_FILE_NAME.sub('_', report.name)[:80].strip('_')}"
            paths.append(write_run(report.run, folder / f"{stem}.jsonl", benchmark))
            paths.append(write_pool(report.run.pool, folder / f"{stem}.chunks.jsonl", benchmark))
    return paths
