"""QASPER (Dasigi et al., 2021): questions about papers, with the paragraphs that answer them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.evaluation.loading.building import TextBuilder
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacks_keys, with_keys
from chunkcore.evaluation.loading.rows import Contents, Layout, Row, brief, member, members, shown_type
from chunkcore.evaluation.textfiles import read_json

__all__ = ["QASPER", "QASPER_HIGHLIGHTED"]

_KEYS = ("full_text", "qas")
_SUFFIXES = (".json",)
_FLOAT = "FLOAT SELECTED"
_NO_CAPTION = "an annotator marked a figure or table, and the file has no such caption"


class _Paper:
    """A paper's text: title, abstract, sections under their names, captions; and where its paragraphs stand."""

    def __init__(self, identity: str, paper: dict[str, Any], place: str) -> None:
        self.id = identity
        self.sections: list[list[Any]] = []
        self._places: dict[str, list[Span]] = defaultdict(list)
        builder = TextBuilder("\n\n")
        for key in ("title", "abstract"):
            self._add(builder, member(paper, key, str, place, ""))
        for number, section in enumerate(members(paper, "full_text", dict, place)):
            here = f"{place}.full_text[{number}]"
            name = member(section, "section_name", str, here, "")
            heading = builder.add(name)
            if heading:
                self.sections.append([heading.start, name])
            for paragraph in members(section, "paragraphs", str, here):
                self._add(builder, paragraph)
        for number, shown in enumerate(members(paper, "figures_and_tables", dict, place, [])):
            self._add(builder, member(shown, "caption", str, f"{place}.figures_and_tables[{number}]"))
        self.text = builder.text

    def _add(self, builder: TextBuilder, part: str) -> None:
        found = builder.add(part)
        if found:
            self._places[part].append(found)

    def paragraphs(self, marked: str) -> list[Span]:
        """Where a paragraph, or the caption of a figure or table, stands."""
        text = marked.partition(":")[2].strip() if marked.startswith(_FLOAT) else marked
        return self._places.get(text) or self._places.get(text.strip(), [])

    def inside(self, text: str, paragraphs: Sequence[str]) -> list[Span]:
        """Where a text stands inside of these paragraphs."""
        found = set()
        for span in {each for paragraph in paragraphs for each in self.paragraphs(paragraph)}:
            start = self.text.find(text, span.start, span.end)
            while text and start >= 0:
                found.add(Span(start, start + len(text)))
                start = self.text.find(text, start + 1, span.end)
        return sorted(found)


def _read(root: Path, _: Path | None, *, highlighted: bool) -> Contents:
    """A paper's text is its title, abstract, sections under their names, and captions, with blank lines between.

    Evidence is what any annotator marked: paragraphs, or in ``qasper_highlighted`` the sentences that they highlighted
    in them (the paragraphs, where they highlighted none). A figure or table stands for its caption. What all call
    unanswerable, or mark no evidence for, is without evidence. ``answers`` are in words: extracted spans with commas
    between, free text, Yes, No, or Unanswerable.
    """
    documents: list[Row] = []
    questions: list[Row] = []
    for file in with_keys(root, _KEYS, _SUFFIXES):
        papers = read_json(file)
        for identity in _checked_papers(papers, file):
            place = f"{file}, {identity!r}"
            entry = member(papers, identity, dict, str(file))
            paper = _Paper(identity, entry, place)
            documents.append((place, {"id": identity, "text": paper.text, "sections": paper.sections}))
            found = _questions(entry, paper, place, highlighted)
            questions += [(brief(here, file), row) for here, row in found]
    return Contents(documents_of(documents), questions)


def _checked_papers(papers: Any, file: Path) -> list[str]:
    if not isinstance(papers, dict):
        raise DataError(f"{file}: expected an object of papers by their ids, got {shown_type(papers)}")
    return list(papers)


def _questions(entry: dict[str, Any], paper: _Paper, place: str, highlighted: bool) -> Iterator[Row]:
    for number, row in enumerate(members(entry, "qas", dict, place, [])):
        here = f"{place}.qas[{number}]"
        listed = members(row, "answers", dict, here)
        answers = [member(each, "answer", dict, f"{here}.answers[{n}]") for n, each in enumerate(listed)]
        told = {
            "id": row.get("question_id"),
            "question": member(row, "question", str, here),
            "document_id": paper.id,
            "answers": list(dict.fromkeys(_in_words(each, here) for each in answers)),
        }
        yield here, told | _evidence(answers, paper, here, highlighted)


def _evidence(answers: Sequence[dict[str, Any]], paper: _Paper, place: str, highlighted: bool) -> dict[str, Any]:
    answerable = [each for each in answers if each.get("unanswerable") is not True]
    marked = [found for answer in answerable for found in _marked(answer, paper, place, highlighted)]
    if not marked:
        return {"without_evidence": True, "unanswerable": not answerable}
    if any(not places and text.startswith(_FLOAT) for text, places in marked):
        return {"left_out": _NO_CAPTION}
    # What stands nowhere, or at several places, is sought by its text, and told of by what seeks it.
    entries = [
        {"start": places[0].start, "end": places[0].end} if len(places) == 1 else {"text": text}
        for text, places in marked
    ]
    return {"evidence": [dict(each) for each in dict.fromkeys(tuple(entry.items()) for entry in entries)]}


def _marked(answer: dict[str, Any], paper: _Paper, place: str, highlighted: bool) -> list[tuple[str, list[Span]]]:
    """What one annotator marked, and where it stands."""
    paragraphs = members(answer, "evidence", str, place, [])
    sentences = members(answer, "highlighted_evidence", str, place, []) if highlighted else []
    inner = [each for each in sentences if not each.startswith(_FLOAT)]
    whole = [each for each in paragraphs if not inner or each.startswith(_FLOAT)]
    return [
        *((each, paper.paragraphs(each)) for each in whole),
        *((each, paper.inside(each, paragraphs)) for each in inner),
    ]


def _in_words(answer: dict[str, Any], place: str) -> str:
    if answer.get("unanswerable") is True:
        return "Unanswerable"
    spans = members(answer, "extractive_spans", str, place, [])
    if spans:
        return ", ".join(spans)
    if isinstance(answer.get("yes_no"), bool):
        return "Yes" if answer["yes_no"] else "No"
    return member(answer, "free_form_answer", str, place, "")


def _layout(name: str, files: str, *, highlighted: bool) -> Layout:
    return Layout(
        name=name,
        files=files,
        holds="evidence",
        lacks=lambda root: lacks_keys(root, _KEYS, _SUFFIXES),
        read=partial(_read, highlighted=highlighted),
    )


QASPER = _layout("qasper", 'qasper-*.json of {"1909.00694": {"full_text", "qas"}}: whole paragraphs', highlighted=False)
QASPER_HIGHLIGHTED = _layout("qasper_highlighted", "the same files: highlighted sentences", highlighted=True)
