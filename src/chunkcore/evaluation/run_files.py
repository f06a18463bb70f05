"""`read_run` and `write_run`: runs as JSON lines, or in TREC's six columns of another program; also pools of chunks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError, OptionError, check_type, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, slices_digest
from chunkcore.evaluation.results import Report
from chunkcore.files import checksum, json_lines, text_lines, utf8_line, write_parts
from chunkcore.locating.alignment import Aligner
from chunkcore.run import Retrieved, Run
from chunkcore.spans import pairs_of
from chunkcore.text import Document, Span


def read_pool(path: Path | str, benchmark: Benchmark) -> dict[str, Retrieved]:
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
        name = row.get("id")
        if not isinstance(name, str) or not name:
            got = f"the keys {', '.join(map(repr, row))}"[:120] if row else "an empty object"
            raise DataError(
                f"{where}: expected a chunk with an id, as chunkcore chunk writes it, got {got}"
            )
        if name in pool:
            raise DataError(
                f"{where}: a second chunk has the id {echo(name)}: cut the documents once, into one file"
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
        # A derived text is checked by the digest of its passage.
        derived = row.get("derived") is True
        digest = row.get("digest") if derived else None
        changed = digest is not None and digest != slices_digest(document.text, spans)
        if changed or (text and not derived and not _stands(text, spans, document)):
            raise DataError(
                f"{where}: the chunk's text does not stand at its spans in {document.id!r}: the chunks were cut from "
                "another version of it; cut this one"
            )
        pool[name] = Retrieved(document.id, spans, 0.0, text, id=name)
    if not pool:
        raise DataError(
            f"{place} holds no chunks: expected a line a chunk, as chunkcore chunk writes it"
        )
    return pool


def _with_header(kind: str, lines: Iterable[bytes]) -> list[bytes]:
    """The lines after one with their number and checksum, for `_checked_rows`."""
    body = list(lines)
    header = {
        "format": f"chunkcore {kind} 1",
        "lines": len(body),
        "checksum": checksum(b"".join(body)),
    }
    return [utf8_line(header), *body]


def _checked_rows(path: Path, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines' objects, compared with the header that we wrote; a file of another program has none."""
    for number, row in json_lines(path):
        if number == 1 and row.get("format") == f"chunkcore {kind} 1":
            with path.open("rb") as file:
                body = list(file)[1:]
            if row != {
                "format": row["format"],
                "lines": len(body),
                "checksum": checksum(b"".join(body)),
            }:
                raise DataError(
                    f"{path}, line 1: what follows is not what was written ({row.get('lines')} lines then, {len(body)} "
                    "now): the file was damaged or edited; write it again, or take line 1 away to accept it"
                )
        else:
            yield number, row


def _read_spans(value: Any, document: Document, where: str) -> tuple[Span, ...]:
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


def _stands(text: str, spans: Sequence[Span], document: Document) -> bool:
    place = 0
    for span in spans:
        part = span.slice(document.text)
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(spans) > 1 or place == len(text)


def write_pool(pool: Sequence[Retrieved], path: Path | str, benchmark: Benchmark) -> Path:
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
            plain: dict[str, Any] = {"document_id": document.id, "id": piece.id}
            plain |= {"spans": pairs_of(piece.spans), "text": piece.text}
            if not _stands(piece.text, piece.spans, document):
                plain |= {"derived": True, "digest": slices_digest(document.text, piece.spans)}
            yield utf8_line(plain)

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
    check_type("the path of a run", path, str | Path, "a path")
    check_type("the path of chunks", chunks, str | Path | None, "a path, or None")
    check_type("the benchmark", benchmark, Benchmark, "a Benchmark, as of load_benchmark")
    place = Path(path)
    pool = read_pool(chunks, benchmark) if chunks is not None else {}
    reader = _RunReader(benchmark, pool, aligner)
    for where, row in _json_rows(place) if _is_json(place) else _trec_rows(place):
        reader.add(where, row)
    if not reader.results:
        raise DataError(f"{place} holds no hits: expected a line a hit, TREC's six columns or JSON")
    return Run(
        name or place.name.removesuffix(place.suffix),
        reader.results,
        list(pool.values()) if pool else None,
    )


