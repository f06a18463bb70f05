"""`load_benchmark`: documents and questions from a folder or from files, whichever way they are laid out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark, Problem, Query
from chunkcore.evaluation.loading.chroma import load_chroma_corpora, load_chroma_questions
from chunkcore.evaluation.loading.documents import load_documents
from chunkcore.evaluation.loading.questions import load_questions, read_questions, require_some

__all__ = ["load_benchmark"]


def load_benchmark(
    documents: str | Path | Sequence[Document],
    questions: str | Path | Iterable[Mapping[str, Any]] | None = None,
    *,
    name: str = "",
    leave_out: Collection[Path] = (),
) -> Benchmark:
    """A benchmark from files.

    A folder is read by what it holds: ``questions_df.csv`` and ``corpora/`` (the Chroma report's layout);
    ``documents.jsonl`` or a folder ``documents/``; or else its files are the documents. Its
    ``questions.jsonl`` holds the questions where none are given.

    A question whose evidence is not found, or is found more than once, is left out and stands in
    `Benchmark.problems` with the reason. Evidence is never guessed.

    Args:
        documents: a folder, a text file, a ``documents.jsonl``, or the documents themselves.
        questions: a ``questions.jsonl``, a ``.csv`` of the Chroma report's columns, or such lines as objects.
        name: the benchmark's; that of the folder or file by default.
        leave_out: files that are no documents, should they lie in the folder.

    Raises:
        DataError: nothing there, files that cannot be read, or no question that can be used.

    >>> story = Document("fox.txt", "The fox naps. The dog naps.")
    >>> lines = [{"question": "Who?", "evidence": ["The fox"]}, {"question": "What?", "evidence": ["naps"]}]
    >>> loaded = load_benchmark([story], lines, name="toy")
    >>> [query.id for query in loaded.queries], [problem.query_id for problem in loaded.problems]
    (['q1'], ['q2'])
    """
    if isinstance(questions, str | Path) and (Path(questions).is_dir() or not Path(questions).exists()):
        raise DataError(f"{questions} is no file: expected a questions.jsonl or a questions_df.csv")
    if not isinstance(documents, str | Path):
        return _assemble(name or "benchmark", list(documents), questions)
    root = Path(documents)
    name = name or (root.resolve().name if root.is_dir() else root.stem)
    if (root / "corpora").is_dir() and (root / "questions_df.csv").is_file():
        return _assemble(name, load_chroma_corpora(root / "corpora"), questions or root / "questions_df.csv")
    own = root / "questions.jsonl"
    if questions is None and own.is_file():
        questions = own
    left_out = [own, *leave_out, *([Path(questions)] if isinstance(questions, str | Path) else [])]
    folder = root / "documents" if own.is_file() and (root / "documents").is_dir() else root
    return _assemble(name, load_documents(folder, leave_out=left_out), questions)


def _assemble(
    name: str, documents: list[Document], questions: str | Path | Iterable[Mapping[str, Any]] | None
) -> Benchmark:
    if questions is None:
        raise DataError(
            f"there are {len(documents)} documents in {name!r}, and no questions: "
            "expected a questions.jsonl beside them, or the path of one"
        )
    queries, problems = _read(questions, documents)
    require_some(queries, problems, str(questions) if isinstance(questions, str | Path) else "the questions")
    return Benchmark(name, documents, queries, problems)


def _read(
    questions: str | Path | Iterable[Mapping[str, Any]], documents: list[Document]
) -> tuple[list[Query], tuple[Problem, ...]]:
    if not isinstance(questions, str | Path):
        return read_questions(((f"question {i}", row) for i, row in enumerate(questions, start=1)), documents)
    if Path(questions).suffix.lower() == ".csv":
        return load_chroma_questions(questions, documents)
    return load_questions(questions, documents)
