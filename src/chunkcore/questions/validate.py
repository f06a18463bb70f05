"""`validate_benchmark`: problems of questions and their evidence. `label_states`: whether each label's evidence is
still in the documents. `fix_questions` corrects what moved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import DataError, OptionError, counted, echo
from chunkcore.evaluation.benchmarks.benchmark import (
    Query,
    QuestionRow,
    Questions,
    question_rows,
)
from chunkcore.evaluation.benchmarks.loading import (
    EvidenceError,
    EvidenceFinder,
    QuestionReader,
    contents_of,
    document_name,
    entries_of,
    understood,
)
from chunkcore.files import TABLES, json_lines, json_object, text_lines, utf8_line, write_checked
from chunkcore.locating.alignment import Aligner
from chunkcore.locating.text_search import Searchable, fold
from chunkcore.models import Embedder, embed
from chunkcore.models.base import unit_rows
from chunkcore.plain import JsonObject
from chunkcore.reading.opening import Row
from chunkcore.reading.visible import in_source
from chunkcore.run import Retrieved
from chunkcore.spans import Scores
from chunkcore.text import Document, Span
from chunkcore.tokens import TokenCounter, get_counter

# By kind of finding: what it is, and why it matters.
KINDS = {
    "malformed": "lines that are no JSON or no question with evidence, and are left out",
    "repeated-id": "questions whose id was given before: no comparison is made until ids are unique",
    "not-found": "evidence that does not stand where it should: the question is left out",
    "ambiguous": "evidence that stands at several places, and does not say which: the question is left out",
    "respelled": "excerpts that stand at one place in another spelling, and are accepted",
    "duplicate": "questions that were asked before, in these or nearly these words: they count twice",
    "leakage": "questions that stand in a document, or hold their answer: any search finds them",
    "short": "evidence of so few tokens that nearly every chunk holds it whole",
    "over-size": "evidence that no chunk of the size can hold: larger chunks win for that alone",
}

ALIKE = 0.9  # cosine over which two questions ask the same
_FEWEST = 3  # tokens of evidence
_LEAK = 20  # letters and digits; shorter texts occur by chance
_ANSWER = 8  # likewise, of an answer in its question
_WORD = re.compile(r"\w+")
_Problems = Iterator[tuple[str, str]]  # kinds of finding, and messages


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem.

    Attributes:
        kind: one of `KINDS`, which says why it matters.
        place: the file and line of a question.
    """

    kind: str
    place: str
    query_id: str
    message: str


def validate_benchmark(
    documents: str | Path | Sequence[Document],
    questions: Questions | None = None,
    *,
    size: int = 200,
    counter: str | TokenCounter = "cl100k_base",
    embedder: Embedder | None = None,
    follow_links: bool = False,
) -> list[Finding]:
    """Problems of a collection, by kind (`KINDS`), then in file order.

    Args:
        documents: a folder, a text file, a ``documents.jsonl``, or the documents themselves.
        questions: a ``questions.jsonl``, a ``.csv`` with the Chroma report's columns, or such rows; None for the
            folder's own.
        size: of the chunks to compare, in tokens of `counter`.
        embedder: finds questions in nearly the same words; None finds only equal ones.
        follow_links: whether links out of a folder are read.

    Raises `DataError`: a file cannot be read, or there are no questions.

    >>> story = Document("fox.txt", "The fox naps. The dog naps.")
    >>> lines = [{"question": "Who naps?", "evidence": ["naps."]}, {"question": "Who runs?", "evidence": ["The cat"]}]
    >>> for found in validate_benchmark([story], lines, size=5):
    ...     print(found.kind, "|", found.place, "|", found.message[:41])
    not-found | question 2 | the excerpt 'The cat' is not found in 'fo
    ambiguous | question 1 | the excerpt 'naps.' occurs 2 times ('fox.
    """
    contents = contents_of(documents, questions, follow_links, read=_all_rows)
    before = f"{contents.file}, " if contents.file else ""
    if not contents.questions:
        raise DataError(
            f'{before}there are no questions: expected lines like {{"question": ..., "evidence": [...]}}'
        )
    reader = QuestionReader(contents)
    findings = []
    for problem in (*reader.problems, *reader.notes):
        place, _, reason = problem.reason.partition(": ")
        findings.append(Finding(problem.kind, f"{before}{place}", problem.query_id, reason))
    places = [f"{before}{reader.places[query.id]}" for query in reader.queries]
    texts = {document.id: document.text for document in contents.documents}
    folded = Searchable(list(texts.values()), fold, window=8, stride=4)
    tokens = get_counter(counter)
    for place, query in zip(places, reader.queries, strict=True):
        excerpts = [piece.span.slice(texts[piece.document_id]) for piece in query.evidence]
        problems = (
            *_copies(query.text, folded, list(texts), excerpts),
            *_given_answers(query),
            *_sizes(excerpts, tokens, size),
        )
        findings += [Finding(kind, place, query.id, message) for kind, message in problems]
    findings += _repeated(places, reader.queries, embedder)
    order = list(KINDS)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


