"""Datasets of texts, with questions or with known sections.

SQuAD and its like, QuALITY, NarrativeQA, QASPER, Evidence Inference, QMSum; Wiki-727k, WIKI-50 and Choi.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from chunkcore.document import Span
from chunkcore.errors import DataError, echo
from chunkcore.evaluation.benchmarks.documents import Row, documents_of
from chunkcore.evaluation.benchmarks.layout import (
    Contents,
    JsonNode,
    Layout,
    Questions,
    TextBuilder,
    as_read_by_python,
    begins_with,
    brief,
    lacking,
    layouts,
    regular_files,
    shown_type,
    with_keys,
)
from chunkcore.evaluation.text_search import occurrences
from chunkcore.files import NoTextError, csv_rows, json_lines, read_json, read_text, text_lines


def _distinct(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(each) for each in dict.fromkeys(tuple(entry.items()) for entry in entries)]


@layouts.register("evidence_inference")
class EvidenceInference(Layout):
    """Evidence Inference (Lehman et al., 2019; DeYoung et al., 2020): prompts about articles of clinical trials."""

    files = "prompts_merged.csv, annotations_merged.csv, txt_files/PMC*.txt, or these in a folder annotations"

    _PROMPT = ("PromptID", "PMCID", "Outcome", "Intervention", "Comparator")
    _MARKED = (
        *("PromptID", "PMCID", "Valid Label", "Valid Reasoning"),
        *("Label", "Annotations", "Evidence Start", "Evidence End"),
    )

    def lacks(self, root: Path) -> str:
        return lacking(self._folder(root), "prompts_merged.csv", "annotations_merged.csv", "txt_files/PMC*.txt")

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document is an article of ``txt_files``; a question is a prompt, worded as in the paper.

        Evidence is each passage that a verifier accepted. Some offsets are a few characters off: a passage that occurs
        once in the article is placed there, else the question is left out.
        """
        folder = self._folder(root)
        texts = {file.stem: as_read_by_python(file) for file in sorted((folder / "txt_files").glob("PMC*.txt"))}
        documents = documents_of((f"{name}.txt", {"id": name, "text": text}) for name, text in texts.items())
        return Contents(documents, list(self._questions(folder, texts)))

    def _folder(self, root: Path) -> Path:
        return root if (root / "prompts_merged.csv").is_file() else root / "annotations"

    def _questions(self, folder: Path, texts: dict[str, str]) -> Iterator[Row]:
        marked: dict[str | None, list[dict[str, str | None]]] = defaultdict(list)
        for _, row in csv_rows(folder / "annotations_merged.csv", self._MARKED):
            if _is_one(row["Valid Label"]) and _is_one(row["Valid Reasoning"]) and row["Annotations"]:
                marked[row["PromptID"]].append(row)
        for number, prompt in csv_rows(folder / "prompts_merged.csv", self._PROMPT):
            rows = marked.get(prompt["PromptID"], [])
            article = f"PMC{prompt['PMCID']}"
            evidence = []
            for row in rows:
                start, end = _offset(row["Evidence Start"]), _offset(row["Evidence End"])
                stands = 0 <= start < end and texts.get(article, "")[start:end] == row["Annotations"]
                offsets = {"start": start, "end": end} if stands else {}
                evidence.append({**offsets, "text": row["Annotations"]})
            told = {
                "id": prompt["PromptID"],
                "question": f"With respect to {prompt['Outcome']}, characterize the reported difference between "
                f"{prompt['Intervention']} and those receiving {prompt['Comparator']}.",
                "document_id": article,
                "answers": list(dict.fromkeys(row["Label"] for row in rows)),
                "evidence": _distinct(evidence),
            }
            if not rows:
                told["left_out"] = "no annotation of it was accepted by a verifier"
            yield f"prompts_merged.csv, line {number}", told


def _is_one(value: str | None) -> bool:
    return (value or "").strip().lower() in ("1", "1.0", "true")


