"""`stitch`: long documents made of short ones, so that chunking matters. Also sampling and writing benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.document import Document, Mark, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.benchmarks.layout import file_checksum
from chunkcore.evaluation.benchmarks.questions import QUESTION_KEYS
from chunkcore.files import write_text
from chunkcore.options import check_number
from chunkcore.outputs import BENCHMARK_NAMES, CHECKSUMS


def sample_queries(benchmark: Benchmark, count: int, *, seed: int = 0) -> Benchmark:
    """The benchmark with `count` queries (all if fewer), drawn without replacement, in order; all documents stay.

    Raises `OptionError`: `count` or `seed` is out of range.

    Source: Qu et al. (2024), section 3.1, with 100 queries.

    >>> from chunkcore.datasets import load_dataset
    >>> len(sample_queries(load_dataset("lochmere"), 10).queries)
    10
    """
    check_number("count", count, 1)
    check_number("seed", seed)
    if count >= len(benchmark.queries):
        return benchmark
    drawn = np.random.default_rng(seed).choice(len(benchmark.queries), count, replace=False)
    return replace(benchmark, queries=[benchmark.queries[number] for number in np.sort(drawn).tolist()])


def whole_sentences(benchmark: Benchmark) -> Benchmark:
    """The benchmark with each evidence widened to whole sentences, for ``F1@5[sentence]``.

    Evidence in white space outside all sentences stays.

    Source: Qu et al. (2024), section 3.2 and appendix D.

    >>> from chunkcore.document import Document
    >>> story = Document("fox.txt", "A fox naps. It dreams of a dog. It wakes.")
    >>> toy = Benchmark("toy", [story], [Query("q1", "Of whom?", (Evidence("fox.txt", Span(25, 30)),))])
    >>> whole_sentences(toy).queries[0].evidence[0].span.slice(story.text)
    'It dreams of a dog.'
    """
    sentences = {document.id: sentence_ranges(document.text) for document in benchmark.documents}

    def widened(evidence: Evidence) -> Evidence:
        (starts, ends), span = sentences[evidence.document_id].T, evidence.span
        first, after = np.searchsorted(ends, span.start, side="right"), np.searchsorted(starts, span.end, side="left")
        if first >= after:
            return evidence
        wide = Span(min(span.start, int(starts[first])), max(span.end, int(ends[after - 1])))
        return Evidence(evidence.document_id, wide)

    queries = [replace(query, evidence=tuple(map(widened, query.evidence))) for query in benchmark.queries]
    return replace(benchmark, queries=queries)


SEAM = "\n\n"  # a blank line: ends a sentence, and every strategy may cut there


def stitch(benchmark: Benchmark, *, sentences: int = 100, seed: int = 0) -> Benchmark:
    """Shuffle the documents and join them, with blank lines, into documents of about `sentences` sentences.

    A joined document is complete when the next original would take it farther from `sentences`; the last takes the
    rest. Documents without text are left out. Evidence keeps its text; marks, evidence and the questions'
    ``document_id`` move along. ``metadata["parts"]`` lists each original's ``id``, ``start``, ``end`` and ``metadata``,
    for `parts_of` and measures such as ``F1@5[part]``. Raises `OptionError`: `sentences` or `seed` is out of range.

    Source: Qu et al. (2024), appendix C: documents of about 100 sentences; how they are joined is left open.

    >>> short = [Document("fox", "A fox naps."), Document("dog", "A dog barks. It runs.")]
    >>> asked = Query("q1", "Who naps?", (Evidence("fox", Span(2, 5)),))
    >>> long = stitch(Benchmark("toy", short, [asked]), sentences=3)
    >>> [evidence] = long.queries[0].evidence
    >>> evidence.document_id, evidence.span.slice(long.documents[0].text)
    ('stitched-1', 'fox')
    """
    check_number("sentences", sentences, 1)
    check_number("seed", seed)
    groups: list[list[Document]] = []
    total = 0
    for number in np.random.default_rng(seed).permutation(len(benchmark.documents)).tolist():
        document = benchmark.documents[number]
        if document.text:
            count = len(sentence_ranges(document.text))
            if not groups or abs(total + count - sentences) > abs(total - sentences):
                groups.append([])
                total = 0
            groups[-1].append(document)
            total += count
    digits = len(str(len(groups)))
    places: dict[str, tuple[str, int]] = {}  # by an original's id: the joined document, and the start in it
    documents = [_joined(f"stitched-{number:0{digits}}", group, places) for number, group in enumerate(groups, start=1)]
    return Benchmark(
        f"{benchmark.name}, stitched",
        documents,
        [_moved_query(query, places) for query in benchmark.queries],
        benchmark.problems,
        tuple(_moved_query(query, places) for query in benchmark.without_evidence),
    )


def _joined(name: str, group: Sequence[Document], places: dict[str, tuple[str, int]]) -> Document:
    parts: list[dict[str, Any]] = []
    marks: list[Mark] = []
    start = 0
    for document in group:
        end = start + len(document.text)
        part = {"id": document.id, "start": start, "end": end}
        parts.append(part | {"metadata": dict(document.metadata)} if document.metadata else part)
        marks += [replace(mark, span=_moved(mark.span, start)) for mark in document.marks]
        places[document.id] = name, start
        start = end + len(SEAM)
    return Document(name, SEAM.join(document.text for document in group), {"parts": parts}, tuple(marks))


def _moved_query(query: Query, places: Mapping[str, tuple[str, int]]) -> Query:
    moved = ((piece.span, *places[piece.document_id]) for piece in query.evidence)
    evidence = tuple(Evidence(name, _moved(span, start)) for span, name, start in moved)
    named = query.metadata.get("document_id")
    place = places.get(named) if isinstance(named, str) else None
    metadata = {**query.metadata, "document_id": place[0]} if place else query.metadata
    return replace(query, evidence=evidence, metadata=metadata)


def _moved(span: Span, shift: int) -> Span:
    return Span(span.start + shift, span.end + shift)


# Surrogate pairs: JSON writes them like the single code point they encode.
_TWO_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def write_benchmark(benchmark: Benchmark, folder: Path | str) -> tuple[Path, Path]:
    """Write documents and questions as JSON lines, replacing the two files, which are returned.

    `load_benchmark` reads the same documents and queries. Left-out questions are not written. ``checksums.json`` beside
    them has the files' checksums, which `load_benchmark` compares: delete it to edit the files.

    Raises:
        DataError: metadata that JSON cannot hold, a question's metadata key that the format uses, or a surrogate pair
            in a text; nothing is written.
        OSError: the folder cannot be written to.

    >>> import tempfile
    >>> from chunkcore import load_benchmark, load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_benchmark(load_dataset("lochmere"), folder)
    ...     again = load_benchmark(folder)
    >>> [file.name for file in files], len(again.queries) == len(load_dataset("lochmere").queries)
    (['documents.jsonl', 'questions.jsonl'], True)
    """
    texts = {document.id: document.text for document in benchmark.documents}
    documents = []
    for document in benchmark.documents:
        row: dict[str, Any] = {"id": document.id, "text": document.text}
        row |= {"metadata": dict(document.metadata)} if document.metadata else {}
        row |= {"marks": [mark.to_dict() for mark in document.marks]} if document.marks else {}
        documents.append(_line(row, document.text, f"document {document.id!r}"))
    queries = (*benchmark.queries, *benchmark.without_evidence)
    questions = [_line(_question(query, texts), query.text, f"query {query.id!r}") for query in queries]
    first, second, checksums = (Path(folder) / name for name in (*BENCHMARK_NAMES, CHECKSUMS))
    checksums.unlink(missing_ok=True)
    files = write_text(first, "".join(documents)), write_text(second, "".join(questions))
    write_text(checksums, json.dumps({file.name: file_checksum(file) for file in files}) + "\n")
    return files


def _question(query: Query, texts: Mapping[str, str]) -> dict[str, Any]:
    taken = [key for key in query.metadata if key in QUESTION_KEYS]
    if taken:
        raise DataError(f"query {query.id!r} has the metadata {taken[0]!r}, which its line needs: call it otherwise")
    evidence = [
        {
            "document_id": piece.document_id,
            "start": piece.span.start,
            "end": piece.span.end,
            "text": piece.span.slice(texts[piece.document_id]),
        }
        for piece in query.evidence
    ]
    places = {"evidence": evidence} if evidence else {"without_evidence": True}
    row = {"id": query.id, "question": query.text, **places, "collection": query.collection}
    return row | dict(query.metadata)


def _line(row: Mapping[str, Any], text: str, what: str) -> str:
    if pair := _TWO_HALVES.search(text):
        raise DataError(f"{what} has a split character (two surrogates) at {pair.start()}: join or replace them")
    try:
        # ASCII, because UTF-8 cannot encode unpaired surrogates.
        return json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{what} has metadata that JSON cannot hold ({error}): make them plain values") from error
