"""`generate_benchmark`: questions about the user's documents, with the places that answer them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, ModelError, NoAnswerError
from chunkcore.evaluation.benchmarks.benchmark import documents_digest
from chunkcore.files import check_no_link, installed_version, utf8_line, write_checked
from chunkcore.locating.text_search import fold
from chunkcore.models import Embedder
from chunkcore.models.llm import (
    LLM,
    BadAnswerError,
    CachedLLM,
    Estimator,
    Message,
    Reply,
    Usage,
    ask,
    get_llm,
)
from chunkcore.models.llm.base import Metered, awaited
from chunkcore.options import Bounds, check_options
from chunkcore.plain import digest
from chunkcore.questions.prompts import (
    PROMPT_VERSION,
    NotVerbatimError,
    Sample,
    Schedule,
    Written,
    locate_excerpts,
    question_about,
)
from chunkcore.questions.validate import (
    Filtered,
    check_questions_file,
    evidence_of,
    filter_questions,
)
from chunkcore.text import Document, Span


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How questions are made.

    Attributes:
        questions: how many to make, before the filters.
        sample_size: characters of a document shown at once.
        seed: of the samples.
        concurrency: questions under way at once, not shown to each other: the questions depend on it.
        retries: after an unreadable answer. Excerpts that are not verbatim reject the question without a retry.
        patience: rejections in a row after which a document is given up.
    """

    questions: int = 100
    sample_size: int = 4_000
    seed: int = 0
    concurrency: int = 4
    retries: int = 1
    patience: int = 5
    bounds = Bounds(
        questions=1, sample_size=100, seed=0, retries=0, patience=1, concurrency=(1, 1_000)
    )

    def __post_init__(self) -> None:
        check_options(self)


Stage = Literal["answer", "excerpts", "question", "relevance", "duplicate"]

_IN_A_ROW = 10  # more questions without an answer are the endpoint's fault
_EARLIER = 50  # earlier questions that are shown at most
_LEAK = 20  # letters and digits; shorter questions occur by chance


class Rejection(NamedTuple):
    """A question that is not in the benchmark, with the id that it would have had, and the model's excerpts.

    Attributes:
        stage: "answer" (unreadable), "excerpts" (not verbatim), "question" (asked before or copied), or the filter.
        question: "" without one.
    """

    id: str
    document_id: str
    sample: Span
    stage: Stage
    reason: str
    question: str = ""
    excerpts: tuple[str, ...] = ()


_Row = dict[str, Any]  # a question that is kept, as a file of questions has it


def _row(name: str, question: str, sample: Sample, spans: Sequence[Span]) -> _Row:
    return {
        "id": name,
        "question": question,
        "document_id": sample.document.id,
        "evidence": [evidence_of(sample.document, [span]) for span in spans],
        "sample": [sample.span.start, sample.span.end],
    }


def _excerpts(row: _Row) -> list[str]:
    return [piece["text"] for piece in row["evidence"]]


class BudgetError(ModelError):
    """One more call would exceed the cap."""


class _Capped(Metered):
    """A language model that is asked at most `most` times (None: no cap), and whose calls of this run are counted.

    Ten failures in a row are the endpoint's, and a `ModelError`; an invalid answer is no failure.
    """

    def __init__(self, llm: LLM, most: int | None) -> None:
        self.llm = llm
        self.most = most
        self.name = llm.name
        self.fingerprint = llm.fingerprint
        self.concurrency = getattr(llm, "concurrency", 1)
        self._asked = count(1)
        self._failed = count(1)

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Any:
        if self.most is not None and next(self._asked) > self.most:
            raise BudgetError(f"the cap of {self.most:,} calls is reached")
        try:
            answer = awaited(self.llm.complete(messages, schema))
        except (NoAnswerError, BadAnswerError, TimeoutError) as error:
            if next(self._failed) >= _IN_A_ROW:
                raise ModelError(
                    f"{_IN_A_ROW} questions in a row got no answer, the last one: {error}"
                ) from error
            raise
        self._failed = count(1)
        reply = Reply(answer) if isinstance(answer, str) else answer
        if isinstance(reply, Reply) and isinstance(reply.text, str):
            self.count_call(messages, reply)
        return answer


