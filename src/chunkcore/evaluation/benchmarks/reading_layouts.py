"""QASPER (Dasigi et al., 2021): questions about papers, with the paragraphs that answer them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.documents import documents_of
from chunkcore.evaluation.benchmarks.rows import (
    Contents,
    Layout,
    Row,
    TextBuilder,
    brief,
    lacking,
    lacks_keys,
    member,
    members,
    shown_type,
    with_keys,
)
from chunkcore.files import NoTextError, csv_rows, json_lines, read_json, read_text

__all__ = ["COVID_QA", "CUAD", "EVIDENCE_INFERENCE", "NARRATIVEQA", "QASPER", "QASPER_HIGHLIGHTED", "QUALITY", "SQUAD"]

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


_SUFFIXES_QUALITY = (".train", ".dev", ".test", ".jsonl")
_KEYS_QUALITY = ("article_id", "article", "set_unique_id", "questions")
_TOLD = ("title", "author", "source", "topic", "url", "license", "year")


def _read_quality(root: Path, _: Path | None) -> Contents:
    """A document is an article as it stands in the file: HTML, or text in the files named ``htmlstripped``.

    No evidence is marked. ``metadata["choices"]`` has the options; ``metadata["correct"]`` the number of the right one,
    from 0, and ``metadata["answers"]`` its text, where the file tells it (the test file does not).
    """
    documents: dict[str, Row] = {}
    questions: list[Row] = []
    for file in with_keys(root, _KEYS_QUALITY, _SUFFIXES_QUALITY):
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
    lacks=lambda root: lacks_keys(root, _KEYS_QUALITY, _SUFFIXES_QUALITY),
    read=_read_quality,
)


_STORIES = "tmp"  # where the collection's download_stories.sh puts them
_SUMMARIES = "third_party/wikipedia/summaries.csv"
_TOLD_NARRATIVEQA = ("set", "kind", "wiki_title", "wiki_url", "story_url")


def _read_narrativeqa(root: Path, _: Path | None) -> Contents:
    """The stories, where there is a folder ``tmp``; else the summaries. No evidence is marked.

    ``metadata["answers"]`` are the two answers. Questions whose story was not downloaded, or is no text, are left out.
    Stories come from many places: one that is not UTF-8 is read as Windows-1252, and ``metadata["encoding"]`` says so.
    """
    stories = root / _STORIES
    rows = _stories(root, stories) if stories.is_dir() else _summaries(root)
    documents = documents_of(rows)
    known = {document.id for document in documents}
    return Contents(documents, list(_questions_narrativeqa(root / "qaps.csv", known)))


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
        told = {key: row[key] for key in _TOLD_NARRATIVEQA if row.get(key)}
        yield f"{file}, line {number}", {"id": row["document_id"] or "", "metadata": told}


def _questions_narrativeqa(file: Path, known: set[str]) -> Iterator[Row]:
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
    read=_read_narrativeqa,
)


_KEYS_QASPER = ("full_text", "qas")
_SUFFIXES_QASPER = (".json",)
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


def _read_qasper(root: Path, _: Path | None, *, highlighted: bool) -> Contents:
    """A paper's text is its title, abstract, sections under their names, and captions, with blank lines between.

    Evidence is what any annotator marked: paragraphs, or in ``qasper_highlighted`` the sentences that they highlighted
    in them (the paragraphs, where they highlighted none). A figure or table stands for its caption. What all call
    unanswerable, or mark no evidence for, is without evidence. ``answers`` are in words: extracted spans with commas
    between, free text, Yes, No, or Unanswerable.
    """
    documents: list[Row] = []
    questions: list[Row] = []
    for file in with_keys(root, _KEYS_QASPER, _SUFFIXES_QASPER):
        papers = read_json(file)
        for identity in _checked_papers(papers, file):
            place = f"{file}, {identity!r}"
            entry = member(papers, identity, dict, str(file))
            paper = _Paper(identity, entry, place)
            documents.append((place, {"id": identity, "text": paper.text, "sections": paper.sections}))
            found = _questions_qasper(entry, paper, place, highlighted)
            questions += [(brief(here, file), row) for here, row in found]
    return Contents(documents_of(documents), questions)


def _checked_papers(papers: Any, file: Path) -> list[str]:
    if not isinstance(papers, dict):
        raise DataError(f"{file}: expected an object of papers by their ids, got {shown_type(papers)}")
    return list(papers)


def _questions_qasper(entry: dict[str, Any], paper: _Paper, place: str, highlighted: bool) -> Iterator[Row]:
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


def _layout_qasper(name: str, files: str, *, highlighted: bool) -> Layout:
    return Layout(
        name=name,
        files=files,
        holds="evidence",
        lacks=lambda root: lacks_keys(root, _KEYS_QASPER, _SUFFIXES_QASPER),
        read=partial(_read_qasper, highlighted=highlighted),
    )


QASPER = _layout_qasper(
    "qasper", 'qasper-*.json of {"1909.00694": {"full_text", "qas"}}: whole paragraphs', highlighted=False
)
QASPER_HIGHLIGHTED = _layout_qasper("qasper_highlighted", "the same files: highlighted sentences", highlighted=True)


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


def _read_evidence_inference(root: Path, _: Path | None) -> Contents:
    """A document is an article of ``txt_files``; a question is a prompt, in the words of the collection's paper.

    Evidence is each passage that a verifier accepted. Some offsets are a few characters off: where the passage is not
    at them but stands once in the article, that is its place; else the question is left out. Texts are read as the
    collection's program reads them: each end of line as a line feed.
    """
    folder = _folder(root)
    texts = {file.stem: _text(file) for file in sorted((folder / "txt_files").glob("PMC*.txt"))}
    documents = documents_of((f"{name}.txt", {"id": name, "text": text}) for name, text in texts.items())
    return Contents(documents, list(_questions_evidence_inference(folder, texts)))


def _folder(root: Path) -> Path:
    return root if (root / _PROMPTS).is_file() else root / "annotations"


def _text(file: Path) -> str:
    return read_text(file).replace("\r\n", "\n").replace("\r", "\n")


def _questions_evidence_inference(folder: Path, texts: dict[str, str]) -> Iterator[Row]:
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
            "evidence": _evidence_evidence_inference(rows, texts.get(article, "")),
        }
        if not rows:
            told["left_out"] = "no annotation of it was accepted by a verifier"
        yield f"{_PROMPTS}, line {number}", told


def _evidence_evidence_inference(rows: list[dict[str, str | None]], text: str) -> list[dict[str, Any]]:
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
    read=_read_evidence_inference,
)
