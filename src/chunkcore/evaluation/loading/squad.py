"""The layout of SQuAD (Rajpurkar et al., 2016 and 2018), which CUAD, COVID-QA and many others share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacks_keys, with_keys
from chunkcore.evaluation.loading.rows import Contents, Layout, Row, brief, member
from chunkcore.evaluation.textfiles import read_json

__all__ = ["COVID_QA", "CUAD", "SQUAD"]

_KEYS = ("data", "paragraphs")
_SUFFIXES = (".json",)
_BETWEEN = "\n\n"


def _read(root: Path, _: Path | None) -> Contents:
    """An article is one document: its contexts with a blank line between.

    Its id is its title, or its first paragraph's ``document_id``; an article that stands in several files is one
    document, and others of one title have a number. Evidence is every answer's place, verified against its text; where
    annotators marked several, all of them. What is marked ``is_impossible``, or has no answer, is without evidence, and
    ``metadata["unanswerable"]`` says so.
    """
    documents: dict[str, Row] = {}
    questions: list[Row] = []
    for file in with_keys(root, _KEYS, _SUFFIXES):
        for number, article in enumerate(member(read_json(file), "data", list, str(file))):
            place = f"{file}, data[{number}]"
            paragraphs = member(article, "paragraphs", list, place)
            contexts = [member(each, "context", str, f"{place}.paragraphs[{n}]") for n, each in enumerate(paragraphs)]
            text = _BETWEEN.join(contexts)
            identity = _unused(_name(article, paragraphs, f"{file.stem}-{number + 1}"), text, documents)
            documents[identity] = (place, {"id": identity, "text": text})
            start = 0
            for n, (paragraph, context) in enumerate(zip(paragraphs, contexts, strict=True)):
                found = _questions(paragraph, f"{place}.paragraphs[{n}]", identity, start)
                questions += [(brief(here, file), row) for here, row in found]
                start += len(context) + len(_BETWEEN)
    return Contents(documents_of(documents.values()), questions)


def _unused(name: str, text: str, documents: dict[str, Row]) -> str:
    """The name, or with a number the first one that no article of another text has."""
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in numbered if each not in documents or documents[each][1]["text"] == text)


def _name(article: dict[str, Any], paragraphs: list[Any], otherwise: str) -> str:
    first = paragraphs[0] if paragraphs and isinstance(paragraphs[0], dict) else {}
    for given in (article.get("title"), first.get("document_id")):
        if isinstance(given, str | int) and str(given).strip():
            return str(given)
    return otherwise


def _questions(paragraph: dict[str, Any], place: str, document: str, start: int) -> Iterator[Row]:
    for number, row in enumerate(member(paragraph, "qas", list, place)):
        here = f"{place}.qas[{number}]"
        question = member(row, "question", str, here)
        listed = member(row, "answers", list, here, [])
        answers = [_answer(each, f"{here}.answers[{n}]", start) for n, each in enumerate(listed)]
        others = {key: value for key, value in row.items() if key not in ("answers", "question", "id", "is_impossible")}
        told = {
            **others,
            "id": row.get("id"),
            "question": question,
            "document_id": document,
            "answers": list(dict.fromkeys(each["text"] for each in answers)),
        }
        if row.get("is_impossible") is True or not answers:
            told |= {"without_evidence": True, "unanswerable": True}
        else:
            told["evidence"] = [dict(each) for each in dict.fromkeys(tuple(each.items()) for each in answers)]
        yield here, told


def _answer(answer: Any, place: str, start: int) -> dict[str, Any]:
    text = member(answer, "text", str, place)
    begin = start + member(answer, "answer_start", int, place)
    return {"start": begin, "end": begin + len(text), "text": text}


def _layout(name: str, files: str) -> Layout:
    return Layout(
        name=name,
        files=files,
        holds="evidence",
        lacks=lambda root: lacks_keys(root, _KEYS, _SUFFIXES),
        read=_read,
    )


SQUAD = _layout("squad", '.json files of {"data": [{"title", "paragraphs": [{"context", "qas"}]}]}, v1.1 or v2.0')
CUAD = _layout("cuad", "CUADv1.json, as squad")
COVID_QA = _layout("covid_qa", "COVID-QA.json, as squad")
