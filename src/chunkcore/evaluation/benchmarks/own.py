"""The layout of the Chroma report's data: ``corpora/*.md`` and ``questions_df.csv``."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.documents import load_documents
from chunkcore.evaluation.benchmarks.questions import question_lines
from chunkcore.evaluation.benchmarks.rows import Contents, Layout, Row, lacking
from chunkcore.files import csv_rows, json_lines, read_text

__all__ = ["CHROMA", "CHUNKCORE", "Questions", "chroma_rows", "question_rows", "read_own", "section_rows"]

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


Questions = str | Path | Iterable[Mapping[str, Any]]


def read_own(root: Path, questions: Questions | None, leave_out: Collection[Path] = ()) -> Contents:
    """The documents, but for the files that are none, and the questions: those given, or the folder's own."""
    own = root / "questions.jsonl"
    given = own if questions is None else questions
    left_out = [own, *leave_out, *([Path(given)] if isinstance(given, str | Path) else [])]
    folder = root / "documents" if own.is_file() and (root / "documents").is_dir() else root
    return Contents(load_documents(folder, leave_out=left_out), question_rows(given))


def question_rows(questions: Questions) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Questions with their places, from lines, a CSV of the Chroma report's columns, or objects."""
    if not isinstance(questions, str | Path):
        return ((f"question {number}", row) for number, row in enumerate(questions, start=1))
    return chroma_rows(Path(questions)) if Path(questions).suffix.lower() == ".csv" else question_lines(Path(questions))


def section_rows(root: Path) -> Iterator[Row]:
    """The lines of a ``documents.jsonl`` whose documents have ``boundaries``."""
    file = root / "documents.jsonl" if root.is_dir() else root
    return ((f"{file}, line {number}", row) for number, row in json_lines(file))


CHUNKCORE = Layout(
    name="chunkcore",
    files="questions.jsonl, and documents.jsonl or text files",
    holds="evidence",
    lacks=lambda root: lacking(root, "questions.jsonl"),
    read=read_own,
    boundaries=section_rows,
    takes_questions=True,
)