def _sizes(excerpts: Sequence[str], counter: TokenCounter, size: int) -> _Problems:
    """The evidence that is too long or too short, by kind of finding."""
    for text in excerpts:
        count = counter.count(text)
        shown = f"evidence of {counted(count, 'token')}"
        if count > size:
            yield "over-size", f"{shown}, over the {size:,} of a chunk: {echo(text)}"
        if count < _FEWEST or not text.strip():
            yield "short", f"{shown}: {echo(text)}"


def _repeated(
    places: Sequence[str],
    queries: Sequence[Query],
    embedder: Embedder | None,
) -> Iterator[Finding]:
    """The questions that were asked before: those in the same words, then those in nearly the same."""
    firsts: dict[str, tuple[str, Query]] = {}
    for place, query in zip(places, queries, strict=True):
        words = fold(query.text).text or query.text
        earlier, first = firsts.setdefault(words, (place, query))
        if first is not query:
            message = f"the same words as {first.id!r} at {earlier}"
            yield Finding("duplicate", place, query.id, message)
    distinct = list(firsts.values())
    if embedder is None or not distinct:
        return
    vectors = unit_rows(embed(embedder, [query.text for _, query in distinct], queries=True))
    for index, (place, query) in enumerate(distinct[1:], start=1):
        cosines = vectors[:index] @ vectors[index]
        likest = int(np.argmax(cosines))
        earlier, first = distinct[likest]
        if cosines[likest] > ALIKE:
            message = f"nearly the same as {first.id!r} at {earlier} (cosine {cosines[likest]:.2f})"
            yield Finding("duplicate", place, query.id, f"{message}: {first.text!r}")


def _copies(
    text: str,
    documents: Searchable,
    names: Sequence[str],
    excerpts: Sequence[str],
) -> _Problems:
    """Where the question stands in a document, and the evidence that stands in the question."""
    question = fold(text).text
    if len(question) < _LEAK:
        return
    for owner, start in islice(documents.places(question, None), 1):
        span = documents.forms[owner].span(start, start + len(question))
        message = (
            f"the question stands in {names[owner]!r} at {span.start}-{span.end}, word for word"
        )
        yield "leakage", message
    for excerpt in excerpts:
        folded = fold(excerpt).text
        if len(folded) >= _LEAK and folded in question:
            yield "leakage", f"its evidence stands in the question: {echo(excerpt)}"


def _all_rows(questions: Questions) -> Iterator[Row]:
    """The rows of questions; a damaged line of JSON becomes one that is left out, and an edited file is read."""
    if not isinstance(questions, str | Path) or Path(questions).suffix.lower() in TABLES:
        yield from question_rows(questions)
        return
    for number, line in text_lines(Path(questions)):
        if line.strip():
            try:
                row = json_object(line)
            except DataError as error:
                row = {"left_out": str(error)}
            yield f"line {number}", row


def _given_answers(query: Query) -> _Problems:
    """The answers that stand in the question."""
    answers: list[object] = []
    for name in ("answer", "answers"):
        value = query.metadata.get(name)
        answers += value if isinstance(value, list) else [value]
    words = _words(query.text)
    for answer in answers:
        sought = _words(answer) if isinstance(answer, str) else ""
        if len(sought) >= _ANSWER and f" {sought} " in f" {words} ":
            yield "leakage", f"its answer stands in the question: {echo(answer)}"


def _words(text: str) -> str:
    return " ".join(fold(word).text for word in _WORD.findall(text))


_ENOUGH = 20  # questions; fewer give no threshold


class Dropped(NamedTuple):
    """A dropped question's place, and why."""

    place: int
    stage: Literal["duplicate", "relevance"]
    reason: str


class Filtered(NamedTuple):
    """The least cosine of a related excerpt (None: of too few questions), and the dropped questions in order."""

    relevance: float | None
    dropped: tuple[Dropped, ...]


