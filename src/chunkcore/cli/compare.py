"""``chunkcore compare``: documents and questions in, a table, a verdict and a report out."""

from __future__ import annotations

import datetime
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli.building import build_chunkers
from chunkcore.cli.caching import default_answers, default_cache
from chunkcore.cli.gate import read_gate
from chunkcore.cli.progress import reporting
from chunkcore.cli.spending import estimates, keeping, read_prices, used
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.scoring import MinRule
    from chunkcore.models import Embedder

__all__ = ["DEFAULT_STRATEGIES", "HELP", "compare", "default_cache"]

# Six that teach something: the plain cut; structure at half the size, at the size and with overlap; twice the size,
# which is more than the default model reads; and meaning.
DEFAULT_STRATEGIES = (
    "fixed_token:size=200",
    "recursive:size=100",
    "recursive:size=200",
    "recursive:size=200,overlap=100",
    "recursive:size=400",
    "cluster_semantic:max_size=200",
)


HELP = help_text(
    f"""Compare chunking strategies: which one retrieves the evidence, and at what cost.

Without --docs and --questions the small collection that ships with the package is used. --docs is a folder of
text files (or a documents.jsonl; images and other files without text are left out with a warning); --questions is
a file with a line like {{"question": "...", "evidence": ["a verbatim excerpt"]}} for each question.

Prints the table and the verdict, and writes report.html, report.md, report.json, scores.csv and questions.csv
into the output folder. The last line is the path of report.html.

A strategy without a size has one of 60 % of what the embedder reads, in its own tokens; its name says so.

Unless --strategy or --config is given, compares {", ".join(DEFAULT_STRATEGIES)}.

Embeddings are kept, so that a second run is quick, in {default_cache()} unless --cache names another file. Answers of
language models are kept in {default_answers()}; --dry-run tells beforehand what they take.

  chunkcore compare

  chunkcore compare --docs docs/ --questions questions.jsonl

  chunkcore compare -s recursive:size=200 -s fixed_token:size=200 -k 5 --measure IoU@5

  chunkcore compare --config strategies.yaml

  chunkcore compare -s recursive:size=200 --require "HitRate@5>=0.70" --baseline earlier/report.json

With --require or --baseline the exit code is 1 where, and only where, the questions support that a score is below
what is required, or that it fell: where all of its 95 % interval is. docs/measures.md explains every measure.
"""
)


def compare(
    docs: Annotated[Path | None, typer.Option(help="A folder of text files, a file, or a documents.jsonl.")] = None,
    questions: Annotated[Path | None, typer.Option(help="A questions.jsonl, or a CSV of the Chroma layout.")] = None,
    layout: Annotated[str, typer.Option(help="A public collection's, should it not be recognised.")] = "auto",
    dataset: Annotated[str, typer.Option(help="The shipped collection to use without --docs.")] = "lochmere",
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", "-s", help="name:option=value,...; give it once a strategy.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file of strategies, beside those given here.")] = None,
    embedder: Annotated[str, typer.Option(help="A sentence-transformers model, by name or path.")] = "all-MiniLM-L6-v2",
    k: Annotated[
        list[str] | None,
        typer.Option(
            "--k", "-k", help="How much to retrieve: pieces, min, or 4096tok; once a value. Default: 5, 10, min."
        ),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(help="What the verdict is about, such as IoU@10. Default: Recall at the first k."),
    ] = "",
    require: Annotated[
        list[str] | None,
        typer.Option("--require", help="Fail where each strategy's score is surely below, as HitRate@5>=0.70."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="An earlier report.json; fail where a strategy is surely worse than there.")
    ] = None,
    min_rule: Annotated[
        str, typer.Option(help="Chunks that k = min counts: holding evidence, or also touching it.")
    ] = "holding",
    counter: Annotated[str, typer.Option(help="The tokens that scores count.")] = "cl100k_base",
    late: Annotated[
        bool, typer.Option("--late", help="Score each strategy also with late chunking: vectors in context.")
    ] = False,
    cache: Annotated[Path | None, typer.Option(help="The file that keeps embeddings; see above.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no embeddings, and no answers.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what language models would be asked, and what it costs, and end.")
    ] = False,
    input_price: Annotated[
        float | None, typer.Option(help="Of a million tokens that a language model reads, in any currency.")
    ] = None,
    output_price: Annotated[float | None, typer.Option(help="Of a million tokens that one writes.")] = None,
    margin: Annotated[
        float, typer.Option(min=0, help="The least difference that matters, in points; smaller ones count as equal.")
    ] = 2.0,
    by: Annotated[
        str,
        typer.Option(
            help="What is resampled: question, for other questions about these documents, or document, for others."
        ),
    ] = "question",
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="Of the bootstrap.")] = 10_000,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write into.")] = Path(
        "chunkcore-report"
    ),
) -> None:
    """Compare chunking strategies: which one retrieves the evidence, and at what cost."""
    from rich.console import Console

    from chunkcore.chunkers.sizing import sized_spec
    from chunkcore.evaluation.comparison import compare as compare_reports
    from chunkcore.evaluation.experiment import run_chunkers
    from chunkcore.models import EmbeddingCache, get_embedder, get_token_embedder
    from chunkcore.report import Study, write_reports
    from chunkcore.report.terminal import print_study
    from chunkcore.report.text import terminal_text

    ks, verdict_by = _depths(k or [], measure)
    gate = read_gate(require or [], baseline)
    prices = read_prices(input_price, output_price)
    _check_output(output)
    benchmark = _benchmark(docs, questions, dataset, output, layout)
    clusters = _clusters(benchmark, by)
    given = _specs(strategy or [], config)
    store = EmbeddingCache(None if no_cache else cache or default_cache(), private=cache is None)
    model = get_embedder(embedder)
    specs = [sized_spec(each, model) for each in given]
    if late:
        get_token_embedder(model)  # which says so if it cannot, before the long work
    # A strategy is shown as it was asked for, so that a size is seen though it is the strategy's default.
    names = [*specs, *(f"{spec} (late)" for spec in specs if late)]
    gate.check_names(names)
    chunkers = build_chunkers(specs, model)
    if dry_run:
        for line in estimates(dict(zip(specs, chunkers, strict=True)), benchmark.documents, prices):
            typer.echo(terminal_text(line))
        return
    answers = None if no_cache else default_answers()
    chunkers = [keeping(chunker, answers) for chunker in chunkers]
    with reporting(sys.stderr) as progress:
        reports = []
        for lately in (False, True) if late else (False,):
            reports += run_chunkers(
                benchmark,
                chunkers,
                model,
                ks=tuple(dict.fromkeys([*ks, *gate.ks])),
                measures=[verdict_by, *gate.measures],
                counter=counter,
                min_rule=cast("MinRule", min_rule),
                cache=store,
                late=lately,
                progress=progress,
            )
        reports = [replace(report, name=name) for report, name in zip(reports, names, strict=True)]
        progress("compare", 0, 1)
        comparison = compare_reports(
            reports, verdict_by, resamples=resamples, seed=seed, margin=margin / 100, clusters=clusters
        )
        settings = _settings(benchmark, docs, questions, model, dict(zip(specs, chunkers, strict=True)), counter)
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        study = Study(comparison, benchmark, settings, today)
        files = write_reports(output, study)
        checks = gate.checks(reports, verdict_by, resamples=resamples, seed=seed)
        progress("compare", 1, 1)
    print_study(study, Console(highlight=False))
    for line in used(chunkers, prices):
        typer.echo(f"\n{terminal_text(line)}")
    for check in checks:
        typer.echo(f"\n{terminal_text(check.sentence)}")
    typer.echo(f"\n{files.html}")
    if any(check.failed for check in checks):
        raise typer.Exit(1)


