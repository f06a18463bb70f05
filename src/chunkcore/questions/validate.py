"""`validate_benchmark`: problems of questions and their evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError, echo
from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query, Questions, is_chroma
from chunkcore.evaluation.benchmarks.loading import QuestionReader, contents_of
from chunkcore.files import json_object, text_lines
from chunkcore.locating.text_search import Searchable, fold
from chunkcore.models import Embedder, embed
from chunkcore.models.base import unit_rows
from chunkcore.options import Bounds, check_options
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
_LEAK = 20  # letters and digits; shorter texts occur by chance
_ANSWER = 8  # likewise, of an answer in its question
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class ValidationOptions:
    """Limits of the checks.

    Attributes:
        size: of the chunks to compare, in tokens.
        least: the fewest tokens of evidence.
        similarity: cosine over which two questions are nearly the same.
        follow_links: whether links out of a folder are read.
    """

    size: int = 200
    least: int = 3
    similarity: float = ALIKE
    counter: str | TokenCounter = "cl100k_base"
    follow_links: bool = False
    bounds: ClassVar[Bounds] = {"size": 1, "least": 1, "similarity": (-1, 1)}

    def __post_init__(self) -> None:
        check_options(self)
        get_counter(self.counter)


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem.

    Attributes:
        kind: one of `KINDS`, which says why it matters.
        place: the file and line of a question; the id of a document.
        query_id: "" for a document.
    """

    kind: str
    place: str
    query_id: str
    message: str


def validate_benchmark(
    documents: str | Path | Sequence[Document],
    questions: Questions | None = None,
    *,
    options: ValidationOptions | None = None,
    embedder: Embedder | None = None,
) -> list[Finding]:
    """Problems of a collection, by kind (`KINDS`), then in file order.

    Args:
        documents: a folder, a text file, a ``documents.jsonl``, or the documents themselves.
        questions: a ``questions.jsonl``, a ``.csv`` with the Chroma report's columns, or such rows; None for the
            folder's own.
        embedder: finds questions in nearly the same words; None finds only equal ones.

    Raises `DataError`: a file cannot be read, or there are no questions.

    >>> story = Document("fox.txt", "The fox naps. The dog naps.")
    >>> lines = [{"question": "Who naps?", "evidence": ["naps."]}, {"question": "Who runs?", "evidence": ["The cat"]}]
    >>> for found in validate_benchmark([story], lines, options=ValidationOptions(size=5)):
    ...     print(found.kind, "|", found.place, "|", found.message[:41])
    not-found | question 2 | the excerpt 'The cat' is not found in 'fo
    ambiguous | question 1 | the excerpt 'naps.' occurs 2 times ('fox.
    """
    read = _Read(documents, questions, options or ValidationOptions())
    findings = [
        *read.problems,
        *read.same_words(),
        *read.nearly_same_words(embedder),
        *read.leaks(),
        *read.sizes(),
    ]
    order = list(KINDS)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


@dataclass(frozen=True)
class _Located:
    place: str
    query: Query