def _offset(value: str | None) -> int:
    """The offset; -1 is the files' none. Some versions of the files have 12.0 for 12."""
    digits = (value or "").strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else -1


@layouts.register("narrativeqa")
class NarrativeQA(Layout):
    """NarrativeQA (Kočiský et al., 2018): questions about whole stories, or their summaries."""

    # The dataset's download_stories.sh puts the stories in `tmp`.
    files = "documents.csv, qaps.csv, and tmp/*.content or third_party/wikipedia/summaries.csv"
    holds = "answers"

    _SUMMARIES = "third_party/wikipedia/summaries.csv"
    _TOLD = ("set", "kind", "wiki_title", "wiki_url", "story_url")

    def lacks(self, root: Path) -> str:
        texts = "" if (root / "tmp").is_dir() else lacking(root, self._SUMMARIES)
        return " and ".join(filter(None, (lacking(root, "documents.csv", "qaps.csv"), texts)))

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """The stories, if there is a folder ``tmp``, else the summaries; without evidence.

        ``metadata["answers"]`` has the two answers. Questions of a missing or unreadable story are left out. A story
        that is not UTF-8 is read as Windows-1252; ``metadata["encoding"]`` says so.
        """
        documents = documents_of(self._stories(root) if (root / "tmp").is_dir() else self._summaries(root))
        known = {document.id for document in documents}
        return Contents(documents, list(self._questions(root / "qaps.csv", known)))

    def _stories(self, root: Path) -> Iterator[Row]:
        for place, told in self._listed(root):
            file = root / "tmp" / f"{told['id']}.content"
            # Ids come from an untrusted file: none may lead out of the folder.
            if "/" in told["id"] or "\\" in told["id"] or not file.is_file():
                continue
            try:
                text, encoding = read_text(file), "utf-8"
            except NoTextError:
                continue  # a failed download leaves an empty file; its questions are left out
            except DataError:
                text, encoding = file.read_bytes().decode("windows-1252", errors="replace"), "windows-1252"
            yield place, {**told, "text": text, "encoding": encoding}

    def _summaries(self, root: Path) -> Iterator[Row]:
        known = {told["id"]: told for _, told in self._listed(root)}
        file = root / self._SUMMARIES
        for number, row in csv_rows(file, ("document_id", "summary")):
            identity = row["document_id"] or ""
            yield f"{file}, line {number}", {**known.get(identity, {}), "id": identity, "text": row["summary"]}

    def _listed(self, root: Path) -> Iterator[Row]:
        file = root / "documents.csv"
        for number, row in csv_rows(file, ("document_id", "kind")):
            told = {key: row[key] for key in self._TOLD if row.get(key)}
            yield f"{file}, line {number}", {"id": row["document_id"] or "", "metadata": told}

    def _questions(self, file: Path, known: set[str]) -> Iterator[Row]:
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
                    f"its story {identity!r} is not there, or no text: download it, or take the folder tmp away"
                )
            yield f"{file.name}, line {number}", told


