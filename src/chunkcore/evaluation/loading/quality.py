"""QuALITY (Pang et al., 2022): multiple choice about whole stories and articles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chunkcore.errors import DataError
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacks_keys, with_keys
from chunkcore.evaluation.loading.rows import Contents, Layout, Row, brief, member, members
from chunkcore.evaluation.textfiles import json_lines

__all__ = ["QUALITY"]

_SUFFIXES = (".train", ".dev", ".test", ".jsonl")
_KEYS = ("article_id", "article", "set_unique_id", "questions")
_TOLD = ("title", "author", "source", "topic", "url", "license", "year")


def _read(root: Path, _: Path | None) -> Contents:
    """A document is an article as it stands in the file: HTML, or text in the files named ``htmlstripped``.

    No evidence is marked. ``metadata["choices"]`` has the options; ``metadata["correct"]`` the number of the right one,
    from 0, and ``metadata["answers"]`` its text, where the file tells it (the test file does not).
    """
    documents: dict[str, Row] = {}
    questions: list[Row] = []
    for file in with_keys(root, _KEYS, _SUFFIXES):
        for number, row in json_lines(file):
            place = f"{file}, line {number}"
            identity, text = member(row, "article_id", str, place), member(row, "article", str, place)
            told = {key: row[key] for key in _TOLD if key in row}
            earlier, known = documents.setdefault(identity, (place, {"id": identity, "text": text, "metadata": told}))
            if known["text"] != text:
                raise DataError(f"{place}: the article {identity!r} has another text than at {earlier}")
            told_by = member(row, "set_unique_id", str, place)
            for n, question in enumerate(member(row, "questions", list, place)):
                here = f"{place}, questions[{n}]"
                questions.append((brief(here, file), _question(question, identity, f"{told_by}-{n + 1}", here)))
    return Contents(documents_of(documents.values()), questions)


def _question(question: Any, document: str, otherwise: str, place: str) -> dict[str, Any]:
    choices = members(question, "options", str, place)
    told = {
        "id": question.get("question_unique_id") or otherwise,
        "question": member(question, "question", str, place),
        "document_id": document,
        "without_evidence": True,
        "choices": choices,
        "difficult": question.get("difficult"),
    }
    if question.get("gold_label") is None:
        return told
    label = member(question, "gold_label", int, place)
    if not 1 <= label <= len(choices):
        raise DataError(f"{place}: expected 'gold_label' from 1 to {len(choices)}, the number of options, got {label}")
    return {**told, "correct": label - 1, "answers": [choices[label - 1]]}


QUALITY = Layout(
    name="quality",
    files='QuALITY.v1.0.1.htmlstripped.dev, lines of {"article_id", "article", "questions"}',
    holds="answers",
    lacks=lambda root: lacks_keys(root, _KEYS, _SUFFIXES),
    read=_read,
)