class _Read:
    def __init__(
        self,
        documents: str | Path | Sequence[Document],
        questions: Questions | None,
        options: ValidationOptions,
    ) -> None:
        self.options = options
        self.counter = get_counter(options.counter)
        self.questions: list[_Located] = []
        self.problems: list[Finding] = []
        contents = contents_of(documents, questions, follow_links=options.follow_links)
        self.documents, rows, unread = contents[:3]
        self._texts = {document.id: document.text for document in self.documents}
        file = _questions_file(documents, questions)
        listed = list(rows if file is None else _lines(file))
        before = "" if file is None else f"{file}, "
        if not listed:
            raise DataError(
                f'{before}there are no questions: expected lines like {{"question": ..., "evidence": [...]}}'
            )
        reader = QuestionReader(self.documents, [str(row.get("id")) for _, row in listed], unread)
        for place, row in listed:
            reader.add(place, row)
            self._take(reader, f"{before}{place}", place)

    def _take(self, reader: QuestionReader, place: str, line: str) -> None:
        """Move what the reader has read of a line."""
        self.questions += [_Located(place, query) for query in reader.queries]
        reader.queries.clear()
        for problems in (reader.problems, reader.notes):
            for problem in problems:
                reason = problem.reason.removeprefix(f"{line}: ")
                self.problems.append(Finding(problem.kind, place, problem.query_id, reason))
            problems.clear()

    def same_words(self) -> Iterator[Finding]:
        for located in self.questions:
            first = self._firsts[_words(located)]
            if first is not located:
                yield _about(
                    located, "duplicate", f"the same words as {first.query.id!r} at {first.place}"
                )

    def nearly_same_words(self, embedder: Embedder | None) -> Iterator[Finding]:
        distinct = list(self._firsts.values())
        if embedder is None or not distinct:
            return
        vectors = unit_rows(
            embed(embedder, [located.query.text for located in distinct], queries=True)
        )
        for index, located in enumerate(distinct[1:], start=1):
            cosines = vectors[:index] @ vectors[index]
            likest = int(np.argmax(cosines))
            first = distinct[likest]
            if cosines[likest] > self.options.similarity:
                message = f"nearly the same as {first.query.id!r} at {first.place} (cosine {cosines[likest]:.2f})"
                yield _about(located, "duplicate", f"{message}: {first.query.text!r}")

    def leaks(self) -> Iterator[Finding]:
        for located in self.questions:
            for message in (*self._copies(located.query), *_given_answers(located.query)):
                yield _about(located, "leakage", message)

    def _copies(self, query: Query) -> Iterator[str]:
        """Where the question stands in a document, and the evidence that stands in the question."""
        question = fold(query.text).text
        if len(question) < _LEAK:
            return
        place = next(self._folds.places(question, None), None)
        if place is not None:
            owner, start = place
            span = self._folds.forms[owner].span(start, start + len(question))
            where = f"{self.documents[owner].id!r} at {span.start}-{span.end}"
            yield f"the question stands in {where}, word for word"
        for piece in query.evidence:
            text = self._slice(piece)
            folded = fold(text).text
            if len(folded) >= _LEAK and folded in question:
                yield f"its evidence stands in the question: {echo(text)}"

    def sizes(self) -> Iterator[Finding]:
        for located in self.questions:
            for piece in located.query.evidence:
                text = self._slice(piece)
                count = self.counter.count(text)
                if count > self.options.size:
                    message = f"evidence of {count:,} tokens, over the {self.options.size:,} of a chunk: {echo(text)}"
                    yield _about(located, "over-size", message)
                if count < self.options.least or not text.strip():
                    tokens = "1 token" if count == 1 else f"{count} tokens"
                    yield _about(located, "short", f"evidence of {tokens}: {echo(text)}")

    @cached_property
    def _firsts(self) -> dict[str, _Located]:
        firsts: dict[str, _Located] = {}
        for located in self.questions:
            firsts.setdefault(_words(located), located)
        return firsts

    @cached_property
    def _folds(self) -> Searchable:
        return Searchable([document.text for document in self.documents], fold, window=8, stride=4)

    def _slice(self, piece: Evidence) -> str:
        return piece.span.slice(self._texts[piece.document_id])


def _questions_file(
    documents: str | Path | Sequence[Document], questions: Questions | None
) -> Path | None:
    """The questions' file, if they come line by line."""
    is_folder = questions is None and isinstance(documents, str | Path)
    if is_folder and not is_chroma(Path(str(documents))):
        questions = Path(str(documents)) / "questions.jsonl"
    if not isinstance(questions, str | Path) or Path(questions).suffix.lower() == ".csv":
        return None
    return Path(questions)


def _lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The lines of a ``questions.jsonl``; a damaged line becomes a row that is left out."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for number, line in text_lines(path):
        if line.strip():
            try:
                row = json_object(line)
            except DataError as error:
                row = {"left_out": str(error)}
            rows.append((f"line {number}", row))
    return rows


def _words(question: _Located) -> str:
    return fold(question.query.text).text or question.query.text


def _about(question: _Located, kind: str, message: str) -> Finding:
    return Finding(kind, question.place, question.query.id, message)


def _given_answers(query: Query) -> Iterator[str]:
    """The answers that stand in the question."""
    answers: list[object] = []
    for name in ("answer", "answers"):
        value = query.metadata.get(name)
        answers += value if isinstance(value, list) else [value]
    for answer in answers:
        if isinstance(answer, str) and _holds(query.text, answer):
            yield f"its answer stands in the question: {echo(answer)}"


def _holds(question: str, answer: str) -> bool:
    """Whether the answer's words follow one another in the question."""
    sought = " ".join(fold(word).text for word in _WORD.findall(answer))
    words = " ".join(fold(word).text for word in _WORD.findall(question))
    return len(sought) >= _ANSWER and f" {sought} " in f" {words} "


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
    questions: Sequence[str], excerpts: Sequence[Sequence[str]], embedder: Embedder
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


def unrelated_under(answers: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """The cosine under which an excerpt is unrelated to its question.

    It minimises the share of a question's excerpts under it plus the share of other questions' excerpts over it
    (Youden, "Index for rating diagnostic tests", Cancer 3, 1950).
    """
    answers, others = np.sort(answers), np.sort(others)
    under = np.arange(len(answers)) / len(answers)
    over = 1 - np.searchsorted(others, answers, side="left") / len(others)
    return float(answers[int(np.argmin(under + over))])
