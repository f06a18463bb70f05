"""NarrativeQA (Kočiský et al., 2018): questions about books and film scripts, or their summaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chunkcore.errors import DataError
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacking
from chunkcore.evaluation.loading.rows import Contents, Layout, Row
from chunkcore.evaluation.textfiles import NoTextError, csv_rows, read_text

__all__ = ["NARRATIVEQA"]

_STORIES = "tmp"  # where the collection's download_stories.sh puts them
_SUMMARIES = "third_party/wikipedia/summaries.csv"
_TOLD = ("set", "kind", "wiki_title", "wiki_url", "story_url")


def _read(root: Path, _: Path | None) -> Contents:
    """The stories, where there is a folder ``tmp``; else the summaries. No evidence is marked.

    ``metadata["answers"]`` are the two answers. Questions whose story was not downloaded, or is no text, are left out.
    Stories come from many places: one that is not UTF-8 is read as Windows-1252, and ``metadata["encoding"]`` says so.
    """
    stories = root / _STORIES
    rows = _stories(root, stories) if stories.is_dir() else _summaries(root)
    documents = documents_of(rows)
    known = {document.id for document in documents}
    return Contents(documents, list(_questions(root / "qaps.csv", known)))


def _stories(root: Path, folder: Path) -> Iterator[Row]:
    for place, told in _listed(root):
        file = folder / f"{told['id']}.content"
        # Ids come from a file that anyone may have written: none leads out of the folder.
        if "/" in told["id"] or "\\" in told["id"] or not file.is_file():
            continue
        try:
            text, encoding = _story(file)
        except NoTextError:
            continue  # what its questions are told: a download that failed leaves an empty file
        yield place, {**told, "text": text, "encoding": encoding}


def _story(file: Path) -> tuple[str, str]:
    """A story's text, and its encoding; no evidence is marked in it, so that no offsets depend on them."""
    try:
        return read_text(file), "utf-8"
    except NoTextError:
        raise
    except DataError:
        return file.read_bytes().decode("windows-1252", errors="replace"), "windows-1252"


def _summaries(root: Path) -> Iterator[Row]:
    listed = {told["id"]: told for _, told in _listed(root)}
    file = root / _SUMMARIES
    for number, row in csv_rows(file, ("document_id", "summary")):
        identity = row["document_id"] or ""
        yield f"{file}, line {number}", {**listed.get(identity, {}), "id": identity, "text": row["summary"]}


def _listed(root: Path) -> Iterator[Row]:
    file = root / "documents.csv"
    for number, row in csv_rows(file, ("document_id", "kind")):
        told = {key: row[key] for key in _TOLD if row.get(key)}
        yield f"{file}, line {number}", {"id": row["document_id"] or "", "metadata": told}


def _questions(file: Path, known: set[str]) -> Iterator[Row]:
    for number, row in csv_rows(file, ("document_id", "question", "answer1", "answer2")):
        identity = row["document_id"] or ""
        told = {
            "question": row["question"],
            "document_id": identity,
            "set": row.get("set"),
            "answers": [row[key] for key in ("answer1", "answer2") if row[key]],
            "without_evidence": True,
        }
        if identity not in known:
            told["left_out"] = (
                f"its story {identity!r} is not there, or no text: download it, or take the folder {_STORIES} away"
            )
        yield f"{file.name}, line {number}", told


NARRATIVEQA = Layout(
    name="narrativeqa",
    files=f"documents.csv, qaps.csv, and {_STORIES}/*.content or {_SUMMARIES}",
    holds="answers",
    lacks=lambda root: " and ".join(
        each
        for each in (
            lacking(root, "documents.csv", "qaps.csv"),
            "" if (root / _STORIES).is_dir() else lacking(root, _SUMMARIES),
        )
        if each
    ),
    read=_read,
)