@layouts.register("qasper")
class Qasper(Layout):
    """QASPER (Dasigi et al., 2021): questions about papers, with the paragraphs that answer them."""

    files = 'qasper-*.json of {"1909.00694": {"full_text", "qas"}}: whole paragraphs'
    keys = ("full_text", "qas")
    highlighted: ClassVar[bool] = False

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A paper's text is its title, abstract, sections under their names, and captions, separated by blank lines.

        Evidence is what any annotator marked: paragraphs, or in ``qasper_highlighted`` their highlighted sentences (the
        paragraph if none). A figure or table stands for its caption. Questions that are unanswerable or unmarked are
        without evidence. ``answers`` are in words: extracted spans joined by commas, free text, Yes, No, or
        Unanswerable.
        """
        documents: list[Row] = []
        asked: list[Row] = []
        for file in with_keys(root, self.keys, self.suffixes):
            papers = read_json(file)
            if not isinstance(papers, dict):
                raise DataError(f"{file}: expected an object of papers by their ids, got {shown_type(papers)}")
            for identity in papers:
                entry = JsonNode(JsonNode(papers, str(file)).get(identity, dict), f"{file}, {identity!r}")
                paper = _Paper(identity, entry)
                documents.append((entry.place, {"id": identity, "text": paper.text, "sections": paper.sections}))
                asked += [(brief(place, file), row) for place, row in self._questions(entry, paper)]
        return Contents(documents_of(documents), asked)

    def _questions(self, entry: JsonNode, paper: _Paper) -> Iterator[Row]:
        for row in entry.nodes("qas", []):
            question = row.get("question", str)
            answers = [JsonNode(each.get("answer", dict), row.place) for each in row.nodes("answers")]
            told = {
                "id": row.value.get("question_id"),
                "question": question,
                "document_id": paper.id,
                "answers": list(dict.fromkeys(map(_in_words, answers))),
            }
            yield row.place, told | self._evidence(answers, paper)

    def _evidence(self, answers: Sequence[JsonNode], paper: _Paper) -> dict[str, Any]:
        answerable = [each for each in answers if each.value.get("unanswerable") is not True]
        marked: list[tuple[str, list[Span]]] = []
        for answer in answerable:
            paragraphs = answer.texts("evidence", [])
            sentences = answer.texts("highlighted_evidence", []) if self.highlighted else []
            inner = [each for each in sentences if not each.startswith(_FLOAT)]
            whole = [each for each in paragraphs if not inner or each.startswith(_FLOAT)]
            marked += [(each, paper.paragraphs(each)) for each in whole]
            marked += [(each, paper.inside(each, paragraphs)) for each in inner]
        if not marked:
            return {"without_evidence": True, "unanswerable": not answerable}
        if any(not places and text.startswith(_FLOAT) for text, places in marked):
            return {"left_out": "an annotator marked a figure or table, and the file has no such caption"}
        # A text at no place or several is searched later, with an error if that fails.
        return {
            "evidence": _distinct(
                {"start": places[0].start, "end": places[0].end} if len(places) == 1 else {"text": text}
                for text, places in marked
            )
        }


@layouts.register("qasper_highlighted")
class QasperHighlighted(Qasper):
    """QASPER with the highlighted sentences as evidence."""

    files = "the same files: highlighted sentences"
    highlighted = True


_FLOAT = "FLOAT SELECTED"


class _Paper:
    """A paper's text: title, abstract, sections under their names, captions; and where its paragraphs stand."""

    def __init__(self, identity: str, paper: JsonNode) -> None:
        self.id = identity
        self.sections: list[list[Any]] = []
        self._places: dict[str, list[Span]] = defaultdict(list)
        builder = TextBuilder("\n\n")
        for key in ("title", "abstract"):
            self._add(builder, paper.get(key, str, ""))
        for section in paper.nodes("full_text"):
            name = section.get("section_name", str, "")
            heading = builder.add(name)
            if heading:
                self.sections.append([heading.start, name])
            for paragraph in section.texts("paragraphs"):
                self._add(builder, paragraph)
        for shown in paper.nodes("figures_and_tables", []):
            self._add(builder, shown.get("caption", str))
        self.text = builder.text

    def _add(self, builder: TextBuilder, part: str) -> None:
        found = builder.add(part)
        if found:
            self._places[part].append(found)

    def paragraphs(self, marked: str) -> list[Span]:
        text = marked.partition(":")[2].strip() if marked.startswith(_FLOAT) else marked
        return self._places.get(text) or self._places.get(text.strip(), [])

    def inside(self, text: str, paragraphs: Sequence[str]) -> list[Span]:
        found: set[Span] = set()
        for span in {each for paragraph in paragraphs for each in self.paragraphs(paragraph)}:
            starts = occurrences(self.text, text, span.start, span.end) if text else ()
            found |= {Span(start, start + len(text)) for start in starts}
        return sorted(found)


