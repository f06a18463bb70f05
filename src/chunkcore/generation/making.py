"""`Making`: asks for one question after another, several at a time, and says which are kept and which are rejected."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.document import Document, Span
from chunkcore.errors import DataError, ModelError, NoAnswerError
from chunkcore.evaluation.benchmark import Evidence
from chunkcore.evaluation.text_forms import fold
from chunkcore.generation.budget import BudgetError
from chunkcore.generation.excerpts import NotVerbatimError, locate_excerpts
from chunkcore.generation.options import GenerationOptions
from chunkcore.generation.prompts import Mode, Written, question_about
from chunkcore.generation.samples import Sample, Schedule
from chunkcore.models.llm import LLM, Question, UnreachableError, ask

__all__ = ["Kept", "Making", "Progress", "Rejection", "Stage"]

Stage = Literal["answer", "excerpts", "question", "relevance", "duplicate"]
Progress = Callable[[int, int], None]

_LEAK = 20  # letters and digits; a shorter question can stand in a text by chance


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question that is not in the benchmark.

    Attributes:
        id: that it would have had.
        document_id: whose passage the model was shown.
        sample: the passage.
        stage: what rejected it: the model's "answer" cannot be read, its "excerpts" are not verbatim, the
            "question" was asked already or stands in the text, or a filter ("relevance", "duplicate").
        reason: in words.
        question: "" where there is none.
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


class Making:
    """The questions so far. Answers are taken in the order in which they were asked for, whichever comes first."""

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
        self._written: list[tuple[str, str]] = []  # document and question, also of those that were rejected
        self._folded: dict[str, str] = {}  # of each kept question its id

    def run(self, llm: LLM, threads: int, progress: Progress | None) -> None:
        """Ask until there are as many questions as are wanted, or nothing is left to ask.

        Raises:
            ModelError: the model cannot be asked any more.
        """
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
            for each in waiting:  # answered while that one was refused
                try:
                    self._take(*each)
                except UnreachableError:  # then the cap was reached by calls that were never made
                    raise
                except ModelError:
                    pass
            raise
        finally:
            pool.shutdown(cancel_futures=True)  # what is under way is paid, so its answer is waited for

    def _next(self, under_way: int) -> Sample | None:
        if under_way >= self.options.concurrency or len(self.kept) + under_way >= self.options.questions:
            return None
        return self.schedule.draw()

    def _question(self, sample: Sample) -> Question[Written]:
        self.asked += 1
        earlier = self._earlier(sample.document.id)
        return question_about(sample.text, earlier, self.options.mode, self.options.excerpts, self.asked)

    def _earlier(self, document_id: str) -> list[str]:
        """Questions that were asked before, in their order: of this document first, drawn where there are too many."""
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
