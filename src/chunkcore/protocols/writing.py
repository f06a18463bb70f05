"""`write_benchmark`: a folder of ``documents.jsonl`` and ``questions.jsonl`` that `load_benchmark` reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark, Query
from chunkcore.outputs import BENCHMARK_NAMES

__all__ = ["BENCHMARK_NAMES", "write_benchmark"]

# Keys of a line that are no metadata when it is read again; "metadata" would be read as one key more.
_QUESTION_KEYS = ("id", "question", "evidence", "spans", "collection", "without_evidence")
# Two code points that JSON can only write as what it writes one other code point as.
_TWO_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def write_benchmark(benchmark: Benchmark, folder: Path | str) -> tuple[Path, Path]:
    """Write documents and questions as JSON lines; a file that is there is replaced whole.

    `load_benchmark` gives the same documents and queries again, but for marks, which the format has no place for.
    Questions that were left out are not written.

    Returns:
        The two files.

    Raises:
        DataError: metadata are no plain JSON values, a question's have a key that the format uses, or a text has a
            pair of surrogates that is no character; nothing is written then.
        OSError: the folder cannot be written to.

    >>> import tempfile
    >>> from chunkcore import load_benchmark, load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_benchmark(load_dataset("lochmere"), folder)
    ...     again = load_benchmark(folder)
    >>> [file.name for file in files], len(again.queries) == len(load_dataset("lochmere").queries)
    (['documents.jsonl', 'questions.jsonl'], True)
    """
    from chunkcore.report.files import write_text  # here, as importing chunkcore is not to import the report

    texts = {document.id: document.text for document in benchmark.documents}
    documents = [_line(_document(each), each.text, f"document {each.id!r}") for each in benchmark.documents]
    asked = (*benchmark.queries, *benchmark.without_evidence)
    questions = [_line(_question(each, texts), each.text, f"query {each.id!r}") for each in asked]
    first, second = (Path(folder) / name for name in BENCHMARK_NAMES)
    return write_text(first, "".join(documents)), write_text(second, "".join(questions))


def _document(document: Document) -> dict[str, Any]:
    row: dict[str, Any] = {"id": document.id, "text": document.text}
    return row | {"metadata": dict(document.metadata)} if document.metadata else row


def _question(query: Query, texts: Mapping[str, str]) -> dict[str, Any]:
    taken = [key for key in query.metadata if key in _QUESTION_KEYS]
    if taken:
        raise DataError(f"query {query.id!r} has the metadata {taken[0]!r}, which its line needs: call it otherwise")
    evidence = [
        {
            "document_id": each.document_id,
            "start": each.span.start,
            "end": each.span.end,
            "text": each.span.slice(texts[each.document_id]),
        }
        for each in query.evidence
    ]
    told = {"evidence": evidence} if evidence else {"without_evidence": True}
    row = {"id": query.id, "question": query.text, **told, "collection": query.collection}
    return row | dict(query.metadata)


def _line(row: Mapping[str, Any], text: str, what: str) -> str:
    if found := _TWO_HALVES.search(text):
        raise DataError(f"{what} has a split character (two surrogates) at {found.start()}: join or replace them")
    try:
        # In ASCII, so that unpaired surrogates can be written at all.
        return json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{what} has metadata that JSON cannot hold ({error}): make them plain values") from error