class QuestionWriter:
    """The questions so far. Answers are used in the order of asking, not of arrival."""

    def __init__(
        self, documents: Sequence[Document], options: GenerationOptions, *, assumed: bool = False
    ) -> None:
        if len({document.id for document in documents}) < len(documents):
            raise DataError(
                "two documents share an id, so a place could not be named: make the ids unique"
            )
        self.options = options
        self.schedule = Schedule(documents, options.sample_size, options.seed, options.patience)
        if not len(self.schedule):
            raise DataError(
                f"none of the {len(documents)} documents has a letter or a digit to ask about"
            )
        self.kept: list[_Row] = []
        self.rejections: list[Rejection] = []
        self.asked = 0
        self.stopped = ""
        self._assumed = assumed
        self._written: list[tuple[str, str]] = []  # document and question, also rejected ones
        self._folded: dict[str, str] = {}  # ids of kept questions

    def run(self, llm: LLM, progress: Progress | None = None) -> None:
        """Ask until there are enough questions, nothing is left to ask, a cap is reached, or it is interrupted and has
        some: `stopped` says so.
        """
        options = self.options
        waiting: deque[tuple[str, Sample, Future[Written]]] = deque()  # in the order of asking
        pool = ThreadPoolExecutor(min(getattr(llm, "concurrency", 1), options.concurrency))
        try:
            while True:
                lacking = options.questions - len(self.kept)
                while not self.stopped and len(waiting) < min(options.concurrency, lacking):
                    sample = self.schedule.draw()
                    if sample is None:
                        break
                    self.asked += 1
                    # The latest, those of this document last, and so never left out first.
                    order = sorted(self._written, key=lambda one: one[0] == sample.document.id)
                    earlier = [question for _, question in order[-_EARLIER:]]
                    question = question_about(sample.text, earlier, self.asked)
                    answer = pool.submit(ask, llm, question, retries=options.retries)
                    waiting.append((f"g{self.asked}", sample, answer))
                if not waiting:
                    break
                try:
                    self._take(*waiting.popleft())
                except BudgetError as error:
                    self.stopped = str(error)
                if progress is not None:
                    progress("questions", len(self.kept), options.questions)
        except KeyboardInterrupt:
            if not self.kept:
                raise
            self.stopped = INTERRUPTED
        finally:
            pool.shutdown(cancel_futures=True)  # wait for answers already paid for

    def _take(self, name: str, sample: Sample, answer: Future[Written]) -> None:
        """Keep a question, or note why it is rejected."""
        written = Written("", ())
        stage: Stage = "answer"
        reason = ""
        spans = [sample.span]
        try:
            written = answer.result()
            self._written.append((sample.document.id, written.question))
            if not self._assumed:
                stage, reason = "question", self._fault(written.question, sample)
            if not reason and not self._assumed:
                stage = "excerpts"
                spans = locate_excerpts(sample, written.excerpts)
        except (NoAnswerError, NotVerbatimError) as error:
            reason = str(error) or type(error).__name__
        self.schedule.settle(sample, kept=not reason)
        if reason:
            about = name, sample.document.id, sample.span
            self.rejections.append(Rejection(*about, stage, reason, *written))
        else:
            self.kept.append(_row(name, written.question, sample, spans))
            self._folded[fold(written.question).text] = name

    def _fault(self, question: str, sample: Sample) -> str:
        """Why a question is rejected, whatever its excerpts are; "" for none."""
        folded = fold(question).text
        if folded in self._folded:
            return f"it was asked before, as {self._folded[folded]}"
        if len(folded) >= _LEAK and folded in fold(sample.text).text:
            return "it stands in the passage word for word, so that any search finds it there"
        return ""


INTERRUPTED = "it was interrupted"
_UNFILTERED = Filtered(None, ())


@dataclass(frozen=True)
class Generated:
    """Questions, and the rejected ones.

    Attributes:
        rows: one question each, as in a ``questions.jsonl``.
        rejections: in the order of asking.
        usage: calls of this run, and answers from the cache.
        filtered: what the filters did: nothing without an embedder.
        stopped: why there are too few questions; "" if there are enough.
        info: seed, model, prompt, options.
    """

    documents: Sequence[Document]
    rows: Sequence[Mapping[str, Any]]
    rejections: Sequence[Rejection]
    usage: Usage
    filtered: Filtered = _UNFILTERED
    stopped: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