def _in_words(answer: JsonNode) -> str:
    if answer.value.get("unanswerable") is True:
        return "Unanswerable"
    if spans := answer.texts("extractive_spans", []):
        return ", ".join(spans)
    if isinstance(answer.value.get("yes_no"), bool):
        return "Yes" if answer.value["yes_no"] else "No"
    return answer.get("free_form_answer", str, "")


@layouts.register("qmsum")
class QMSum(Layout):
    """QMSum (Zhong et al., 2021): meetings, questions with the turns that answer them, and the topics' turns."""

    files = '.json or .jsonl of {"topic_list", "general_query_list", "specific_query_list", "meeting_transcripts"}'
    keys = ("specific_query_list", "topic_list")
    suffixes = (".json", ".jsonl")
    tells_sections = True

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A meeting's text has ``speaker: content`` for each turn, one per line.

        Evidence of a specific question is its ranges of turns. General questions (on the whole meeting) are without
        evidence.
        """
        meetings = list(self._meetings(root))
        documents = documents_of((meeting.place, row) for meeting, row, _ in meetings)
        asked = [
            (Path(here).name, row)  # the file's name is enough in a list of questions
            for meeting, told, turns in meetings
            for here, row in _asked(meeting, told["id"], turns)
        ]
        return Contents(documents, asked)

    def sections(self, root: Path) -> Iterable[Row]:
        """The meetings; a section begins where a topic's turns begin, and after its last turn."""
        return ((meeting.place, row) for meeting, row, _ in self._meetings(root))

    def _meetings(self, root: Path) -> Iterator[tuple[JsonNode, dict[str, Any], list[Span]]]:
        for file in with_keys(root, self.keys, self.suffixes):
            lines = ((f"{file}, line {number}", f"{file.stem}-{number}", row) for number, row in json_lines(file))
            is_one = file.suffix.lower() == ".json"
            for place, name, value in [(str(file), file.stem, read_json(file))] if is_one else lines:
                meeting = JsonNode(value, place, joint=", ")
                builder, turns = TextBuilder("\n"), []
                for turn in meeting.nodes("meeting_transcripts"):
                    span = builder.add(f"{turn.get('speaker', str)}: {turn.get('content', str)}")
                    turns += [span] if span else []
                begin: set[int] = set()
                for topic in meeting.nodes("topic_list"):
                    for first, last in _turn_ranges(topic):
                        if outside := _outside(first, last, turns):
                            raise DataError(f"{topic.place}: {outside}")
                        begin |= {first, last + 1}
                starts = [turns[turn].start for turn in sorted(begin) if 0 < turn < len(turns)]
                yield meeting, {"id": name, "text": builder.text, "boundaries": starts}, turns


def _asked(meeting: JsonNode, document: str, turns: list[Span]) -> Iterator[Row]:
    for kind in ("general", "specific"):
        for number, row in enumerate(meeting.nodes(f"{kind}_query_list", []), start=1):
            told: dict[str, Any] = {
                "id": f"{document}-{kind}-{number}",
                "question": row.get("query", str),
                "document_id": document,
                "answers": [row.get("answer", str)],
            }
            if kind == "general":
                yield row.place, told | {"without_evidence": True}
                continue
            ranges = _turn_ranges(row)
            outside = next(filter(None, (_outside(first, last, turns) for first, last in ranges)), "")
            if outside:
                yield row.place, told | {"left_out": outside}
            else:
                places = [{"start": turns[first].start, "end": turns[last].end} for first, last in ranges]
                yield row.place, told | {"evidence": places}


def _outside(first: int, last: int, turns: list[Span]) -> str:
    """Why these are not turns of the meeting; "" if they are."""
    if 0 <= first <= last < len(turns):
        return ""
    return f"the turns {first} to {last} are not all among the meeting's {len(turns)}"


def _turn_ranges(row: JsonNode) -> list[tuple[int, int]]:
    found = []
    for pair in row.get("relevant_text_span", list):
        numbers = [str(each).strip() for each in pair] if isinstance(pair, list) else []
        if len(numbers) != 2 or not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
            raise DataError(f"{row.place}: expected 'relevant_text_span' to be pairs of turns, got {str(pair)[:40]}")
        found.append((int(numbers[0]), int(numbers[1])))
    return found


