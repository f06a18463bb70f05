"""`QuestionScorer`: one question's answers at a time, for frameworks that evaluate question by question."""

from __future__ import annotations

from collections.abc import Sequence

from chunkadapters._retrieval.locating import Locator
from chunkadapters._retrieval.pieces import Piece
from chunkadapters._retrieval.scored import benchmark_of
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.measures import Measure, as_measure
from chunkcore.evaluation.run import Run
from chunkcore.evaluation.scoring import Scorer

__all__ = ["QuestionScorer"]


class QuestionScorer:
    """Scores what was retrieved for a question by the benchmark's evidence for it. Documents are read once.

    Args:
        benchmark: documents, questions and the spans that answer them; or a shipped collection's name.
        counter: whose tokens are counted.

    Raises:
        OptionError: no such collection or counter.
    """

    def __init__(self, benchmark: Benchmark | str, counter: str = "cl100k_base") -> None:
        benchmark = benchmark_of(benchmark)
        self._scorer = Scorer(benchmark, counter=counter)
        self._locator = Locator(benchmark)
        self._place = {query.id: place for place, query in enumerate(benchmark.queries)}
        self._ids: dict[str, list[str]] = {}
        for query in benchmark.queries:
            self._ids.setdefault(query.text, []).append(query.id)

    def scores(self, question: str, pieces: Sequence[Piece], measures: Sequence[Measure | str]) -> list[float]:
        """A score for each measure.

        Args:
            question: its text, or its id.
            pieces: what was retrieved, best first.
            measures: such as ``["Recall@5", "IoU@5"]``.

        Raises:
            DataError: the benchmark has no such question, or several of that text.
            OptionError: an unknown measure.
        """
        query_id = self._found(question)
        wanted = [as_measure(each) for each in measures]
        run = Run("question", {query_id: [self._locator.locate(each) for each in pieces]})
        report = self._scorer.score(run, wanted)
        return [float(report.values(each)[self._place[query_id]]) for each in wanted]

    def _found(self, question: str) -> str:
        if question in self._place:
            return question
        ids = self._ids.get(question, [])
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise DataError(f"the benchmark asks {question!r} {len(ids)} times: give the id, one of {', '.join(ids)}")
        raise DataError(f"the benchmark has no question {question!r}: give a question's text or id as it has it")
