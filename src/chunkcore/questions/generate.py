"""`generate_benchmark`: questions about the user's documents, with the places that answer them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.document import Document, Span
from chunkcore.errors import DataError, ModelError, NoAnswerError, OptionError
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, documents_digest
from chunkcore.evaluation.text_search import fold
from chunkcore.files import installed_version
from chunkcore.models import Embedder
from chunkcore.models.llm import LLM, Estimator, Question, UnreachableError, Usage, ask, get_llm
from chunkcore.questions.filters import Filtered, FilterThresholds, filter_questions
from chunkcore.questions.journal import BudgetError, CallBudget, Journal, JournaledLLM
from chunkcore.questions.prompts import (
    MODES,
    Mode,
    NotVerbatimError,
    Sample,
    Schedule,
    Written,
    locate_excerpts,
    prompt_version,
    question_about,
)
from chunkcore.registry import LARGEST, check_number


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How questions are made.

    Attributes:
        questions: how many to make, before the filters.
        mode: "factual" asks for facts, as the Chroma report does; "realistic" asks vaguely, in everyday words.
        sample_size: characters of a document shown at once.
        earlier: the most earlier questions shown, those about the same document first.
        excerpts: the most excerpts a question may have.
        seed: of the samples and of the earlier questions shown.
        concurrency: questions under way at once, not shown to each other: the questions depend on it.
        retries: after an unreadable answer. Excerpts that are not verbatim reject the question without a retry.
        patience: rejections in a row after which a document is given up.
    """

    questions: int = 100
    mode: Mode = "factual"
    sample_size: int = 4_000
    earlier: int = 50
    excerpts: int = 5
    seed: int = 0
    concurrency: int = 4
    retries: int = 1
    patience: int = 5

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise OptionError(f"mode is one of {', '.join(MODES)}, got {self.mode!r}")
        least = {"sample_size": 100, "earlier": 0, "seed": 0, "retries": 0}
        for name, value in asdict(self).items():
            if name != "mode":
                check_number(name, value, least.get(name, 1), 1_000 if name == "concurrency" else LARGEST)


Stage = Literal["answer", "excerpts", "question", "relevance", "duplicate"]
Progress = Callable[[int, int], None]