def filter_questions(
    questions: Sequence[str],
    excerpts: Sequence[Sequence[str]],
    embedder: Embedder,
) -> Filtered:
    """Questions to drop: those with an unrelated excerpt, and duplicates, of which the first stays.

    `excerpts` holds each question's texts. What is unrelated follows from the data: see `unrelated_under`. A duplicate
    has a cosine over 0.9; of 20 questions or more, over nine tenths of the way from the median cosine of two questions
    to 1, as some models have no cosine under 0.7. O(n²) time and memory for n questions.
    """
    queries = unit_rows(embed(embedder, questions, queries=True))
    answers = unit_rows(embed(embedder, [text for texts in excerpts for text in texts]))
    owners = np.repeat(np.arange(len(questions)), list(map(len, excerpts)))
    is_answer = owners == np.arange(len(questions))[:, None]
    related = queries @ answers.T
    relevance, alike = None, ALIKE
    if len(questions) >= _ENOUGH:
        usual = float(np.median(queries @ queries.T))
        alike = usual + ALIKE * (1 - usual)
        relevance = unrelated_under(related[is_answer], related[~is_answer])
    least = np.where(is_answer, related, np.inf).min(axis=1)
    kept: list[int] = []
    dropped = []
    for index, lowest in enumerate(least.tolist()):
        cosines = queries[kept] @ queries[index]
        if relevance is not None and lowest < relevance:
            reason = f"an excerpt has cosine {lowest:.3f} with the question, under {relevance:.3f}"
            dropped.append(Dropped(index, "relevance", reason))
        elif cosines.max(initial=-1) > alike:
            first = questions[kept[int(cosines.argmax())]]
            reason = (
                f"it has cosine {cosines.max():.3f}, over {alike:.3f}, with the question {first!r}"
            )
            dropped.append(Dropped(index, "duplicate", reason))
        else:
            kept.append(index)
    return Filtered(relevance, tuple(dropped))


def unrelated_under(answers: Scores, others: Scores) -> float:
    """The cosine under which an excerpt is unrelated to its question.

    It minimises the share of a question's excerpts under it plus the share of other questions' excerpts over it
    (Youden, "Index for rating diagnostic tests", Cancer 3, 1950).
    """
    answers, others = np.sort(answers), np.sort(others)
    under = np.arange(len(answers)) / len(answers)
    over = 1 - np.searchsorted(others, answers, side="left") / len(others)
    return float(answers[int(np.argmin(under + over))])


State = Literal["there", "moved", "changed", "split", "gone"]
_SHORTEST = 8  # letters and digits of a sentence that is looked for by itself
_ALIKE = 0.6  # the least share of equal letters of a changed excerpt
_PLACED = ("exact", "whitespace", "folded", "ambiguous")
_CERTAIN = 0.8  # of a place that is accepted
_UNSURE = ("ambiguous", "part", "unlocated")


class LabelState(NamedTuple):
    """What has become of an excerpt.

    Attributes:
        place: the line of the file.
        state: "there", at its place; "moved", in the same words elsewhere; "split", its sentences stand apart;
            "changed", in other words or in part; or "gone".
        found: where its text or its sentences stand now, with the kind of match.
    """

    place: str
    query_id: str
    excerpt: str
    state: State
    found: tuple[Retrieved, ...] = ()

    def __str__(self) -> str:
        text = f"{self.place}, {self.query_id!r}: {self.state} {echo(self.excerpt)}"
        for piece in self.found:
            place = f"{piece.document_id} {piece.spans[0].start}-{piece.spans[-1].end}"
            text += f", now {place} ({piece.certainty:.0%} alike)"
        return text


def check_questions_file(path: Path) -> None:
    """Raise `OptionError` if the name does not end in ``.jsonl``."""
    if path.suffix != ".jsonl":
        raise OptionError(f"the questions go into a file whose name ends in .jsonl, got {path}")


def label_states(documents: Sequence[Document], path: Path) -> list[LabelState]:
    """The state of each excerpt of a ``questions.jsonl``, in order.

    Raises `DataError`: the file cannot be read.

    >>> import json, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "questions.jsonl")
    >>> evidence = [{"document": "fox.txt", "start": 0, "end": 19, "text": "The quick fox naps."}]
    >>> _ = file.write_text(json.dumps({"id": "q", "question": "Who naps?", "evidence": evidence}))
    >>> [state.state for state in label_states([Document("fox.txt", "It rains. The quick fox naps.")], file)]
    ['moved']
    >>> folder.cleanup()
    """
    finder = _Finder(documents)
    states = []
    for line, row in question_rows(path):
        for _, excerpt in _excerpts(_with_entries(row, finder.documents)):
            state, places = finder.state(excerpt)
            name = str(row.get("id", ""))
            states.append(LabelState(line, name, excerpt["text"], state, places))
    return states


