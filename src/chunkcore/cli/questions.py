"""``chunkcore questions``: questions about the user's own documents, written by a language model, and checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import chunkcore
from chunkcore.cli import options
from chunkcore.cli.options import (
    Documents,
    StoppedError,
    check_outside,
    flag_option,
    grouped,
    number_option,
    reporting,
    say,
    value_option,
)
from chunkcore.errors import MissingExtraError, OptionError, counted, echo

if TYPE_CHECKING:
    from chunkcore.models import CachedEmbedder
    from chunkcore.questions import Generated
    from chunkcore.questions.validate import Finding

app = typer.Typer(no_args_is_help=True, help="Write questions with evidence, and check them.")


@dataclass
class Generation:
    """Which questions are written: the options of `GenerationOptions`."""

    questions: Annotated[
        int, number_option("How many, before the filters.", 1, "--count", "-n")
    ] = 100
    seed: Annotated[int, number_option("For random choices.")] = 0
    sample_size: Annotated[int, number_option("Characters of a passage.", 100)] = 4_000
    concurrency: Annotated[int, number_option("Questions at once.", 1)] = 4


@app.command()
@grouped
def generate(
    llm: Annotated[str, value_option("NAME", "A model: openai:MODEL@URL.", "--llm")],
    generation: Generation,
    documents: Documents,
    costs: options.Models,
    embedder: Annotated[
        str, value_option("NAME", "Of the filters; or none.", "--embedder", "-e")
    ] = "all-MiniLM-L6-v2",
    max_calls: Annotated[int | None, number_option("At most, in this run.")] = None,
    output: Annotated[
        Path, value_option("FILE", "The questions; names the other files.", "--output", "-o")
    ] = Path("questions.jsonl"),
) -> None:
    """Let a language model write questions, each with the excerpts that answer it.

    A question whose excerpts are not in its passage word for word is rejected. Answers are kept in the user's cache:
    the same command resumes. The exit code is 1 if there are fewer questions than wanted.

    Example: chunkcore questions generate docs/ --llm openai:qwen3:8b@http://localhost:11434/v1
    """
    from chunkcore.models.llm import get_llm
    from chunkcore.questions import GenerationOptions, estimate_generation, generate_benchmark
    from chunkcore.questions.generate import INTERRUPTED, write_generated

    settings = GenerationOptions(**vars(generation))
    model = get_llm(llm)
    _check_output(documents.place, output)
    texts = documents.read()
    if costs.dry_run:
        expected = costs.spent(estimate_generation(texts, settings))
        say(f"{model.name}: {expected}", _ASSUMED)
        return
    if costs.kept:
        model = costs.model(model)
    with costs.stoppable():
        generated = generate_benchmark(
            texts,
            model,
            settings,
            max_calls=max_calls,
            embedder=_filter_model(embedder),
            progress=reporting(),
        )
        write_generated(output, generated)
    used = f"{model.name}: {costs.spent(generated.usage)}"
    say(*_summary(generated, used, output))
    if generated.stopped == INTERRUPTED:
        count = counted(len(generated.rows), "question")
        raise StoppedError(f"stopped before the end, with {count}; {costs.resume}")
    if generated.stopped:
        raise typer.Exit(1)


_ASSUMED = (
    "Tokens are counted as cl100k_base. Each question is assumed to be kept at once, with an answer of about 200 "
    "tokens; rejections and answers that the cache holds are not foreseen. Nothing was asked."
)


def _check_output(docs: Path, output: Path) -> None:
    from chunkcore.files import read_text
    from chunkcore.plain import digest
    from chunkcore.questions.validate import check_questions_file

    check_questions_file(output)
    info = output.with_suffix(".info.json")
    if output.exists() and not (info.exists() and digest(output.read_bytes()) in read_text(info)):
        raise OptionError(
            f"{output} is there, and is not what chunkcore questions generate wrote: name another file"
        )
    check_outside(_folder(docs), output)


def _folder(docs: Path) -> Path:
    """Where the documents are: beside questions they have a folder of their own."""
    return (
        docs / "documents"
        if (docs / "documents").is_dir() and (docs / "questions.jsonl").is_file()
        else docs
    )


def _summary(generated: Generated, used: str, output: Path) -> Iterator[str]:
    from chunkcore.questions.generate import INTERRUPTED

    about = {row["document_id"] for row in generated.rows}
    yield (
        f"{counted(len(generated.rows), 'question')} about {len(about):,} of "
        f"{counted(len(generated.documents), 'document')}; "
        f"{len(generated.rejections):,} rejected"
    )
    counts: Counter[str] = Counter(rejection.stage for rejection in generated.rejections)
    yield from (
        f"rejected {counts[stage]:,}: {reason}"
        for stage, reason in _STAGES.items()
        if counts[stage]
    )
    relevance = generated.filtered.relevance
    if relevance is not None:
        yield f"An excerpt is unrelated under a cosine of {relevance:.3f}"
    yield used
    if generated.stopped not in ("", INTERRUPTED):
        yield f"Fewer questions than wanted: {generated.stopped}. {output.with_suffix('.rejected.jsonl')} says why"
    yield str(output)


_STAGES = {
    "answer": "no answer, or none that can be read",
    "question": "asked before, or in the text word for word",
    "excerpts": "an excerpt does not stand in the passage, or stands at several places",
    "relevance": "an excerpt has nothing to do with the question",
    "duplicate": "too much like another question",
}


@app.command()
@grouped
def label(
    source: Documents,
    questions: Annotated[
        Path | None,
        value_option("FILE", "Questions: one a line, or a CSV, TSV or JSON lines.", "--questions"),
    ] = None,
    column: Annotated[str, value_option("NAME", "The column of --questions that has them.")] = "",
    output: Annotated[
        Path, value_option("FILE", "The questions with evidence.", "--output", "-o")
    ] = Path("questions.jsonl"),
    port: Annotated[
        int, value_option("N", "Of this machine; 0: a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, flag_option("Open the page.", "--browser/--no-browser")] = True,
) -> None:
    """Mark evidence in your documents, in a browser.

    This machine serves the page to itself. Type a question, or bring a list of real ones with --questions. Passages
    found for it are shown in their document: click the sentences that answer it, or select any text. All of it
    works by keyboard. Every click is saved in --output at once, and the same command resumes.

    Example: chunkcore questions label docs/ --questions asked.txt
    """
    from chunkcore.questions.label import LabelledQuestions, LabelServer, read_listed

    check_outside(_folder(source.place), output)
    listed = read_listed(questions, column) if questions else []
    documents = source.read()
    units = chunkcore.chunk_corpus(documents, "sentence:size=25")
    index = chunkcore.get_retriever("passages:lexical").index(units)
    labelled = LabelledQuestions(documents, output, listed)
    with LabelServer(labelled, index, port) as server:
        say(f"Mark evidence at {server.address}", f"Every click is saved in {output}. Ctrl-C ends.")
        try:
            with _opened(server.address) if browser else nullcontext():
                server.serve_forever()
        except KeyboardInterrupt:
            say(f"done: {labelled.done:,} of {counted(len(labelled), 'question')}, in {output}")


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """The browser at the address, by a file for this user alone: `ps` shows command lines, and the token to all."""
    import webbrowser
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="chunkcore-") as folder:  # of this user alone
        page = Path(folder, "label.html")
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">', "utf-8"
        )
        webbrowser.open(page.as_uri())
        yield


@app.command()
@grouped
def check(
    source: Documents,
    questions: options.Questions = None,
    size: Annotated[int, number_option("Tokens of the chunks to be compared.", 1)] = 200,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    ignore: Annotated[
        options.Repeatable, value_option("KIND", "A kind that is fine; repeatable.")
    ] = None,
    as_json: Annotated[bool, flag_option("Print all findings as JSON instead.", "--json")] = False,
    fix: Annotated[
        bool, flag_option("Write the place of evidence that stands in other words.", "--fix")
    ] = False,
) -> None:
    """Find what is wrong with questions and their evidence, before chunkers are compared on them.

    Finds evidence that is missing, ambiguous, too short or too long, and questions that are repeated or leak
    their answer. The exit code is 1 if something is wrong.

    Example: chunkcore questions check docs/ --questions questions.jsonl --size 400 --ignore leakage --json
    """
    from chunkcore.questions.validate import (
        KINDS,
        check_questions_file,
        fix_questions,
        validate_benchmark,
    )

    fine = ignore or []
    for kind in fine:
        if kind not in KINDS:
            raise OptionError(f"--ignore is one of {', '.join(KINDS)}; got {echo(kind)}")
    if fix:
        file = questions or source.place / "questions.jsonl"
        check_questions_file(file)
        fixes = fix_questions(source.read(), file)
        placed = f"{counted(len(fixes), 'excerpt')} placed in {file}"
        say(*map(str, fixes), placed, err=True)
    findings = validate_benchmark(
        source.place,
        questions,
        size=size,
        embedder=_filter_model(embedder),
        follow_links=source.follow_links,
    )
    findings = [finding for finding in findings if finding.kind not in fine]
    if as_json:
        typer.echo(json.dumps({"findings": list(map(asdict, findings))}, indent=2))
    else:
        say(*_lines(findings))
    if any(finding.kind != "respelled" for finding in findings):
        raise typer.Exit(1)


def _filter_model(name: str) -> CachedEmbedder | None:
    if name == "none":
        return None
    try:
        return options.cached_embedder(name)
    except MissingExtraError as error:
        say(f"questions in nearly the same words are not looked for: {error}", err=True)
        return None


@app.command()
def accept(
    edited: Annotated[
        Path, typer.Argument(metavar="FILE", help="A questions.jsonl or documents.jsonl of yours.")
    ],
) -> None:
    """Accept a file that you edited by hand: its checksum in checksums.json is written anew.

    Example: chunkcore questions accept docs/questions.jsonl
    """
    from chunkcore.files import accept_edit, json_lines

    rows = sum(1 for _ in json_lines(edited))
    accept_edit(edited)
    say(f"{edited} is accepted as it is, with {counted(rows, 'line')}")


_LISTED = 20  # of a kind


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    from chunkcore.questions.validate import KINDS

    counts = Counter(finding.kind for finding in findings)
    if not counts:
        yield "nothing is wrong"
    yield from (f"{count:,} {kind}: {KINDS[kind]}" for kind, count in counts.items())
    for kind in counts:
        listed = [finding for finding in findings if finding.kind == kind]
        for finding in listed[:_LISTED]:
            yield f"{finding.place}, {finding.query_id!r}: {kind}: {finding.message}"
        if len(listed) > _LISTED:
            yield f"and {len(listed) - _LISTED:,} more of {kind}: --json lists all"
