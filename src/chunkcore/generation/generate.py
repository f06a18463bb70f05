"""`generate_benchmark`: questions about the user's own documents, with the places that answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.errors import ModelError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.digests import documents_digest
from chunkcore.evaluation.loading import load_benchmark
from chunkcore.generation.budget import BudgetError, CallBudget
from chunkcore.generation.filters import Filtered, FilterThresholds, filter_questions
from chunkcore.generation.journal import Journal
from chunkcore.generation.journaled import JournaledLLM
from chunkcore.generation.making import Making, Progress, Rejection
from chunkcore.generation.options import GenerationOptions
from chunkcore.generation.prompts import prompt_version
from chunkcore.models import Embedder
from chunkcore.models.llm import LLM, Estimator, Usage, get_llm
from chunkcore.version import installed_version

__all__ = ["INTERRUPTED", "Generated", "estimate_generation", "generate_benchmark"]

INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class Generated:
    """Questions, and what became of the others.

    Attributes:
        documents: that they are about.
        rows: a question each, as in a ``questions.jsonl``.
        rejections: with their reasons, in the order in which they were asked.
        usage: all calls of the journal: those of earlier runs included.
        filtered: what the filters did; None where there was no embedder.
        stopped: why there are fewer questions than were wanted; "" where there are as many.
        unfinished: whether the cap or Ctrl-C stopped the work, so that the same call, with a higher cap, goes on.
        info: what made them: seed, model, prompt, options.
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
        """The questions as a benchmark, each place verified.

        Raises:
            DataError: there is none.
        """
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
    """Questions that a language model writes about passages of the documents, with the excerpts that answer them.

    After the Chroma report, sections "Dataset Generation" and "Dataset Prefiltering": the model is shown a passage and
    earlier questions, and writes a question and up to five excerpts. An excerpt that does not stand in the passage,
    letter by letter or but for white space, rejects the whole question. What is kept of an excerpt is its place, so
    the model can change no text, whatever a document tells it to do.

    The result depends on the documents, the options and the model's answers alone, not on which answer comes first.
    With a journal no answer is paid twice: a run that was stopped or killed goes on where it was, and the same
    call with more questions adds to those that are there.

    Args:
        documents: at least one that is not blank.
        llm: what `get_llm` knows, or an `LLM`.
        options: see `GenerationOptions`.
        journal: where calls and answers are written down; None for this run alone.
        budget: what may be spent, over all runs of the journal; what is there is then filtered and returned.
        embedder: for the filters; None for none.
        thresholds: of the filters; None proposes them from the data.
        progress: called with the questions that are kept and those that are wanted.

    Raises:
        DataError: no document has a letter or a digit, two share an id, or the journal is damaged.
        OptionError: `llm` or the journal is none.
        ModelError: the model cannot be asked at all, or the embedder failed.
        KeyboardInterrupt: before any question was kept; later it ends the work with those that are there.

    >>> from chunkcore import CallableLLM
    >>> told = '{"oath": "I will.", "question": "Who naps?", "excerpts": ["The fox naps."]}'
    >>> made = generate_benchmark(
    ...     [Document("fox.txt", "The fox naps. The dog runs.")],
    ...     CallableLLM(lambda messages, schema: told, name="always so"),
    ...     GenerationOptions(questions=1),
    ... )
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
    made = Making(documents, options)
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
    """What generating would take: calls, and tokens as `cl100k_base`. Nothing is asked.

    Every question is assumed to be kept at the first try, with an answer of about 200 tokens as the Chroma report
    measured; neither rejections nor answers that a journal holds are foreseen.

    Raises:
        DataError: no document has a letter or a digit, or two share an id.
    """
    estimator = Estimator()
    made = Making(documents, options or GenerationOptions(), assumed=True)
    made.run(estimator, 1, None)
    return estimator.usage


def _without(
    made: Making, rows: Sequence[dict[str, Any]], filtered: Filtered
) -> tuple[list[dict[str, Any]], list[Rejection]]:
    """What is left after the filters, and all rejections in the order in which the questions were asked."""
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
    made: Making,
    filtered: Filtered | None,
    embedder: Embedder | None,
) -> dict[str, Any]:
    """What somebody needs to know who wants to do the same."""
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