def evidence_of(document: Document, spans: Sequence[Span]) -> JsonObject:
    """Evidence from the first of these spans to the last, as a row of questions has it: in the document's file."""
    span = Span(spans[0].start, spans[-1].end)
    (place,) = in_source(document, [span])
    text = span.slice(document.text)
    return {"document": document.id, "start": place.start, "end": place.end, "text": text}


def _with_entries(row: QuestionRow, documents: Collection[str]) -> JsonObject:
    """The row under our keys, its evidence as a list: empty where it is none, which `questions check` says."""
    entry = understood(row, documents)
    entries: list[Any] = []
    with suppress(EvidenceError):
        entries = entries_of(entry)
    entry.pop("spans", None)
    return {**entry, "evidence": entries}


def _excerpts(row: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    """The excerpts of a row by their places in its list, each with the name of its document, "" for any."""
    for place, entry in enumerate(row["evidence"]):
        if isinstance(entry, str):
            entry = {"text": entry}
        if isinstance(entry, Mapping) and isinstance(entry.get("text"), str):
            name = entry.get("document_id", entry.get("document", row.get("document_id")))
            yield place, {**entry, "document_id": document_name(name)}


class _Finder:
    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = {document.id: document for document in documents}
        self._evidence = EvidenceFinder(documents)
        # Their indexes are made when they are used.
        self._exact = Aligner(documents, similarity=None)
        self._loose = Aligner(documents, similarity=_ALIKE)

    def resembling(self, excerpt: JsonObject) -> Retrieved | None:
        """What surely resembles the whole of an excerpt that a benchmark refuses; None for any other."""
        with suppress(EvidenceError):
            self._evidence.find(excerpt)
            return None
        located = self._loose.locate(excerpt["text"], document_id=excerpt["document_id"])
        is_sure = located.match not in _UNSURE and located.certainty >= _CERTAIN
        return located if is_sure else None

    def state(self, excerpt: JsonObject) -> tuple[State, tuple[Retrieved, ...]]:
        text, name = excerpt["text"], excerpt["document_id"]
        with suppress(EvidenceError):
            place = self._evidence.find(excerpt)
            return "there", (Retrieved(place.document_id, (place.span,), text=text),)
        same = self._located(self._exact, text, name)
        if same.match in _PLACED:
            is_there = excerpt.get("start") is None and name in ("", same.document_id)
            return "there" if is_there else "moved", (same,)
        sentences = []
        for begin, end in sentence_ranges(text).tolist():
            sentence = text[begin:end].strip()
            if len(fold(sentence).text) >= _SHORTEST:
                sentences.append(self._located(self._exact, sentence, name))
        if len(sentences) > 1 and all(sentence.match in _PLACED for sentence in sentences):
            return "split", tuple(sentences)
        alike = self._located(self._loose, text, name)
        if alike.spans:
            return "changed", (alike,)
        held = tuple(sentence for sentence in sentences if sentence.spans)
        return ("changed" if held else "gone"), held

    def _located(self, aligner: Aligner, text: str, name: str) -> Retrieved:
        """The text in its document, or else in another."""
        if name in self.documents:
            inside = aligner.locate(text, document_id=name)
            if inside.spans:
                return inside
        return aligner.locate(text)


def fix_questions(documents: Sequence[Document], path: Path) -> list[LabelState]:
    """Replace excerpts of a ``questions.jsonl`` that are not found by the places that resemble them; returns these.

    A place counts if at least 80 % of its letters are the excerpt's and no other place is as near. The file is written
    only if there is one.

    Raises `DataError`: the file cannot be read.

    >>> import json, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "questions.jsonl")
    >>> excerpt = "The quikc fox naps. The dog barks."
    >>> _ = file.write_text(json.dumps({"id": "q", "question": "Who naps?", "evidence": [excerpt]}))
    >>> print(*fix_questions([Document("fox.txt", "It rains. The quick fox naps. The dog barks.")], file))
    line 1, 'q': changed 'The quikc fox naps. The dog barks.', now fox.txt 10-44 (93% alike)
    >>> folder.cleanup()
    """
    finder = _Finder(documents)
    rows: list[QuestionRow] = []
    fixes = []
    for number, row in json_lines(path):
        rows.append(row)
        entry = _with_entries(row, finder.documents)
        for place, excerpt in _excerpts(entry):
            located = finder.resembling(excerpt)
            if located is not None:
                document = finder.documents[located.document_id]
                entry["evidence"][place] = evidence_of(document, located.spans)
                rows[-1] = entry
                name = str(row.get("id", ""))
                fixes.append(
                    LabelState(f"line {number}", name, excerpt["text"], "changed", (located,))
                )
    if fixes:
        write_checked({path: b"".join(map(utf8_line, rows))})
    return fixes