_LEAK = 20  # letters and digits; shorter questions occur by chance


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question that is not in the benchmark.

    Attributes:
        id: the id it would have had.
        document_id: of the passage shown.
        sample: the passage.
        stage: "answer" (unreadable), "excerpts" (not verbatim), "question" (asked before or copied), or the filter.
        reason: in words.
        question: "" without one.
        excerpts: as the model wrote them.
    """

    id: str
    document_id: str
    sample: Span
    stage: Stage
    reason: str
    question: str = ""
    excerpts: tuple[str, ...] = ()


class Kept(NamedTuple):
    """A question that is kept."""

    id: str
    text: str
    sample: Sample
    spans: tuple[Span, ...]

    @property
    def evidence(self) -> list[Evidence]:
        return [Evidence(self.sample.document.id, span) for span in self.spans]

    @property
    def excerpts(self) -> list[str]:
        return [span.slice(self.sample.document.text) for span in self.spans]

    def row(self, mode: Mode) -> dict[str, Any]:
        places = zip(self.spans, self.excerpts, strict=True)
        return {
            "id": self.id,
            "question": self.text,
            "document_id": self.sample.document.id,
            "evidence": [{"start": span.start, "end": span.end, "text": text} for span, text in places],
            "mode": mode,
            "sample": [self.sample.span.start, self.sample.span.end],
        }


class QuestionWriter:
    """The questions so far. Answers are used in the order of asking, not of arrival."""

    def __init__(self, documents: Sequence[Document], options: GenerationOptions, *, assumed: bool = False) -> None:
        if len({document.id for document in documents}) < len(documents):
            raise DataError("two documents share an id, so a place could not be named: make the ids unique")
        self.options = options
        self.schedule = Schedule(documents, options.sample_size, options.seed, options.patience)
        if len(self.schedule.unasked) == len(documents):
            raise DataError(f"none of the {len(documents)} documents has a letter or a digit to ask about")
        self.kept: list[Kept] = []
        self.rejections: list[Rejection] = []
        self.asked = 0
        self._assumed = assumed
        self._written: list[tuple[str, str]] = []  # document and question, also rejected ones
        self._folded: dict[str, str] = {}  # ids of kept questions

    def run(self, llm: LLM, threads: int, progress: Progress | None) -> None:
        """Ask until there are enough questions or nothing is left to ask."""
        waiting: deque[tuple[str, Sample, Future[Written]]] = deque()
        pool = ThreadPoolExecutor(min(threads, self.options.concurrency))
        try:
            while True:
                while (sample := self._next(len(waiting))) is not None:
                    question = self._question(sample)
                    answer = pool.submit(ask, llm, question, retries=self.options.retries)
                    waiting.append((f"g{self.asked}", sample, answer))
                if not waiting:
                    return
                self._take(*waiting.popleft())
                if progress is not None:
                    progress(len(self.kept), self.options.questions)
        except BudgetError:
            for each in waiting:  # answered meanwhile
                try:
                    self._take(*each)
                except UnreachableError:  # calls that were never made reached the cap
                    raise
                except ModelError:
                    pass
            raise
        finally:
            pool.shutdown(cancel_futures=True)  # wait for answers already paid for

    def _next(self, under_way: int) -> Sample | None:
        if under_way >= self.options.concurrency or len(self.kept) + under_way >= self.options.questions:
            return None
        return self.schedule.draw()

    def _question(self, sample: Sample) -> Question[Written]:
        self.asked += 1
        earlier = self._earlier(sample.document.id)
        return question_about(sample.text, earlier, self.options.mode, self.options.excerpts, self.asked)

    def _earlier(self, document_id: str) -> list[str]:
        """Earlier questions in order, those of this document first, sampled if there are too many."""
        drawn = np.random.default_rng([self.options.seed, self.asked])
        same = [place for place, (name, _) in enumerate(self._written) if name == document_id]
        others = [place for place, (name, _) in enumerate(self._written) if name != document_id]
        chosen: list[int] = []
        for places in (same, others):
            most = min(len(places), self.options.earlier - len(chosen))
            chosen += drawn.choice(places, most, replace=False).tolist() if most else []
        return [self._written[place][1] for place in sorted(chosen)]

    def _take(self, name: str, sample: Sample, answer: Future[Written]) -> None:
        found = self._judge(name, sample, answer)
        self.schedule.settle(sample, kept=isinstance(found, Kept))
        if isinstance(found, Kept):
            self.kept.append(found)
            self._folded[fold(found.text).text] = name
        else:
            self.rejections.append(found)

    def _judge(self, name: str, sample: Sample, answer: Future[Written]) -> Kept | Rejection:
        try:
            written = answer.result()
        except NoAnswerError as error:
            return Rejection(name, sample.document.id, sample.span, "answer", str(error))
        self._written.append((sample.document.id, written.question))
        if self._assumed:
            return Kept(name, written.question, sample, (sample.span,))

        def rejected(stage: Stage, reason: str) -> Rejection:
            return Rejection(name, sample.document.id, sample.span, stage, reason, written.question, written.excerpts)

        folded = fold(written.question).text
        if folded in self._folded:
            return rejected("question", f"it was asked before, as {self._folded[folded]}")
        if len(folded) >= _LEAK and folded in fold(sample.text).text:
            return rejected("question", "it stands in the passage word for word, so that any search finds it there")
        try:
            spans = locate_excerpts(sample, written.excerpts)
        except NotVerbatimError as error:
            return rejected("excerpts", str(error))
        return Kept(name, written.question, sample, tuple(spans))


INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class Generated:
    """Questions, and the rejected ones.

    Attributes:
        documents: the documents asked about.
        rows: one question each, as in a ``questions.jsonl``.
        rejections: in the order of asking.
        usage: all calls of the journal, earlier runs included.
        filtered: what the filters did; None without an embedder.
        stopped: why there are too few questions; "" if there are enough.
        unfinished: a cap or Ctrl-C stopped the work; the same call with a higher cap resumes it.
        info: seed, model, prompt, options.
    """

    documents: Sequence[Document]
    rows: Sequence[Mapping[str, Any]]
    rejections: Sequence[Rejection]
    usage: Usage
    filtered: Filtered | None = None
    stopped: str = ""
    unfinished: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)

    def benchmark(self, name: str = "generated") -> Benchmark:
        """The questions as a benchmark, each place verified. Raises `DataError` without questions."""
        return load_benchmark(self.documents, self.rows, name=name)


def generate_benchmark(
    documents: Sequence[Document],
    llm: LLM | str,
    options: GenerationOptions | None = None,
    *,
    journal: Journal | Path | str | None = None,
    budget: CallBudget | None = None,
    embedder: Embedder | None = None,
    thresholds: FilterThresholds | None = None,
    progress: Progress | None = None,
) -> Generated:
    """Questions that a language model writes about passages of the documents, with verbatim excerpts that answer them.

    After the Chroma report, "Dataset Generation" and "Dataset Prefiltering": the model sees a passage and earlier
    questions, and writes a question and up to five excerpts. An excerpt that is not in the passage, apart from white
    space, rejects the question. Only the places of excerpts are kept, so the model can change no text.

    The result depends only on the documents, the options and the model's answers. With a journal no answer is paid for
    twice: a stopped run resumes, and the same call with more questions adds to them.

    Args:
        documents: at least one that is not blank.
        llm: a model, or a name for `get_llm`.
        options: see `GenerationOptions`.
        journal: the file of calls and answers; None keeps them in memory.
        budget: caps all runs of the journal; the questions so far are then filtered and returned.
        embedder: for the filters; None for none.
        thresholds: of the filters; None proposes them from the data.
        progress: called with the number of questions kept and wanted.

    Raises:
        DataError: no document to ask about, two share an id, or the journal is damaged.
        ModelError: the model cannot be asked, or the embedder failed.

    >>> from chunkcore.models.llm import CallableLLM
    >>> told = '{"oath": "I will.", "question": "Who naps?", "excerpts": ["The fox naps."]}'
    >>> llm = CallableLLM(lambda messages, schema: told, name="always so")
    >>> made = generate_benchmark([Document("fox.txt", "The fox naps.")], llm, GenerationOptions(questions=1))
    >>> made.rows[0]["question"], made.rows[0]["evidence"]
    ('Who naps?', [{'start': 0, 'end': 13, 'text': 'The fox naps.'}])
    """
    options = options or GenerationOptions()
    model = get_llm(llm)
    if journal is None or isinstance(journal, str | Path):
        with Journal(journal) as opened:
            return generate_benchmark(
                documents,
                model,
                options,
                journal=opened,
                budget=budget,
                embedder=embedder,
                thresholds=thresholds,
                progress=progress,
            )
    journaled = JournaledLLM(model, journal, budget)
    made = QuestionWriter(documents, options)
    stopped, unfinished = "", False
    try:
        made.run(journaled, journaled.concurrency, progress)
    except BudgetError as error:
        stopped, unfinished = str(error), True
    except KeyboardInterrupt:
        if not made.kept:
            raise
        stopped, unfinished = INTERRUPTED, True
    except ModelError as error:
        if journal.path is None:
            raise
        raise ModelError(f"{error}. What was answered is kept in {journal.path}: do the same again to go on") from error
    if not stopped and len(made.kept) < options.questions:
        stopped = f"every document was given up after {options.patience} rejections in a row"
    rows = [question.row(options.mode) for question in made.kept]
    filtered = None
    if embedder is not None and made.kept:
        filtered = filter_questions(
            [question.text for question in made.kept],
            [question.evidence for question in made.kept],
            [question.excerpts for question in made.kept],
            embedder,
            thresholds or FilterThresholds(),
        )
        rows, made.rejections = _without(made, rows, filtered)
    return Generated(
        documents=documents,
        rows=tuple(rows),
        rejections=tuple(made.rejections),
        usage=journal.usage,
        filtered=filtered,
        stopped=stopped,
        unfinished=unfinished,
        info=_info(documents, model, options, made, filtered, embedder),
    )


def estimate_generation(documents: Sequence[Document], options: GenerationOptions | None = None) -> Usage:
    """Calls and tokens (`cl100k_base`) that generating would take. Nothing is asked.

    Assumes that every question is kept, with an answer of about 200 tokens (the Chroma report's mean), and no journal.
    """
    estimator = Estimator()
    made = QuestionWriter(documents, options or GenerationOptions(), assumed=True)
    made.run(estimator, 1, None)
    return estimator.usage


def _without(
    made: QuestionWriter, rows: Sequence[dict[str, Any]], filtered: Filtered
) -> tuple[list[dict[str, Any]], list[Rejection]]:
    """The rows left after the filters, and all rejections in the order of asking."""
    gone = {each.index: each for each in filtered.dropped}
    more = [
        Rejection(
            kept.id, kept.sample.document.id, kept.sample.span, each.stage, each.reason, kept.text, tuple(kept.excerpts)
        )
        for kept, each in ((made.kept[index], each) for index, each in gone.items())
    ]
    rejections = sorted([*made.rejections, *more], key=lambda each: int(each.id[1:]))
    return [row for index, row in enumerate(rows) if index not in gone], rejections


def _info(
    documents: Sequence[Document],
    llm: LLM,
    options: GenerationOptions,
    made: QuestionWriter,
    filtered: Filtered | None,
    embedder: Embedder | None,
) -> dict[str, Any]:
    represented = {kept.sample.document.id for kept in made.kept}
    return {
        "chunkcore": installed_version(),
        "model": llm.name,
        "model_fingerprint": llm.fingerprint,
        "prompt": prompt_version(options.mode),
        "seed": options.seed,
        "options": asdict(options),
        "documents": len(documents),
        "documents_hash": documents_digest(documents),
        "asked": made.asked,
        "kept_before_filters": len(made.kept),
        "without_question": [each.id for each in documents if each.id not in represented],
        "embedder": embedder.name if embedder is not None else None,
        "duplicate_threshold": filtered.duplicate if filtered else None,
        "relevance_threshold": filtered.relevance if filtered else None,
    }
