"""Evidence Inference 2.0 (DeYoung et al., 2020): what trials report, with the passages that say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacking
from chunkcore.evaluation.loading.rows import Contents, Layout, Row
from chunkcore.evaluation.textfiles import csv_rows, read_text

__all__ = ["EVIDENCE_INFERENCE"]

_PROMPTS = "prompts_merged.csv"
_ANNOTATIONS = "annotations_merged.csv"
_TEXTS = "txt_files/PMC*.txt"
_FIELDS = ("PromptID", "PMCID", "Outcome", "Intervention", "Comparator")
_MARKED = (
    "PromptID",
    "PMCID",
    "Valid Label",
    "Valid Reasoning",
    "Label",
    "Annotations",
    "Evidence Start",
    "Evidence End",
)


def _read(root: Path, _: Path | None) -> Contents:
    """A document is an article of ``txt_files``; a question is a prompt, in the words of the collection's paper.

    Evidence is each passage that a verifier accepted. Some offsets are a few characters off: where the passage is not
    at them but stands once in the article, that is its place; else the question is left out. Texts are read as the
    collection's program reads them: each end of line as a line feed.
    """
    folder = _folder(root)
    texts = {file.stem: _text(file) for file in sorted((folder / "txt_files").glob("PMC*.txt"))}
    documents = documents_of((f"{name}.txt", {"id": name, "text": text}) for name, text in texts.items())
    return Contents(documents, list(_questions(folder, texts)))


def _folder(root: Path) -> Path:
    return root if (root / _PROMPTS).is_file() else root / "annotations"


def _text(file: Path) -> str:
    return read_text(file).replace("\r\n", "\n").replace("\r", "\n")


def _questions(folder: Path, texts: dict[str, str]) -> Iterator[Row]:
    marked: dict[str | None, list[dict[str, str | None]]] = defaultdict(list)
    for _, row in csv_rows(folder / _ANNOTATIONS, _MARKED):
        if _is_one(row["Valid Label"]) and _is_one(row["Valid Reasoning"]) and row["Annotations"]:
            marked[row["PromptID"]].append(row)
    for number, prompt in csv_rows(folder / _PROMPTS, _FIELDS):
        rows = marked.get(prompt["PromptID"], [])
        article = f"PMC{prompt['PMCID']}"
        told = {
            "id": prompt["PromptID"],
            "question": f"With respect to {prompt['Outcome']}, characterize the reported difference between "
            f"{prompt['Intervention']} and those receiving {prompt['Comparator']}.",
            "document_id": article,
            "answers": list(dict.fromkeys(row["Label"] for row in rows)),
            "evidence": _evidence(rows, texts.get(article, "")),
        }
        if not rows:
            told["left_out"] = "no annotation of it was accepted by a verifier"
        yield f"{_PROMPTS}, line {number}", told


def _evidence(rows: list[dict[str, str | None]], text: str) -> list[dict[str, Any]]:
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for row in rows:
        passage = row["Annotations"] or ""
        start, end = _whole(row["Evidence Start"]), _whole(row["Evidence End"])
        if 0 <= start < end and text[start:end] == passage:
            found[passage, start, end] = {"start": start, "end": end, "text": passage}
        else:
            found[passage, -1, -1] = {"text": passage}
    return list(found.values())


def _is_one(value: str | None) -> bool:
    return (value or "").strip().lower() in ("1", "1.0", "true")


def _whole(value: str | None) -> int:
    """The offset; -1, as in the files, for none. Some versions of the files have 12.0 for 12."""
    digits = (value or "").strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else -1


EVIDENCE_INFERENCE = Layout(
    name="evidence_inference",
    files=f"{_PROMPTS}, {_ANNOTATIONS}, {_TEXTS}, or these in a folder annotations",
    holds="evidence",
    lacks=lambda root: lacking(_folder(root), _PROMPTS, _ANNOTATIONS, _TEXTS),
    read=_read,
)
