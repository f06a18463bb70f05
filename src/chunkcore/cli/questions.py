"""``chunkcore questions``: questions about the user's own documents, written by a language model, and checked."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError, MissingExtraError, OptionError, echo

if TYPE_CHECKING:
    from chunkcore.questions import Generated
    from chunkcore.questions.prompts import Mode
    from chunkcore.questions.validate import Finding, Threshold

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Write questions with evidence, and check them.")


@app.command()
@options.grouped
def generate(
    llm: options.Llm,
    costs: Annotated[options.Models, options.OmittedOptions("cache")],
    docs: options.Docs = None,
    docs_option: options.DocsOption = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The questions; names the other files.")
    ] = Path("questions.jsonl"),
    questions: Annotated[
        int, typer.Option("--questions", "-n", min=1, metavar="N", help="How many, before the filters.")
    ] = 100,
    mode: Annotated[str, typer.Option(metavar="MODE", help="factual, or realistic: a vague user's.")] = "factual",
    seed: options.Seed = 0,
    sample_size: Annotated[int, typer.Option(min=100, metavar="N", help="Characters of a passage.")] = 4_000,
    earlier: Annotated[int, typer.Option(min=0, metavar="N", help="Earlier questions shown.")] = 50,
    excerpts: Annotated[int, typer.Option(min=1, metavar="N", help="At most, of a question.")] = 5,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Questions at once.")] = 4,
    duplicate: Annotated[str, typer.Option(metavar="COSINE", help="Drop the later of two above; or none.")] = "propose",
    relevance: Annotated[
        str, typer.Option(metavar="COSINE", help="Drop a question with an excerpt under it; or none.")
    ] = "propose",
    embedder: Annotated[str, typer.Option("--embedder", "-e", metavar="NAME", help="Of the filters; or none.")] = (
        "all-MiniLM-L6-v2"
    ),
    max_calls: Annotated[int | None, typer.Option(min=0, metavar="N", help="At most, in this run.")] = None,
    max_cost: Annotated[float | None, typer.Option(metavar="COST", help="At most, likewise; needs prices.")] = None,
) -> None:
    """Let a language model write questions, each with the excerpts that answer it.

    A question whose excerpts are not in its passage word for word is rejected. Answers are kept in the user's cache:
    the same command resumes. The exit code is 1 if there are fewer questions than wanted
    (docs/guides/questions.md).

      chunkcore questions generate docs/ --llm openai:qwen3:8b@http://localhost:11434/v1
    """
    from chunkcore.evaluation.benchmarks.layout import read_own
    from chunkcore.models.llm import CachedLLM, LLMCache, get_llm
    from chunkcore.questions import (
        CallBudget,
        FilterThresholds,
        GenerationOptions,
        estimate_generation,
        generate_benchmark,
    )
    from chunkcore.questions.generate import INTERRUPTED, write_generated

    folder = options.required(docs, docs_option)
    prices = costs.prices()
    budget = CallBudget(max_calls=max_calls, max_cost=max_cost, prices=prices)
    thresholds = FilterThresholds(
        duplicate=_threshold("--duplicate", duplicate), relevance=_threshold("--relevance", relevance)
    )
    generation = GenerationOptions(
        questions=questions,
        mode=cast("Mode", mode),
        sample_size=sample_size,
        earlier=earlier,
        excerpts=excerpts,
        seed=seed,
        concurrency=concurrency,
    )
    model = get_llm(llm)
    _check_output(folder, output)
    documents = read_own(folder, []).documents
    if costs.dry_run:
        running.say(f"{model.name}: {running.spent(estimate_generation(documents, generation), prices)}")
        running.say(
            "Tokens are counted as cl100k_base. Each question is assumed to be kept at once, with an answer of about "
            "200 tokens; rejections and answers that the cache holds are not foreseen. Nothing was asked."
        )
        return
    vectors = None if embedder == "none" else options.cached_embedder(embedder)
    if costs.answers is None:
        how_on = "with --no-cache nothing is kept"
    else:
        how_on = "what was answered is in the cache: the same command goes on with it"
        model = model if isinstance(model, CachedLLM) else CachedLLM(model, LLMCache(costs.answers))
    with running.reporting(sys.stderr) as progress, running.stoppable(how_on):
        made = generate_benchmark(
            documents,
            model,
            generation,
            budget=budget,
            embedder=vectors,
            thresholds=thresholds,
            progress=progress,
        )
        write_generated(output, made)
    used = f"{model.name}: {running.spent(made.usage, prices)}"
    running.say(*_summary(made, len(documents), used, output))
    if made.stopped == INTERRUPTED:
        raise running.StoppedError(f"stopped before the end, with {len(made.rows):,} questions; {how_on}")
    if made.stopped:
        raise typer.Exit(1)


def _threshold(name: str, text: str) -> Threshold:
    if text == "none":
        return None
    if text == "propose":
        return "propose"
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{name} is a cosine, propose, or none; got {echo(text)}") from None


def _check_output(docs: Path, output: Path) -> None:
    if output.suffix != ".jsonl" or not output.stem:
        raise OptionError(f"the questions go into a file whose name ends in .jsonl, got {output}")
    if output.exists() and not output.with_suffix(".info.json").exists():
        raise OptionError(f"{output} is there, and was not written by chunkcore questions generate: name another file")
    options.check_outside(_folder(docs), output)


def _folder(docs: Path) -> Path:
    """Where the documents are: beside questions they have a folder of their own."""
    return docs / "documents" if (docs / "documents").is_dir() and (docs / "questions.jsonl").is_file() else docs


def _summary(made: Generated, documents: int, used: str, output: Path) -> Iterator[str]:
    from chunkcore.questions.generate import INTERRUPTED

    represented = {row["document_id"] for row in made.rows}
    yield (
        f"{len(made.rows):,} questions about {len(represented):,} of {documents:,} documents; "
        f"{len(made.rejections):,} rejected"
    )
    for stage, what in _STAGES.items():
        count = sum(each.stage == stage for each in made.rejections)
        if count:
            yield f"rejected {count:,}: {what}"
    if made.filtered is not None:
        yield f"Thresholds: relevance {_cosine(made.filtered.relevance)}, duplicate {_cosine(made.filtered.duplicate)}"
    yield used
    if made.unfinished and made.stopped != INTERRUPTED:
        yield f"Stopped: {made.stopped}. The same command goes on, as what was answered is in the cache"
    elif made.stopped and not made.unfinished:
        yield f"Fewer questions than wanted: {made.stopped}. {output.with_suffix('.rejected.jsonl')} says why"
    yield str(output)


_STAGES = {
    "answer": "no answer, or none that can be read",
    "question": "asked before, or in the text word for word",
    "excerpts": "an excerpt does not stand in the passage, or stands at several places",
    "relevance": "an excerpt has nothing to do with the question",
    "duplicate": "too much like another question",
}


def _cosine(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:.3f}"


@app.command()
@options.grouped
def label(
    docs: options.Docs = None,
    docs_option: options.DocsOption = None,
    questions: Annotated[
        Path | None,
        typer.Option("--questions", metavar="FILE", help="Questions: one a line, or a CSV, TSV or JSON lines."),
    ] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="The column of --questions that has them.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The questions with evidence.")] = Path(
        "questions.jsonl"
    ),
    retriever: options.Retriever = "passages:lexical",
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Of this machine; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Mark the evidence of questions in your documents, in a page that this machine serves to itself.

    Type a question, or bring a list of real ones with --questions. Passages found for it are shown in their document:
    click the sentences that answer it, or select any text. All of it works by keyboard. Every click is saved in
    --output at once, and the same command resumes.

      chunkcore questions label docs/ --questions asked.txt
    """
    from chunkcore.chunkers import get_chunker
    from chunkcore.evaluation.benchmarks.layout import read_own
    from chunkcore.questions.label import LabelledQuestions, LabelServer, read_listed
    from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever

    folder = options.required(docs, docs_option)
    method = get_retriever(retriever)
    listed = [] if questions is None else read_listed(questions, column)
    options.check_outside(_folder(folder), output)
    documents = read_own(folder, []).documents
    if not documents:
        raise DataError(f"{folder} has no document to mark evidence in")
    vectors = TextVectors(options.cached_embedder(embedder)) if method.embeds else None
    index = method.index(chunk_corpus(documents, get_chunker("sentence:size=25")), vectors)
    kept = LabelledQuestions(documents, output, listed)
    with LabelServer(kept, index, port) as server:
        running.say(f"Mark evidence at {server.address}")
        running.say(f"Every click is saved in {output}. Ctrl-C ends.")
        running.stop_at_once()
        try:
            with _opened(server.address) if browser else nullcontext():
                server.serve_forever()
        except KeyboardInterrupt:
            running.say(f"{kept.done:,} of {len(kept):,} questions are done: {output}")


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """The browser at the address, by a file for this user alone: `ps` shows command lines, and the token to all."""
    import webbrowser
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="chunkcore-") as folder:  # of this user alone
        page = Path(folder, "label.html")
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">', "utf-8")
        webbrowser.open(page.as_uri())
        yield


