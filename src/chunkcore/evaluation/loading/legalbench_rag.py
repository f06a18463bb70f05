"""LegalBench-RAG (Pipitone and Houir Alami, 2024): questions about contracts and policies, with exact snippets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacking, regular_files
from chunkcore.evaluation.loading.rows import Contents, Layout, Row, member
from chunkcore.evaluation.textfiles import read_json, read_text

__all__ = ["LEGALBENCH_RAG"]


def _read(root: Path, _: Path | None) -> Contents:
    """A document's id is its path below ``corpus``; a question's collection is its file below ``benchmarks``.

    Texts are read as the collection's own program reads them, whose offsets these are: each end of line as a line feed.
    """
    documents = documents_of(_documents(root / "corpus"))
    return Contents(documents, [row for file in sorted((root / "benchmarks").glob("*.json")) for row in _tests(file)])


def _documents(corpus: Path) -> Iterator[Row]:
    for file in regular_files(corpus):
        text = read_text(file).replace("\r\n", "\n").replace("\r", "\n")
        yield str(file), {"id": file.relative_to(corpus).as_posix(), "text": text}


def _tests(file: Path) -> Iterator[Row]:
    for number, test in enumerate(member(read_json(file), "tests", list, str(file))):
        place = f"{file}, tests[{number}]"
        snippets = member(test, "snippets", list, place)
        told = {
            "id": f"{file.stem}-{number + 1}",
            "question": member(test, "query", str, place),
            "collection": file.stem,
            "tags": test.get("tags"),
            "evidence": [_snippet(each, f"{place}.snippets[{n}]") for n, each in enumerate(snippets)],
        }
        yield f"{file.name}, tests[{number}]", told


def _snippet(snippet: Any, place: str) -> dict[str, Any]:
    path, span = member(snippet, "file_path", str, place), member(snippet, "span", list, place)
    if len(span) != 2:
        raise DataError(f"{place}: expected 'span' to be [start, end], got {len(span)} values")
    return {"document": path, "start": span[0], "end": span[1], "text": snippet.get("answer")}


LEGALBENCH_RAG = Layout(
    name="legalbench_rag",
    files="corpus/**/*.txt, benchmarks/*.json",
    holds="evidence",
    lacks=lambda root: lacking(root, "corpus", "benchmarks/*.json"),
    read=_read,
)
