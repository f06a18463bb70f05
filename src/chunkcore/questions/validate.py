"""`validate_benchmark`: problems of questions and their evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from chunkcore.errors import DataError, counted, echo
from chunkcore.evaluation.benchmarks.benchmark import Query, Questions, is_chroma, question_rows
from chunkcore.evaluation.benchmarks.loading import QuestionReader, contents_of
from chunkcore.files import TABLES, json_object, text_lines
from chunkcore.locating.text_search import Searchable, fold
from chunkcore.models import Embedder, embed
from chunkcore.models.base import unit_rows
from chunkcore.reading.opening import Row
from chunkcore.spans import Scores
from chunkcore.text import Document
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
_LEAST = 3  # tokens of evidence
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
    contents = contents_of(documents, questions, (), follow_links)
    file = _questions_file(documents, questions)
    if file is None:
        rows, before = list(contents.questions), ""
    else:
        rows, before = _lines(file), f"{file}, "
    if not rows:
        raise DataError(
            f'{before}there are no questions: expected lines like {{"question": ..., "evidence": [...]}}'
        )
    reader = QuestionReader(contents.documents, rows, contents.unread)
    findings = []
    places: list[str] = []  # of the reader's queries
    for line, row in rows:
        place = f"{before}{line}"
        reader.add(line, row)
        for problem in (*reader.problems, *reader.notes):
            reason = problem.reason.removeprefix(f"{line}: ")
            findings.append(Finding(problem.kind, place, problem.query_id, reason))
        reader.problems.clear()
        reader.notes.clear()
        places += [place] * (len(reader.queries) - len(places))
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
        if count < _LEAST or not text.strip():
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


def _questions_file(
    documents: str | Path | Sequence[Document], questions: Questions | None
) -> Path | None:
    """The questions' file, if they come from one."""
    is_folder = questions is None and isinstance(documents, str | Path)
    if is_folder and not is_chroma(Path(str(documents))):
        questions = Path(str(documents)) / "questions.jsonl"
    return Path(questions) if isinstance(questions, str | Path) else None


def _lines(path: Path) -> list[Row]:
    """The rows of a file of questions; a damaged line of JSON becomes one that is left out."""
    if path.suffix.lower() in TABLES:
        return list(question_rows(path))
    rows: list[Row] = []
    for number, line in text_lines(path):
        if line.strip():
            try:
                row = json_object(line)
            except DataError as error:
                row = {"left_out": str(error)}
            rows.append((f"line {number}", row))
    return rows


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


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped question's place, and why."""

    index: int
    stage: Literal["duplicate", "relevance"]
    reason: str


@dataclass(frozen=True, eq=False)
class Filtered:
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
