"""BEIR (Thakur et al., 2021): passages, queries, and which passages are relevant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chunkcore.errors import DataError
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacking
from chunkcore.evaluation.loading.rows import Contents, Layout, Row, member
from chunkcore.evaluation.textfiles import json_lines, text_lines

__all__ = ["BEIR"]

_SPLITS = ("test.tsv", "dev.tsv", "train.tsv")


def _read(root: Path, judged: Path | None) -> Contents:
    """A document's text is its title, a line feed and its text. Evidence is whole documents.

    The queries are those that the judgements of one split name: of ``qrels/test.tsv``, else ``dev.tsv``, else
    ``train.tsv``, unless another file is named. Judgements of 0 or less are none; the others
    stand in ``metadata["grades"]``.
    """
    documents = documents_of(_documents(root / "corpus.jsonl"))
    return Contents(documents, list(_questions(root / "queries.jsonl", judged or _split(root / "qrels"))))


def _documents(corpus: Path) -> Iterator[Row]:
    for number, row in json_lines(corpus):
        place = f"{corpus}, line {number}"
        text, title = member(row, "text", str, place), row.get("title")
        identity = member(row, "_id", str, place)
        titled = f"{title}\n{text}" if isinstance(title, str) and title else text
        others = {key: value for key, value in row.items() if key not in ("_id", "text")}
        yield place, {"id": identity, "text": titled, "metadata": others}


def _split(folder: Path) -> Path:
    files = {file.name: file for file in sorted(folder.glob("*.tsv"))}
    named = next((files[name] for name in _SPLITS if name in files), None)
    if named is None and len(files) != 1:
        raise DataError(f"{folder} has {', '.join(files) or 'no .tsv file'}: name the one with the judgements")
    return named or next(iter(files.values()))


def _questions(queries: Path, judged: Path) -> Iterator[Row]:
    grades = _grades(judged)
    for number, row in json_lines(queries):
        place = f"{queries.name}, line {number}"
        identity = member(row, "_id", str, f"{queries}, line {number}")
        if identity in grades:
            found = grades.pop(identity)
            others = {key: value for key, value in row.items() if key not in ("_id", "text")}
            yield place, {**others, "id": identity, "question": row.get("text"), **_judged(found)}
    for identity in grades:
        yield judged.name, {"id": identity, "question": identity, "left_out": f"{queries.name} has no query of this id"}


def _judged(grades: dict[str, int]) -> dict[str, object]:
    relevant = {document: grade for document, grade in grades.items() if grade > 0}
    if not relevant:
        return {"left_out": "no document is judged relevant"}
    return {"evidence": [{"document": each, "whole": True} for each in relevant], "grades": relevant}


def _grades(file: Path) -> dict[str, dict[str, int]]:
    """By query and document; the first line may be a header."""
    found: dict[str, dict[str, int]] = {}
    for number, line in text_lines(file):
        values = line.rstrip("\r\n").split("\t")
        if (number == 1 and not _is_whole(values[-1])) or not line.strip():
            continue
        if len(values) != 3 or not _is_whole(values[2]):
            raise DataError(
                f"{file}, line {number}: expected query-id, corpus-id and a whole number, parted by tabs, "
                f"got {line.strip()[:60]!r}"
            )
        found.setdefault(values[0], {})[values[1]] = int(values[2].strip())  # which strips more than int does
    return found


def _is_whole(text: str) -> bool:
    digits = text.strip().removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 10


BEIR = Layout(
    name="beir",
    files="corpus.jsonl, queries.jsonl, qrels/*.tsv",
    holds="evidence",
    lacks=lambda root: lacking(root, "corpus.jsonl", "queries.jsonl", "qrels/*.tsv"),
    read=_read,
    takes_questions=True,
)