def write_run(run: Run, path: Path | str, benchmark: Benchmark | None = None) -> Path:
    """Write a run's results atomically as JSON lines, one hit each, for `read_run`.

    If a query's scores rise, or one is not finite, minus the rank is written instead. A hit has its place, or its text
    if it is not located; with the benchmark also a digest of the text at the place, so that `read_run` detects changed
    documents. Raises `OSError`: the file cannot be written.
    """
    check_type("a run", run, Run, "a Run, as of run_retriever")
    check_type("the path of a run", path, str | Path, "a path")
    check_type("the benchmark", benchmark, Benchmark | None, "a Benchmark, or None")
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
    def __init__(
        self, benchmark: Benchmark, pool: Mapping[str, Retrieved], aligner: Aligner | None
    ) -> None:
        self.results: dict[str, list[Retrieved]] = {}
        self._benchmark, self._pool, self._aligner = benchmark, pool, aligner
        self._queries = {query.id for query in benchmark.queries}
        self._documents = {document.id: document for document in benchmark.documents}
        self._seen: dict[str, dict[object, str]] = {}
        self._last: dict[str, tuple[float | None, float | None]] = {}

    def add(self, where: str, row: Mapping[str, Any]) -> None:
        query = row.get("query_id")
        if not isinstance(query, str):
            raise DataError(f'{where}: expected a "query_id" that is a string, got {query!r:.60}')
        if query not in self._queries:
            raise DataError(
                f"{where}: the query {query!r} is none of the {len(self._queries)} of {self._benchmark.name!r}, such "
                f"as {echo(min(self._queries, default=''))}: give the questions that were asked"
            )
        pieces = self.results.setdefault(query, [])
        if "results" in row:
            return
        texts = {key: "" if row.get(key) is None else row[key] for key in _TEXTS}
        for key, value in texts.items():
            if not isinstance(value, str):
                raise DataError(f'{where}: "{key}" is a string, got {value!r:.60}')
        spans = row.get("spans")
        if not (texts["id"] or texts["document_id"] or texts["text"]):
            raise DataError(
                f'{where}: a hit has "document_id" and "spans", a "text", or the "id" of a chunk'
            )
        rank, score = (
            None if row.get(key) is None else _number(row[key], key, where)
            for key in ("rank", "score")
        )
        self._check_order(where, query, rank, score)
        piece = self._placed(where, texts, spans, 0.0 if score is None else score)
        # Two hits with the same text may be different passages.
        is_text = texts["text"] and spans is None
        place = texts["id"] or (None if is_text else (piece.document_id, piece.spans))
        first = (
            where if place is None else self._seen.setdefault(query, {}).setdefault(place, where)
        )
        if first is not where:
            raise DataError(
                f"{where}: the query {echo(query)} has this hit already, in {first.rpartition(', ')[2]}"
            )
        pieces.append(piece)

    def _check_order(self, where: str, query: str, rank: float | None, score: float | None) -> None:
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

    def _placed(self, where: str, texts: Mapping[str, str], spans: Any, score: float) -> Retrieved:
        name, text, digest = texts["id"], texts["text"], texts["digest"]
        document = self._documents.get(texts["document_id"])
        if document is None and (texts["document_id"] or spans is not None):
            raise DataError(f"{where}: {self._no_document(texts['document_id'])}")
        places = (
            _read_spans(spans, document, where)
            if document is not None and spans is not None
            else ()
        )
        if (
            document is not None
            and places
            and digest
            and slices_digest(document.text, places) != digest
        ):
            raise DataError(
                f"{where}: in {echo(document.id)} another text stands at these spans than when the run was written: "
                "give the documents that were searched, or search these"
            )
        if text:
            self._aligner = self._aligner or Aligner(self._benchmark.documents)
            piece = self._aligner.locate(
                text, document_id=texts["document_id"], spans=places, score=score
            )
            return replace(piece, id=name)
        if document is not None and places:
            return Retrieved(document.id, places, score, id=name)
        if name in self._pool:
            return self._pool[name].with_score(score)
        if document is None and self._pool:
            raise DataError(
                f"{where}: {name!r} is none of the {len(self._pool):,} chunks: give those searched"
            )
        whole = document or self._documents.get(name)
        if whole is None:
            raise DataError(f"{where}: {self._no_document(name)}")
        return Retrieved(
            whole.id, (Span(0, len(whole.text)),) if whole.text else (), score, id=name
        )

    def _no_document(self, name: str) -> str:
        if not name:
            return 'there are "spans", and no "document_id" that says what they are of: give both, or the text alone'
        return (
            f"{name!r} is none of the {len(self._documents):,} documents of {self._benchmark.name!r}: give the "
            "documents that were searched or, for a run of chunks, the file of chunks"
        )


def _number(value: Any, what: str, where: str) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            if math.isfinite(number := float(value)):
                return number
    raise DataError(f"{where}: the {what} is a finite number, got {value!r:.60}")


def _json_run(run: Run, benchmark: Benchmark | None) -> Iterator[bytes]:
    documents = (
        {document.id: document for document in benchmark.documents} if benchmark is not None else {}
    )
    for query, pieces in run.results.items():
        if not pieces:
            yield utf8_line({"query_id": query, "results": []})
        for rank, (piece, score) in enumerate(zip(pieces, _scores(pieces), strict=True), start=1):
            plain: dict[str, Any] = {"query_id": query, "rank": rank, "score": score}
            plain |= {"id": piece.id} if piece.id else {}
            plain |= {"document_id": piece.document_id}
            plain |= {"spans": pairs_of(piece.spans)} if piece.spans else {"text": piece.text}
            if piece.spans and piece.document_id in documents:
                plain["digest"] = slices_digest(documents[piece.document_id].text, piece.spans)
            yield utf8_line(plain)


def _scores(pieces: Sequence[Retrieved]) -> list[float]:
    scores = [float(piece.score) for piece in pieces]
    if all(map(math.isfinite, scores)) and scores == sorted(scores, reverse=True):
        return scores
    return [-float(rank) for rank in range(1, len(pieces) + 1)]


_NO_FILE_NAME = re.compile(r"[^\w.=-]+")


def write_runs(reports: Sequence[Report], benchmark: Benchmark, folder: Path) -> list[Path]:
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
