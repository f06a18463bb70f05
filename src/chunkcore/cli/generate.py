"""``chunkcore generate``: questions about the user's own documents, written by a language model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import flags
from chunkcore.cli.caching import default_cache
from chunkcore.cli.progress import reporting
from chunkcore.cli.signals import told_when_stopped
from chunkcore.cli.spending import read_prices, spent
from chunkcore.cli.stopping import StoppedError
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chunkcore.document import Document
    from chunkcore.models import Embedder
    from chunkcore.models.llm import Prices
    from chunkcore.questions import Generated
    from chunkcore.questions.filters import FilterThresholds, Threshold
    from chunkcore.questions.page import GenerationFiles
    from chunkcore.questions.prompts import Mode

__all__ = ["HELP", "generate"]

HELP = help_text(
    """Write questions about documents, each with the excerpts that answer it, by a language model.

The model is shown passages of 4,000 characters, drawn with a seed so that every document has its turn, and up to 50
earlier questions. It answers with a question and up to five excerpts. An excerpt that does not stand in the passage
word for word rejects the question: what is written are places in your documents, never a model's words.

Beside questions.jsonl, which chunkcore compare --questions reads, are written questions.rejected.jsonl (what was
rejected and why), questions.info.json (seed, model, prompt, calls), questions.filters.html (the distributions
that the filters went by) and questions.journal.jsonl: every call and its answer. As long as that is there, the same
command asks nothing twice: stop it or kill it and run it again, or ask for more questions.

Filters drop questions that were asked twice, and those with an excerpt that has nothing to do with them, by cosine.
Without given thresholds they are proposed from the data; look at questions.filters.html, and give others: no call
is made again for that.

  chunkcore generate --docs docs/ --llm openai:qwen3:8b@http://localhost:11434/v1 --output questions.jsonl

  chunkcore generate --docs docs/ --llm openai:qwen3:8b@http://localhost:11434/v1 --dry-run

  chunkcore generate --docs docs/ --llm openai:qwen3:8b@http://localhost:11434/v1 --max-calls 200

