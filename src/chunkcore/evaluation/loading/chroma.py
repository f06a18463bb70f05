"""The layout of the Chroma report's data: ``corpora/*.md`` and ``questions_df.csv``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.loading.files import lacking
from chunkcore.evaluation.loading.rows import Contents, Layout, Row
from chunkcore.evaluation.textfiles import csv_rows, read_text

__all__ = ["CHROMA", "chroma_rows"]

_COLUMNS = ("question", "references", "corpus_id")
_QUESTIONS = "questions_df.csv"


def chroma_rows(path: Path) -> Iterator[Row]:
    """The rows of a ``questions_df.csv``.

    Columns: question, references (a JSON list of ``{"content", "start_index", "end_index"}``) and corpus_id, which
    becomes the query's collection. A question's id is its corpus and its place in the file: ``finance-17``.

    Raises:
        DataError: the file cannot be read, is no CSV, or lacks a column.
    """
    for number, (_, row) in enumerate(csv_rows(path, _COLUMNS), start=1):
        corpus = row["corpus_id"] or ""
        others = {key: value for key, value in row.items() if key not in _COLUMNS}
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


def _read(root: Path, questions: Path | None) -> Contents:
    """Each Markdown file is a document, under its name without ``.md``, in alphabetical order."""
    files = sorted((root / "corpora").glob("*.md"))
    if not files:
        raise DataError(f"{root / 'corpora'} holds no corpora: expected Markdown files such as finance.md")
    corpora = [Document(file.stem, read_text(file)) for file in files]
    return Contents(corpora, chroma_rows(questions or root / _QUESTIONS))


CHROMA = Layout(
    name="chroma",
    files=f"corpora/*.md, {_QUESTIONS}",
    holds="evidence",
    lacks=lambda root: lacking(root, "corpora", _QUESTIONS),
    read=_read,
    takes_questions=True,
)