def generate_benchmark(
    documents: Sequence[Document],
    llm: LLM | str,
    options: GenerationOptions | None = None,
    *,
    max_calls: int | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Generated:
    """Questions that a language model writes about passages of the documents, with verbatim excerpts that answer them.

    After the Chroma report, "Dataset Generation" and "Dataset Prefiltering" (docs/guides/questions.md). Only the places
    of excerpts are kept, so the model can change no text. The result depends only on the documents, the options and the
    model's answers: with a `CachedLLM` a stopped run resumes, and the same call with more questions adds to them.

    Args:
        max_calls: of this run, without answers from a cache; then the questions so far are filtered and returned.
        embedder: for the filters, whose thresholds follow from the data; None for no filter.
        progress: called with "questions", the number kept, and the number to make.

    Raises:
        DataError: no document to ask about, or two share an id.
        ModelError: the model cannot be asked, or the embedder failed.

    >>> from chunkcore.models.llm import CallableLLM
    >>> answer = '{"oath": "I will.", "question": "Who naps?", "excerpts": ["The fox naps."]}'
    >>> llm = CallableLLM(lambda messages, schema: answer, name="always so")
    >>> generated = generate_benchmark([Document("fox.txt", "The fox naps.")], llm, GenerationOptions(questions=1))
    >>> generated.rows[0]["question"], generated.rows[0]["evidence"]
    ('Who naps?', [{'document': 'fox.txt', 'start': 0, 'end': 13, 'text': 'The fox naps.'}])
    """
    options = options or GenerationOptions()
    model = get_llm(llm)
    if isinstance(model, CachedLLM):
        model = CachedLLM(_Capped(model.llm, max_calls), model.cache)
    else:
        model = _Capped(model, max_calls)
    writer = QuestionWriter(documents, options)
    try:
        writer.run(model, progress)
    except ModelError as error:
        if not isinstance(model, CachedLLM):
            raise
        raise ModelError(
            f"{error}. What was answered is in the cache: do the same again to go on"
        ) from error
    filtered = _UNFILTERED
    if embedder is not None and writer.kept:
        texts = [row["question"] for row in writer.kept]
        filtered = filter_questions(texts, list(map(_excerpts, writer.kept)), embedder)
    rejections, kept = list(writer.rejections), list(writer.kept)
    for drop in filtered.dropped:
        row = writer.kept[drop.place]
        kept.remove(row)
        sample, excerpts = Span(*row["sample"]), tuple(_excerpts(row))
        stated = drop.stage, drop.reason, row["question"], excerpts
        rejections.append(Rejection(row["id"], row["document_id"], sample, *stated))
    rejections.sort(key=lambda rejection: int(rejection.id[1:]))
    stopped = writer.stopped
    if not stopped and len(writer.kept) < options.questions:
        stopped = f"every document was given up after {options.patience} rejections in a row"
    return Generated(
        documents=documents,
        rows=tuple(kept),
        rejections=tuple(rejections),
        usage=model.usage,
        filtered=filtered,
        stopped=stopped,
        info=_info(documents, model, writer, embedder),
    )


def estimate_generation(
    documents: Sequence[Document], options: GenerationOptions | None = None
) -> Usage:
    """Calls and tokens (`cl100k_base`) that generating would take. Nothing is asked.

    Assumes that every question is kept, with an answer of about 200 tokens (the Chroma report's mean), and no cache.
    """
    estimator = Estimator()
    QuestionWriter(documents, options or GenerationOptions(), assumed=True).run(estimator)
    return estimator.usage


def _info(
    documents: Sequence[Document], llm: LLM, writer: QuestionWriter, embedder: Embedder | None
) -> dict[str, Any]:
    return {
        "chunkcore": installed_version(),
        "model": llm.name,
        "model_fingerprint": llm.fingerprint,
        "prompt": PROMPT_VERSION,
        "options": asdict(writer.options),
        "documents_hash": documents_digest(documents),
        "asked": writer.asked,
        "embedder": embedder and embedder.name,
    }


def write_generated(questions: Path, generated: Generated) -> None:
    """Write the questions; the rejected ones, and the run's seed, model, prompt, options, calls and thresholds, into
    ``.rejected.jsonl`` and ``.info.json`` beside them; and checksums (see `write_checked`). All or none.

    Raises `OptionError`: the file's name does not end in ``.jsonl``.
    """
    check_questions_file(questions)
    rejected = [
        utf8_line({**row._asdict(), "sample": [row.sample.start, row.sample.end]})
        for row in generated.rejections
    ]
    written = b"".join(map(utf8_line, generated.rows))
    info = {
        "questions": len(generated.rows),
        "checksum": digest(written),
        "rejected": len(generated.rejections),
        "stopped": generated.stopped,
        "relevance_threshold": generated.filtered.relevance,
        **generated.info,
        "usage": asdict(generated.usage),
    }
    beside = questions.with_suffix(".rejected.jsonl"), questions.with_suffix(".info.json")
    check_no_link(*beside)
    write_checked(
        {
            beside[0]: b"".join(rejected),
            beside[1]: json.dumps(info, indent=2).encode("ascii") + b"\n",
            questions: written,
        }
    )
