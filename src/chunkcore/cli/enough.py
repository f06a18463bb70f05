"""``chunkcore calibrate`` and ``check``: how many tokens hold the evidence, when it is not there, and if that holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.cli.search import Opening
from chunkcore.errors import counted

if TYPE_CHECKING:
    from chunkcore.retrieval.passages.enough import Enough
    from chunkcore.study.enough import Needs


@options.grouped
def calibrate(
    opening: Opening,
    questions: Annotated[
        Path, options.value("FILE", "Labelled questions of these documents.", "--questions")
    ],
    miss: Annotated[float, options.value("SHARE", "Of questions that may lack evidence.")] = 0.1,
    refuse: Annotated[
        float, options.value("SHARE", "Of questions that may be called unrelated.")
    ] = 0.05,
) -> None:
    """Find out how many tokens hold the evidence, and when it is not in the documents.

    Prints tokens against the share of questions with all evidence, and keeps two thresholds in the index:
    max_tokens="auto" then gives each question what it needs, and `related` says whether the answer is there. Of
    questions like these, in the mean, at most --miss lack evidence; that is no promise for a single one. The exit
    code is 1 if there are too few questions, or too much evidence is out of reach.

    Example: chunkcore calibrate docs.index --questions questions.jsonl --miss 0.1
    """
    from chunkcore.evaluation.benchmarks import load_benchmark
    from chunkcore.retrieval.saved import read_manifest
    from chunkcore.study.enough import UnattainableError, measure_needs

    opened = opening.open()
    benchmark = load_benchmark(opened.index.corpus.documents, questions)
    needs = measure_needs(opened.index, benchmark)
    running.say(
        f"{counted(len(needs.levels), 'question')}: tokens in the mean, and questions with all evidence"
    )
    _print(_curve_lines(needs))
    try:
        enough = needs.enough(miss, refuse)
    except UnattainableError as error:
        running.say(f"chunkcore: {error}", err=True)
        raise typer.Exit(1) from error
    running.say(*_promise_lines(needs, enough))
    if opened.folder is None:
        return
    opened.index.enough = enough
    opened.index.save(opened.folder, notes=read_manifest(opened.folder)["notes"])
    running.say("saved in the index; in Python, and in each framework's IndexRetriever:")
    _print(_paste_lines(opened.folder))


def _print(lines: Iterable[str]) -> None:
    """Lines with their white space."""
    for line in lines:
        typer.echo(line)


@options.grouped
def check(
    opening: Opening,
    questions: Annotated[
        Path, options.value("FILE", "A questions.jsonl of these documents.", "--questions")
    ],
) -> None:
    """Say whether labels and thresholds still hold, after documents or the index have changed.

    Each excerpt is there, moved, split (its sentences stand apart), changed or gone. A calibrated index is compared
    with what was calibrated: another embedder, lost documents or units, and drift of the questions' presence, with
    5 % of false alarms at most. The exit code is 1 if an excerpt is split, changed or gone, or the index has changed.

    Example: chunkcore check docs/ --questions questions.jsonl
    """
    from chunkcore.files import json_lines
    from chunkcore.questions.labels import label_states
    from chunkcore.retrieval.passages import WindowIndex
    from chunkcore.study.enough import index_changes

    index = opening.open().index
    states = label_states(index.corpus.documents, questions)
    counts = Counter(state.state for state in states)
    _print(str(state) for state in states if state.state != "there")
    listed = ", ".join(f"{count} {state}" for state, count in counts.items())
    running.say(f"{counted(len(states), 'excerpt')}: {listed}")
    has_failed = bool(counts["split"] + counts["changed"] + counts["gone"])
    if index.enough is not None:
        assert isinstance(index, WindowIndex)
        texts = [str(row.get("question", "")) for _, row in json_lines(questions)]
        changes = index_changes(index, texts)
        for change in changes:
            running.say(f"{change.words}: calibrate again")
        if not changes:
            running.say("the questions' presence is as it was")
        has_failed = has_failed or bool(changes)
    if has_failed:
        raise typer.Exit(1)


def _curve_lines(needs: Needs) -> Iterator[str]:
    for point in needs.curve():
        yield f"{point.tokens:8,.0f}  {point.share:4.0%}  (95 % interval {point.low:.0%} to {point.high:.0%})"


def _promise_lines(needs: Needs, enough: Enough) -> Iterator[str]:
    yield (
        f"at most {enough.miss:.0%} of questions like these lack evidence: {enough.tokens:,.0f} tokens in the mean"
    )
    yield f"at most {enough.refuse:.0%} are called unrelated"
    if len(needs.unanswered):
        share, low, high = needs.passing(enough.least)
        yield f"asked without their documents, {share:.0%} ({low:.0%} to {high:.0%}) are still called related"
    for question, document in needs.repeated.items():
        yield f"left out there: {document} answers {question} as well"


def _paste_lines(folder: Path) -> Iterator[str]:
    name = str(folder)
    yield "    from chunkcore import load_index"
    yield f"    index = load_index({name!r})"
    yield '    passages = index.retrieve(question, max_tokens="auto")'
    yield "    if not index.is_related(question): ...  # ask back, or say that it is not there"