Exit code 1 where the work ended, by a cap or for want of good answers, before there were as many as wanted.
"""
)


def generate(
    docs: Annotated[Path, typer.Option(help="A folder of text files, a file, or a documents.jsonl.")],
    llm: Annotated[str, typer.Option(help="The language model, as openai:MODEL@URL.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The questions; other files are named after it.")
    ] = Path("questions.jsonl"),
    questions: Annotated[int, typer.Option("--questions", "-n", min=1, help="How many, before the filters.")] = 100,
    mode: Annotated[
        str, typer.Option(help="factual, or realistic: vague, in the words of somebody who has not read the text.")
    ] = "factual",
    seed: Annotated[int, typer.Option(min=0, help="Of the passages.")] = 0,
    sample_size: Annotated[int, typer.Option(min=100, help="Characters of a passage.")] = 4_000,
    earlier: Annotated[int, typer.Option(min=0, help="Earlier questions that the model is shown, at most.")] = 50,
    excerpts: Annotated[int, typer.Option(min=1, help="Excerpts of a question, at most.")] = 5,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Questions under way at once; they are not shown to each other.")
    ] = 4,
    duplicate: Annotated[
        str, typer.Option(help="Of two questions with a higher cosine the later goes: a number, propose, or none.")
    ] = "propose",
    relevance: Annotated[
        str, typer.Option(help="A question with an excerpt of a lower cosine goes: a number, propose, or none.")
    ] = "propose",
    embedder: Annotated[
        str, typer.Option(help="For the filters: a sentence-transformers model, or none for no filters.")
    ] = "all-MiniLM-L6-v2",
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Stop before more calls, over all runs into this output.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Stop before more is spent, likewise; needs prices.")] = None,
    dry_run: flags.DryRun = False,
    input_price: flags.InputPrice = None,
    output_price: flags.OutputPrice = None,
) -> None:
    """Write questions about documents, each with the excerpts that answer it, by a language model."""
    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.benchmarks.layout import read_own
    from chunkcore.models.llm import get_llm
    from chunkcore.questions import CallBudget, GenerationOptions, Journal, estimate_generation, generate_benchmark
    from chunkcore.questions.generate import INTERRUPTED
    from chunkcore.questions.page import files_beside, write_generated

    prices = read_prices(input_price, output_price)
    budget = CallBudget(max_calls=max_calls, max_cost=max_cost, prices=prices)
    thresholds = _thresholds(duplicate, relevance)
    options = GenerationOptions(
        questions=questions,
        mode=cast("Mode", mode),
        sample_size=sample_size,
        earlier=earlier,
        excerpts=excerpts,
        seed=seed,
        concurrency=concurrency,
    )
    model = get_llm(llm)
    files = files_beside(output)
    _keep_apart(docs, files)
    documents = read_own(docs, []).documents
    if dry_run:
        typer.echo(terminal_text(f"{model.name}: {spent(estimate_generation(documents, options), prices)}"))
        typer.echo(
            "Tokens are counted as cl100k_base. Each question is assumed to be kept at once, with an answer of about "
            "200 tokens; rejections and answers that a journal holds are not foreseen. Nothing was asked."
        )
        return
    vectors = _embedder(embedder)
    how_on = f"what was answered is kept in {files.journal}: the same command goes on with it"
    with reporting(sys.stderr) as progress, Journal(files.journal) as journal, told_when_stopped(how_on):
        made = generate_benchmark(
            documents,
            model,
            options,
            journal=journal,
            budget=budget,
            embedder=vectors,
            thresholds=thresholds,
            progress=lambda kept, wanted: progress("questions", kept, wanted),
        )
        write_generated(files, made)
        unanswered = journal.unanswered
    for line in _told(made, documents, files, unanswered, model.name, prices):
        typer.echo(terminal_text(line))
    if made.stopped == INTERRUPTED:
        raise StoppedError(f"stopped before the end, with {len(made.rows):,} questions; {how_on}")
    if made.stopped:
        raise typer.Exit(1)


def _thresholds(duplicate: str, relevance: str) -> FilterThresholds:
    from chunkcore.questions import FilterThresholds

    return FilterThresholds(
        duplicate=_threshold("--duplicate", duplicate), relevance=_threshold("--relevance", relevance)
    )


def _threshold(name: str, text: str) -> Threshold:
    from chunkcore.errors import OptionError

    if text == "none":
        return None
    if text == "propose":
        return "propose"
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{name} is a cosine, propose, or none; got {text!r}") from None


def _keep_apart(docs: Path, files: GenerationFiles) -> None:
    """See that nothing is written over that somebody wrote, or is read as a document the next time.

    Raises:
        OptionError: something would be.
    """
    from chunkcore.errors import OptionError

    if files.questions.exists() and not files.journal.exists():
        raise OptionError(f"{files.questions} is there, and was not written by chunkcore generate: name another file")
    root = docs.resolve()
    if (root / "documents").is_dir() and (root / "questions.jsonl").is_file():
        root /= "documents"
    if not (root / "documents.jsonl").is_file() and root in files.questions.resolve().parents:
        raise OptionError(
            f"--output {files.questions} lies in the folder of the documents, and would be taken for one: "
            "write it elsewhere"
        )


def _embedder(name: str) -> Embedder | None:
    if name == "none":
        return None
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder

    return CachedEmbedder(get_embedder(name), EmbeddingCache(default_cache(), private=True))


def _told(
    made: Generated,
    documents: list[Document],
    files: GenerationFiles,
    unanswered: int,
    model: str,
    prices: Prices | None,
) -> Iterator[str]:
    """What became of it, line by line."""
    from chunkcore.questions.generate import INTERRUPTED

    represented = {row["document_id"] for row in made.rows}
    yield (
        f"{len(made.rows):,} questions about {len(represented):,} of {len(documents):,} documents; "
        f"{len(made.rejections):,} rejected"
    )
    for stage, what in _STAGES.items():
        count = sum(each.stage == stage for each in made.rejections)
        if count:
            yield f"rejected {count:,}: {what}"
    if made.filtered is not None:
        yield f"Thresholds: relevance {_cosine(made.filtered.relevance)}, duplicate {_cosine(made.filtered.duplicate)}"
    lost = f", {unanswered:,} of them without an answer" if unanswered else ""
    yield f"{model}, all runs: {spent(made.usage, prices)}{lost}"
    if made.unfinished and made.stopped != INTERRUPTED:
        yield (
            f"Stopped: {made.stopped}. Raise it and run the same command: it goes on where it is, and what was "
            f"answered is kept in {files.journal}"
        )
    elif made.stopped and not made.unfinished:
        yield f"Fewer questions than wanted: {made.stopped}. {files.rejected} tells why"
    yield str(files.questions)


_STAGES = {
    "answer": "no answer, or none that can be read",
    "question": "asked before, or in the text word for word",
    "excerpts": "an excerpt does not stand in the passage, or stands at several places",
    "relevance": "an excerpt has nothing to do with the question",
    "duplicate": "too much like another question",
}


def _cosine(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:.3f}"