@layouts.register("quality")
class Quality(Layout):
    """QuALITY (Pang et al., 2022): multiple choice about whole articles."""

    files = 'QuALITY.v1.0.1.htmlstripped.dev, lines of {"article_id", "article", "questions"}'
    keys = ("article_id", "article", "set_unique_id", "questions")
    suffixes = (".train", ".dev", ".test", ".jsonl")
    holds = "answers"

    _TOLD = ("title", "author", "source", "topic", "url", "license", "year")

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document is an article as in the file: HTML, or text in the files named ``htmlstripped``; no evidence.

        ``metadata["choices"]`` has the options, ``metadata["correct"]`` the right one's number from 0, and
        ``metadata["answers"]`` its text; the test file lacks the last two.
        """
        documents: dict[str, Row] = {}
        asked: list[Row] = []
        for file in with_keys(root, self.keys, self.suffixes):
            for number, value in json_lines(file):
                row = JsonNode(value, f"{file}, line {number}", joint=", ")
                identity, text = row.get("article_id", str), row.get("article", str)
                told = {key: value[key] for key in self._TOLD if key in value}
                found = documents.setdefault(identity, (row.place, {"id": identity, "text": text, "metadata": told}))
                if found[1]["text"] != text:
                    raise DataError(f"{row.place}: the article {echo(identity)} has another text than at {found[0]}")
                set_id = row.get("set_unique_id", str)
                for n, question in enumerate(row.nodes("questions"), start=1):
                    asked.append((brief(question.place, file), _choice(question, identity, f"{set_id}-{n}")))
        return Contents(documents_of(documents.values()), asked)


def _choice(question: JsonNode, document: str, otherwise: str) -> dict[str, Any]:
    choices = question.texts("options")
    told = {
        "id": question.value.get("question_unique_id") or otherwise,
        "question": question.get("question", str),
        "document_id": document,
        "without_evidence": True,
        "choices": choices,
        "difficult": question.value.get("difficult"),
    }
    if question.value.get("gold_label") is None:
        return told
    label = question.get("gold_label", int)
    if not 1 <= label <= len(choices):
        raise DataError(
            f"{question.place}: expected 'gold_label' from 1 to {len(choices)}, the number of options, got {label}"
        )
    return {**told, "correct": label - 1, "answers": [choices[label - 1]]}


@layouts.register("squad")
class Squad(Layout):
    """SQuAD (Rajpurkar et al., 2016, 2018), and collections in its layout."""

    files = '.json files of {"data": [{"title", "paragraphs": [{"context", "qas"}]}]}, v1.1 or v2.0'
    keys = ("data", "paragraphs")
    _BETWEEN = "\n\n"

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document is an article: its contexts, separated by blank lines.

        Its id is its title, or its first paragraph's ``document_id``. Equal articles in several files are one document;
        different articles of one title are numbered. Evidence is every annotator's answer, verified against its text.
        Questions with ``is_impossible`` or no answer are without evidence, with ``metadata["unanswerable"]``.
        """
        documents: dict[str, Row] = {}
        asked: list[Row] = []
        for file in with_keys(root, self.keys, self.suffixes):
            for number, article in enumerate(JsonNode(read_json(file), str(file), joint=", ").nodes("data"), start=1):
                paragraphs = article.nodes("paragraphs")
                contexts = [each.get("context", str) for each in paragraphs]
                text = self._BETWEEN.join(contexts)
                first = paragraphs[0].value if paragraphs else {}
                names = (article.value.get("title"), first.get("document_id"), f"{file.stem}-{number}")
                name = next(str(each) for each in names if isinstance(each, str | int) and str(each).strip())
                numbered = (name if n == 1 else f"{name}-{n}" for n in count(1))
                # Another article's name is numbered; an equal article is the same document.
                identity = next(n for n in numbered if n not in documents or documents[n][1]["text"] == text)
                documents[identity] = (article.place, {"id": identity, "text": text})
                start = 0
                for paragraph, context in zip(paragraphs, contexts, strict=True):
                    found = _paragraph_questions(paragraph, identity, start)
                    asked += [(brief(here, file), row) for here, row in found]
                    start += len(context) + len(self._BETWEEN)
        return Contents(documents_of(documents.values()), asked)


