"""Files of documents and questions: our own, and the Chroma report's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from chunkcore.errors import DataError, echo
from chunkcore.files import check_unchanged, csv_rows, json_lines, read_text, text_lines
from chunkcore.reading.folders import Row, load_documents
from chunkcore.text import Document

QUESTION_NAMES = ("question", "query", "user_input", "prompt")
Questions = str | Path | Iterable[Mapping[str, Any]]


class Contents(NamedTuple):
    """Documents, and rows of questions for `QuestionReader`; files that were not read, with the reasons.

    `is_own`: the user wrote the questions, so that two of one id are a mistake.
    """

    documents: list[Document]
    questions: Iterable[Row] = ()
    unread: Mapping[str, str] = {}
    is_own: bool = False


def is_chroma(root: Path) -> bool:
    """Whether a folder holds the data of the Chroma report."""
    return (root / "corpora").is_dir() and (root / "questions_df.csv").is_file()


def read_chroma(root: Path) -> Contents:
    """The Chroma report's data: each Markdown file is a document, named without ``.md``, in alphabetical order."""
    files = sorted((root / "corpora").glob("*.md"))
    if not files:
        raise DataError(
            f"{root / 'corpora'} holds no corpora: expected Markdown files such as finance.md"
        )
    corpora = [Document(file.stem, read_text(file)) for file in files]
    return Contents(corpora, _table_rows(root / "questions_df.csv", _COLUMNS))


def read_own(
    root: Path,
    questions: Questions | None = None,
    leave_out: Collection[Path] = (),
    *,
    follow_links: bool = False,
) -> Contents:
    """Our own files' documents, without `leave_out`, and the given questions or else the folder's own."""
    check_unchanged(root / "documents.jsonl")
    questions_file = root / "questions.jsonl"
    if questions is None:
        questions = questions_file
    left_out = [questions_file, *leave_out]
    if isinstance(questions, str | Path):
        left_out.append(Path(questions))
    folder = root / "documents"
    if not (questions_file.is_file() and folder.is_dir()):
        folder = root
    unread: dict[str, str] = {}
    documents = load_documents(folder, leave_out=left_out, unread=unread, follow_links=follow_links)
    return Contents(documents, question_rows(questions), unread, is_own=True)


def question_rows(questions: Questions) -> Iterable[Row]:
    """Questions with their places, from JSON lines, a CSV, or objects; docs/reference/formats.md has their keys.

    A line may also have ``spans``, pairs of offsets into its document, and ``evidence`` spells out their texts. Raises
    `DataError`: the file cannot be read, or a line is not a JSON object.
    """
    if not isinstance(questions, str | Path):
        return [(f"question {number}", row) for number, row in enumerate(questions, start=1)]
    path = Path(questions)
    kind = path.suffix.lower()
    if kind == ".csv":
        return _table_rows(path)
    if kind == ".txt" and not _starts_with_an_object(path):
        raise DataError(
            f"{path} is without evidence: mark it with chunkcore questions label DOCS --questions {path}"
        )
    check_unchanged(path)
    return ((f"line {number}", row) for number, row in json_lines(path))


def _starts_with_an_object(path: Path) -> bool:
    for _, line in text_lines(path):
        return line.startswith("{")
    return True


_COLUMNS = ("question", "references", "corpus_id")


def _table_rows(path: Path, columns: Collection[str] = ()) -> Iterator[Row]:
    """The rows of the Chroma report's CSV, or of another with columns that `understood` knows."""
    for number, (line, row) in enumerate(csv_rows(path, columns), start=1):
        if all(column in row for column in _COLUMNS):
            yield f"row {number}", _chroma_row(number, row)
        elif any(name in row for name in QUESTION_NAMES):
            yield f"line {line}", {key: value for key, value in row.items() if value}
        else:
            names = " or ".join(QUESTION_NAMES)
            raise DataError(
                f"{path} has no column of questions: expected {names}, got {echo(', '.join(row))}"
            )


def _chroma_row(number: int, row: Mapping[str, str | None]) -> dict[str, Any]:
    corpus = row["corpus_id"] or ""
    evidence: Any = row["references"]
    with suppress(ValueError, RecursionError):
        references = json.loads(evidence or "")
        if isinstance(references, list):
            evidence = [_chroma_evidence(reference) for reference in references]
    others = {key: value for key, value in row.items() if key not in _COLUMNS}
    return others | {
        "id": f"{corpus}-{number}",
        "question": row["question"],
        "document_id": corpus,
        "collection": corpus,
        "evidence": evidence,
    }


def _chroma_evidence(reference: Any) -> Any:
    if not isinstance(reference, dict):
        return reference
    keys = {"start": "start_index", "end": "end_index", "text": "content"}
    return {ours: reference.get(theirs) for ours, theirs in keys.items()}
