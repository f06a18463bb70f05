"""The layout of the Chroma report's data: ``corpora/*.md`` and ``questions_df.csv``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Problem, Query
from chunkcore.evaluation.loading.questions import read_questions
from chunkcore.evaluation.textfiles import read_text

__all__ = ["load_chroma_corpora", "load_chroma_questions"]

_COLUMNS = ("question", "references", "corpus_id")


def load_chroma_corpora(folder: str | Path) -> list[Document]:
    """Each Markdown file of the folder as a document, under its name without ``.md``, in alphabetical order.

    Raises:
        DataError: there is none, or one is empty or not UTF-8.
    """
    files = sorted(Path(folder).glob("*.md"))
    if not files:
        raise DataError(f"{folder} holds no corpora: expected Markdown files such as finance.md")
    return [Document(file.stem, read_text(file)) for file in files]


def load_chroma_questions(path: str | Path, corpora: Sequence[Document]) -> tuple[list[Query], tuple[Problem, ...]]:
    """The questions of a ``questions_df.csv``, and those that had to be left out.

    Columns: question, references (a JSON list of ``{"content", "start_index", "end_index"}``) and
    corpus_id, which becomes the query's collection. A question's id is its corpus and its place in the
    file: ``finance-17``.

    Raises:
        DataError: the file cannot be read, is no CSV, or lacks a column.
    """
    return read_questions(_rows(Path(path)), corpora)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    # newline="" as the csv module wants it: a line feed inside of quotes stays what it is.
    table = csv.DictReader(io.StringIO(read_text(path).removeprefix("\ufeff"), newline=""), strict=True)
    try:
        missing = [column for column in _COLUMNS if column not in (table.fieldnames or ())]
        if missing:
            raise DataError(
                f"{path} lacks the column {' and '.join(missing)}: expected {', '.join(_COLUMNS)}, "
                f"got {', '.join(table.fieldnames or ()) or 'none'}"
            )
        for number, row in enumerate(table, start=1):
            corpus = row["corpus_id"] or ""
            others = {key: value for key, value in row.items() if key not in _COLUMNS and key is not None}
            yield (
                f"row {number}",
                {
                    **others,
                    "id": f"{corpus}-{number}",
                    "question": row["question"],
                    "document_id": corpus,
                    "collection": corpus,
                    "evidence": _references(row["references"]),
                },
            )
    except csv.Error as error:
        raise DataError(f"{path}, line {table.line_num}: not CSV ({error})") from error


def _references(written: str | None) -> Any:
    """The references as entries of evidence; whatever is no such list is handed on, to be refused by name."""
    try:
        references = json.loads(written or "")
    except (ValueError, RecursionError):
        return written
    if not isinstance(references, list):
        return written
    return [_entry(each) if isinstance(each, dict) else each for each in references]


def _entry(reference: dict[str, Any]) -> dict[str, Any]:
    return {
        "start": reference.get("start_index"),
        "end": reference.get("end_index"),
        "text": reference.get("content"),
    }
