"""`read_run` and `write_run`: runs as JSON lines."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, slices_digest
from chunkcore.evaluation.results import Report
from chunkcore.files import check_no_link, json_lines, utf8_line, write_parts
from chunkcore.locating.alignment import Aligner
from chunkcore.plain import JsonObject, digest
from chunkcore.run import Retrieved, Run
from chunkcore.spans import pairs_of
from chunkcore.text import Document, Span

_FORMAT = "chunkcore run 1"


def _header(body: Sequence[bytes]) -> JsonObject:
    """The first line of a file that we write; a file of another program has none."""
    checksum = digest(b"".join(body))
    return {"format": _FORMAT, "lines": len(body), "checksum": checksum}


def _check_header(path: Path, header: JsonObject) -> None:
    """Raise `DataError`: what follows the header is not what we wrote."""
    with path.open("rb") as file:
        body = list(file)[1:]
    if header != _header(body):
        raise DataError(
            f"{path}, line 1: what follows is not what was written ({header.get('lines')} lines then, {len(body)} "
            "now): the file was damaged or edited; write it again, or take line 1 away to accept it"
        )


def _read_spans(value: Any, document: Document) -> tuple[Span, ...]:
    try:
        spans = tuple(Span(*pair) for pair in value)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"spans are pairs of offsets such as [[0, 40]], got {value!r:.80}"
        ) from error
    if not spans:
        raise DataError("there is no span: expected pairs of offsets such as [[0, 40]]")
    last = max(span.end for span in spans)
    if last > document.size:
        raise DataError(
            f"a span ends at {last}, its document {echo(document.id)} at {document.size}"
        )
    return spans


def read_run(
    path: Path | str,
    benchmark: Benchmark,
    *,
    name: str = "",
    aligner: Aligner | None = None,
) -> Run:
    """A system's results from a file.

    A line has one hit, ``{"query_id", "document_id", "spans", "text", "score", "rank"}``, or one query,
    ``{"query_id", "results": [hit, ...]}``. A hit is placed by its spans (offsets in code points), else by its text
    (`Aligner`); else it is its whole document. Rank and score are optional. A "digest" of the text at the spans is
    checked.

    Args:
        name: the run's; by default the file's stem.
        aligner: of the benchmark's documents, to share its index between runs.

    Raises `DataError`: with file and line: a malformed line, an unknown query or document, a non-finite score, a
    repeated hit, ranks or scores out of order, or a wrong digest. Or no hits, or a damaged file.
    """
    file = Path(path)
    reader = _RunReader(benchmark, aligner)
    for line, row in json_lines(file):
        if line == 1 and row.get("format") == _FORMAT:
            if file.is_file():  # a pipe is not read twice
                _check_header(file, row)
            continue
        try:
            reader.add(line, row)
        except DataError as error:
            raise DataError(f"{file}, line {line}: {error}") from error
    if not reader.results:
        raise DataError(f"{file} holds no hits: expected a line of JSON a hit")
    return Run(name or file.stem, reader.results)


def write_run(
    run: Run,
    path: Path | str,
    benchmark: Benchmark | None = None,
) -> Path:
    """Write a run's results atomically as JSON lines, one hit each, for `read_run`.

    If a query's scores rise, or one is not finite, only the ranks are written. A hit has its place, or its text
    if it is not located; with the benchmark also a digest of the text at the place, so that `read_run` detects changed
    documents. Raises `OSError`: the file cannot be written.
    """
    documents = {} if benchmark is None else {one.id: one for one in benchmark.documents}
    body = []
    for query, ranked in run.results.items():
        pieces = list(ranked)
        if not pieces:
            body.append(utf8_line({"query_id": query, "results": []}))
        scores = [float(piece.score) for piece in pieces]
        is_falling = scores == sorted(scores, reverse=True) and all(map(math.isfinite, scores))
        for rank, piece in enumerate(pieces, start=1):
            row: JsonObject = {"query_id": query, "rank": rank}
            if is_falling:
                row["score"] = scores[rank - 1]
            if piece.id:
                row["id"] = piece.id
            row["document_id"] = piece.document_id
            if not piece.spans:
                row["text"] = piece.text
            else:
                row["spans"] = pairs_of(piece.spans)
                if piece.document_id in documents:
                    row["digest"] = slices_digest(documents[piece.document_id].text, piece.spans)
            body.append(utf8_line(row))
    return write_parts(Path(path), [utf8_line(_header(body)), *body])


class _RunReader:
    """Places the hits of a file, line by line."""

    def __init__(
        self,
        benchmark: Benchmark,
        aligner: Aligner | None,
    ) -> None:
        self.results: dict[str, list[Retrieved]] = {}
        self._benchmark = benchmark
        self._aligner = aligner or Aligner(benchmark.documents)
        self._queries = {query.id for query in benchmark.queries}
        self._seen: dict[object, int] = {}  # the line of each hit, by its query and place
        self._last: dict[str, tuple[float, float]] = {}  # rank and score of the hit before, or NaN

    def add(self, line: int, row: JsonObject) -> None:
        """Add a line's hit, or all of its "results"; without any it says only that its question was asked."""
        query = row.get("query_id")
        if not isinstance(query, str | int):
            raise DataError(
                f'expected a "query_id" that is a string or a whole number, got {query!r:.60}'
            )
        query = str(query)  # as those of a benchmark
        if query not in self._queries:
            raise DataError(
                f"the query {query!r} is none of the {len(self._queries)} of {self._benchmark.name!r}, such "
                f"as {echo(min(self._queries, default=''))}: give the questions that were asked"
            )
        pieces = self.results.setdefault(query, [])
        hits = row.get("results", row)
        if not isinstance(hits, list):
            hits = [hits]
        for hit in hits:
            if not isinstance(hit, dict):
                raise DataError(f"a hit is a JSON object, got {type(hit).__name__}")
            piece = self._placed(hit, self._score(query, hit))
            # Two hits that are placed by the same text may be different passages.
            if piece.id or piece.match == "spans":
                place = query, piece.id or (piece.document_id, piece.spans)
                first = self._seen.setdefault(place, line)
                if first != line:
                    raise DataError(
                        f"the query {echo(query)} has this hit already, in line {first}"
                    )
            pieces.append(piece)

    def _score(self, query: str, hit: JsonObject) -> float:
        """The score, 0 without one. Raises `DataError`: rank or score do not follow on the hit before."""
        rank, score = _number(hit, "rank"), _number(hit, "score")
        last_rank, last_score = self._last.get(query, (math.nan, math.nan))
        if rank <= last_rank:
            raise DataError(
                f"rank {rank:g} of the query {query!r} comes after rank {last_rank:g}: sort them"
            )
        if score > last_score:
            raise DataError(
                f"the score {score:g} of the query {query!r} comes after {last_score:g}, which is lower"
            )
        self._last[query] = rank, score
        return 0.0 if math.isnan(score) else score

    def _placed(self, hit: JsonObject, score: float) -> Retrieved:
        """A hit by its spans, its text, or as its whole document."""
        text = hit.get("text") or ""
        if not isinstance(text, str):
            raise DataError(f'"text" is a string, got {echo(text)}')
        values = [hit.get(key) for key in ("document_id", "id", "digest")]
        document_id, name, stated = ("" if value is None else str(value) for value in values)
        spans = hit.get("spans")
        if spans is not None and not document_id:
            raise DataError(
                'there are "spans", and no "document_id" that says what they are of: give both, or the text alone'
            )
        if not (document_id or text):
            raise DataError('a hit has "document_id" and "spans", or a "text"')
        places: tuple[Span, ...] = ()
        if document_id:
            document = self._benchmark.document(document_id)
        if spans is not None:
            places = _read_spans(spans, document)
            if stated not in ("", slices_digest(document.text, places)):
                raise DataError(
                    f"in {echo(document.id)} another text stands at these spans than when the run was "
                    "written: give the documents that were searched, or search these"
                )
        if text:
            piece = self._aligner.locate(text, document_id=document_id, spans=places, score=score)
            return replace(piece, id=name)
        if not places and document.text:
            places = (Span(0, document.size),)
        return Retrieved(document_id, places, score, id=name)


def _number(row: JsonObject, key: str) -> float:
    """A finite number; NaN where there is none."""
    value = row.get(key)
    number = math.nan
    if value is None:
        return number
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
    if not math.isfinite(number):
        raise DataError(f"the {key} is a finite number, got {value!r:.60}")
    return number


_NO_FILE_NAME = re.compile(r"[^\w.=-]+")


def write_runs(
    reports: Sequence[Report],
    benchmark: Benchmark,
    folder: Path,
) -> list[Path]:
    """Write each report's run: its number and name with the ending ``.run.jsonl``."""
    digits = len(str(len(reports)))
    paths = []
    for number, report in enumerate(reports, start=1):
        if report.run is not None:
            stem = f"{number:0{digits}}-{_NO_FILE_NAME.sub('_', report.name)[:80].strip('_')}"
            file = folder / f"{stem}.run.jsonl"
            check_no_link(file)
            paths.append(write_run(report.run, file, benchmark))
    return paths