@app.command()
@options.grouped
def check(
    docs: options.Docs = None,
    docs_option: options.DocsOption = None,
    questions: options.Questions = None,
    size: Annotated[int, typer.Option(min=1, metavar="N", help="Tokens of the chunks to be compared.")] = 200,
    least: Annotated[int, typer.Option(min=1, metavar="N", help="The fewest tokens of evidence.")] = 3,
    similarity: Annotated[
        float, typer.Option(metavar="COSINE", help="Over which questions are nearly the same.")
    ] = 0.9,
    counter: options.Counter = "cl100k_base",
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    ignore: Annotated[list[str] | None, typer.Option(metavar="KIND", help="A kind that is fine; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="How many of a kind to list; 0 for all.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON instead.")] = False,
) -> None:
    """Find what is wrong with questions and their evidence, before strategies are compared on them.

    Finds evidence that is missing, ambiguous, too short, too long, or overlaps; questions that are repeated or leak
    their answer; documents that are one chunk or have no question. The exit code is 1 if something is wrong.

      chunkcore questions check docs/ --questions questions.jsonl --size 400 --ignore unanswered --json
    """
    from chunkcore.questions.validate import KINDS, ValidationOptions, validate_benchmark

    folder = options.required(docs, docs_option)
    for each in ignore or ():
        if each not in KINDS:
            raise OptionError(f"--ignore is one of {', '.join(KINDS)}; got {echo(each)}")
    validation = ValidationOptions(size=size, least=least, similarity=similarity, counter=counter)
    model = None
    try:
        model = None if embedder == "none" else options.cached_embedder(embedder)
    except MissingExtraError as error:
        sys.stderr.write(f"questions in nearly the same words are not looked for: {error}\n")
    found = validate_benchmark(folder, questions, options=validation, embedder=model)
    found = [each for each in found if each.kind not in (ignore or ())]
    if as_json:
        lines = [re.search(r"line (\d+)$", each.place) if each.query_id else None for each in found]
        rows = [{**asdict(each), "line": line and int(line[1])} for each, line in zip(found, lines, strict=True)]
        typer.echo(json.dumps({"findings": rows}, indent=2))
    else:
        running.say(*_lines(found, limit))
    if any(each.kind != "respelled" for each in found):
        raise typer.Exit(1)


def _lines(found: Sequence[Finding], limit: int) -> Iterator[str]:
    from chunkcore.questions.validate import KINDS

    counts = Counter(each.kind for each in found)
    if not counts:
        yield "nothing is wrong"
        return
    for kind, count in sorted(counts.items(), key=lambda item: list(KINDS).index(item[0])):
        yield f"{count:,} {kind}: {KINDS[kind]}"
    for kind in KINDS:
        listed = [each for each in found if each.kind == kind]
        shown = listed[: limit or None]
        for each in shown:
            named = f", {each.query_id!r}" if each.query_id else ""
            yield f"{each.place}{named}: {kind}: {each.message}"
        if len(shown) < len(listed):
            yield f"and {len(listed) - len(shown):,} more of {kind}: --limit 0 lists all"