@layouts.register("cuad")
class Cuad(Squad):
    """CUAD (Hendrycks et al., 2021): clauses of contracts."""

    files = "CUADv1.json, as squad"


@layouts.register("covid_qa")
class CovidQA(Squad):
    """COVID-QA (Möller et al., 2020)."""

    files = "COVID-QA.json, as squad"


def _paragraph_questions(paragraph: JsonNode, document: str, start: int) -> Iterator[Row]:
    for row in paragraph.nodes("qas"):
        question = row.get("question", str)
        answers = []
        for answer in row.nodes("answers", []):
            text = answer.get("text", str)
            begin = start + answer.get("answer_start", int)
            answers.append({"start": begin, "end": begin + len(text), "text": text})
        own = ("answers", "question", "id", "is_impossible")
        told = {
            **{key: value for key, value in row.value.items() if key not in own},
            "id": row.value.get("id"),
            "question": question,
            "document_id": document,
            "answers": list(dict.fromkeys(each["text"] for each in answers)),
        }
        if row.value.get("is_impossible") is True or not answers:
            yield row.place, told | {"without_evidence": True, "unanswerable": True}
        else:
            yield row.place, told | {"evidence": _distinct(answers)}


class SectionedLayout(Layout):
    """Text files of a sentence a line, with other lines between their sections."""

    by_content = True
    holds = "boundaries"
    tells_sections = True

    begins: ClassVar[str]  # what such a file begins with
    divider: ClassVar[re.Pattern[str]]  # lines between sections; its groups are the level and title of a heading
    suffix: ClassVar[str] = ""  # of the files; "" for any

    def lacks(self, root: Path) -> str:
        line = "" if self.begins.endswith(",") else "a line "
        return "" if begins_with(root, self.begins.encode()) else f"a file that begins with {line}{self.begins}"

    def sections(self, root: Path) -> Iterable[Row]:
        """A text per file: its sentences, joined by line feeds.

        Headings are in ``metadata["headings"]``: [offset, level, title].
        """
        for file in regular_files(root):
            if not (self.suffix in ("", file.suffix) or file == root):
                continue
            text = TextBuilder("\n")
            starts: list[int] = []
            sentences: list[list[int]] = []
            headings: list[list[Any]] = []
            waiting: list[list[Any]] = []
            for _, line in text_lines(file):
                if found := self.divider.fullmatch(line.rstrip("\r\n")):
                    waiting.append([int(found[1][:9]), found[2].removesuffix(".")] if self.divider.groups else [])
                elif span := text.add(line.strip()):
                    sentences.append([span.start, span.end])
                    starts += [span.start] if waiting and span.start else []
                    headings += [[span.start, *heading] for heading in waiting]
                    waiting.clear()
            name = file.name if file == root else file.relative_to(root).as_posix()
            row = {"id": name, "text": text.text, "boundaries": starts, "sentences": sentences}
            yield str(file), row | {"headings": headings} if self.divider.groups else row


@layouts.register("choi")
class Choi(SectionedLayout):
    """Choi (2000): segments of ten texts each, joined."""

    files = "*.ref with lines of ==========, at any depth"
    begins = "=========="
    divider = re.compile(r"\s*==========\s*")
    suffix = ".ref"


@layouts.register("wiki727k")
class Wiki727k(SectionedLayout):
    """Wiki-727k (Koshorek et al., 2018): articles with their sections."""

    files = "files with lines of ========,level,title. at any depth (WIKI-50, too)"
    begins = "========,"
    divider = re.compile(r"========,(\d+),(.*)")
