"""Our own layout: documents as text files or ``documents.jsonl``, and ``questions.jsonl``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chunkcore.evaluation.loading.chroma import chroma_rows
from chunkcore.evaluation.loading.documents import load_documents
from chunkcore.evaluation.loading.files import lacking
from chunkcore.evaluation.loading.questions import question_lines
from chunkcore.evaluation.loading.rows import Contents, Layout, Row
from chunkcore.evaluation.textfiles import json_lines

__all__ = ["CHUNKCORE", "Questions", "question_rows", "read_own", "section_rows"]

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