def _clusters(benchmark: Benchmark, by: str) -> dict[str, str] | None:
    """What each question is resampled together with.

    Raises:
        OptionError: `by` is neither question nor document, or there is only one document.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.clusters import question_documents

    if by not in ("question", "document"):
        raise OptionError(f"--by is question or document, got {by!r}")
    clusters = question_documents(benchmark)
    if by == "document" and len(set(clusters.values())) < 2:
        raise OptionError("--by document needs questions about two documents or more: resample by question")
    return clusters if by == "document" else None


def _specs(strategies: Sequence[str], config: Path | None) -> list[str]:
    """The strategies of the command line and of the file, or the default ones where there is neither.

    Raises:
        OptionError: the file describes something that is no strategy.
        DataError: it cannot be read.
    """
    given = [each.strip() for each in strategies]
    if config is not None:
        from chunkcore.chunkers.configuration import read_specs

        given += read_specs(config)
    return given or list(DEFAULT_STRATEGIES)


def _depths(texts: Sequence[str], measure: str) -> tuple[tuple[Depth, ...], Measure]:
    """The depths asked for and the verdict's measure, whose own depth is added where it is missing.

    Raises:
        OptionError: a k or the measure is malformed.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.measures import Measure, parse_depth, parse_measure

    ks: list[Depth] = []
    for text in texts or ("5", "10", "min"):
        try:
            ks.append(parse_depth(text))
        except OptionError as error:
            raise OptionError(f"--k: {error}") from None
    wanted = parse_measure(measure) if measure else Measure("Recall", ks[0])
    if wanted.k is not None:
        ks.append(wanted.k)
    return tuple(dict.fromkeys(ks)), wanted


def _check_output(output: Path) -> None:
    """Find out before the long work whether its result can be written.

    Raises:
        OSError: there is a file where a folder is needed, or the folder cannot be written to.
        MissingExtraError: jinja2 is not installed.
    """
    from chunkcore.report.page import require_jinja2

    require_jinja2()
    place = next(each for each in (output.absolute(), *output.absolute().parents) if each.exists())
    code = errno.ENOTDIR if not place.is_dir() else 0 if os.access(place, os.W_OK) else errno.EACCES
    if code:
        raise OSError(code, os.strerror(code), str(place))


def _benchmark(docs: Path | None, questions: Path | None, dataset: str, output: Path, layout: str) -> Benchmark:
    from chunkcore.datasets import load_dataset
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.loading import load_benchmark
    from chunkcore.report import REPORT_NAMES

    if docs is not None:
        # The report of an earlier run quotes the evidence: read as a document it would make it ambiguous.
        return load_benchmark(docs, questions, layout=layout, leave_out=[output / name for name in REPORT_NAMES])
    if questions is not None:
        raise OptionError(f"--questions {questions} was given without --docs: give the documents that it asks about")
    if layout != "auto":
        raise OptionError(f"--layout {layout} was given without --docs: give the collection's folder or file")
    return load_dataset(dataset)


def _settings(
    benchmark: Benchmark,
    docs: Path | None,
    questions: Path | None,
    model: Embedder,
    chunkers: Mapping[str, Chunker],
    counter: str,
) -> dict[str, str]:
    """What the report's footer tells, so that somebody else can do the same."""
    from chunkcore.chunkers import format_chunker

    read = f"its first {model.max_tokens} tokens of a text" if model.max_tokens else "whole texts"
    given = {
        "Documents": str(docs) if docs else f"shipped: {benchmark.name}",
        "Questions": str(questions) if questions else "",
        "Embedder": f"{model.name}, which reads {read}",
        "Scores count tokens of": counter,
    }
    full = {spec: format_chunker(chunker) for spec, chunker in chunkers.items()}
    return {name: value for name, value in given.items() if value} | full
