"""``chunkcore chunk``: files to chunks, one JSON object a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chunkcore.cli import flags
from chunkcore.cli.caching import default_cache, shown
from chunkcore.cli.spending import estimates, keeping, read_prices, used
from chunkcore.cli.stopping import StoppedError
from chunkcore.cli.wording import help_text
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from chunkcore.chunkers import Chunker
    from chunkcore.cli.rate import Rate
    from chunkcore.scale import Stream

__all__ = ["HELP", "chunk"]

HELP = help_text(
    f"""Cut files into chunks and write them as JSON lines.

A line is {{"document_id", "id", "index", "spans", "text", "token_count", "metadata"}}; spans are pairs of offsets
in characters (code points) of the file decoded as UTF-8, so text[start:end] is the chunk. Where a chunk has them, a
line has also "context", what was written about the chunk; "segments", the parts that are searched on their own, each
a list of spans; and "derived": true, if a model wrote the text and the spans are the passage it was written from.

A folder is walked, and the ids of its documents are their paths in it; files without text, such as images, are
left out with a warning. A .jsonl file holds documents,
{{"id", "text"}} a line.

Files and folders may be of any size: memory is bounded. A document over --part-size is cut in parts that end at
paragraphs, each as if it were a document, and its lines tell the "part"; spans are those of the whole document. What
comes out is the same whatever the --processes.

A run with --output that was stopped or killed goes on with the same command. Documents that cannot be read or cut end
it, or with --errors skip are left out, told in OUTPUT.errors.jsonl, and the exit code is 1.

Answers of language models are kept in {shown(default_cache())}, so that nothing is asked twice; --dry-run tells
beforehand what they take.

  chunkcore chunk manual.md --strategy recursive:size=200,overlap=20

  chunkcore chunk docs/ --strategy fixed_token:size=256 --output chunks.jsonl

  chunkcore chunk archive/ --processes 8 --errors skip --output chunks.jsonl

  cat manual.md | chunkcore chunk -

  chunkcore chunk docs/ -s "lumber:llm=openai:qwen3:8b@http://localhost:11434/v1" --dry-run
"""
)

_MB = 1_000_000


class Errors(str, Enum):
    """What comes of a document that cannot be read or cut."""

    stop = "stop"
    skip = "skip"


def chunk(
    files: Annotated[list[Path], typer.Argument(help="Files and folders, or - for standard input.", metavar="FILES")],
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            help="name:option=value,...; see chunkcore strategies. Default: recursive:size=200.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file that holds one strategy instead.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write; - for standard output.")] = Path("-"),
    processes: Annotated[int, typer.Option(min=1, help="Processes that cut, each with its own models.")] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads of each: documents that wait for a model at the same time.")
    ] = 1,
    part_size: Annotated[
        float, typer.Option(min=0.0001, max=1e6, help="Megabytes of text, over which a document is cut in parts.")
    ] = 8.0,
    errors: Annotated[
        Errors, typer.Option(help="Whether a document that cannot be read or cut ends it all, or is left out.")
    ] = Errors.stop,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on with what a stopped run left.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no answers of language models.")] = False,
    dry_run: flags.DryRun = False,
    input_price: flags.InputPrice = None,
    output_price: flags.OutputPrice = None,
) -> int:
    """Cut files into chunks and write them as JSON lines."""
    from chunkcore.escaping import terminal_text
    from chunkcore.scale import Stream, StreamOptions, stream_documents

    _keep_inputs(files, output)
    prices = read_prices(input_price, output_price)
    chunker = _chunker(strategy, config)
    options = StreamOptions(processes=processes, workers=workers, part_size=_bytes(part_size), errors=errors.value)
    if dry_run:
        spec = strategy or str(config or chunker.name)
        for told in estimates({spec: chunker}, stream_documents(files, options.part_size), prices):
            typer.echo(terminal_text(told))
        return 0
    if processes > 1:
        _check_processes(chunker)
    chunker = keeping(chunker, None if no_cache else default_cache())
    stream = Stream(files, chunker, options)
    _write(stream, output, fresh=fresh, quiet=quiet)
    for told in used([chunker], prices):
        typer.echo(terminal_text(told), err=True)
    return 1 if stream.tally.skipped else 0


def _bytes(megabytes: float) -> int:
    if isnan(megabytes):  # which is in every range, to some releases of typer
        raise OptionError("--part-size is a number of megabytes, got nan")
    return round(megabytes * _MB)


def _write(stream: Stream, output: Path, *, fresh: bool, quiet: bool) -> None:
    """Write the stream's lines where they are to go, telling how far that is."""
    from chunkcore.cli.rate import rate
    from chunkcore.files import write_parts
    from chunkcore.scale import total_bytes

    quiet = quiet or (str(output) == "-" and sys.stdout.isatty())  # the lines themselves tell how far it is
    with rate(sys.stderr, partial(total_bytes, stream.sources.paths), quiet=quiet) as progress:
        if str(output) != "-" and stream.is_repeatable and (output.is_file() or not output.exists()):
            _resumable(stream, output, progress, fresh=fresh)
        elif str(output) != "-":
            write_parts(output, _lines(stream, progress))
        else:
            for line in _lines(stream, progress):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
        if progress is not None:
            progress.end(stream.tally)


def _lines(stream: Stream, progress: Rate | None) -> Iterator[bytes]:
    """The stream's lines, on their way to where nothing can be kept; what is left out is told at once."""
    for step in stream:
        yield b"".join(step.lines)
        for failure in step.failures:
            _tell(f"left out: {failure.error}")
        if progress is not None:
            progress(stream.tally)


def _resumable(stream: Stream, output: Path, progress: Rate | None, *, fresh: bool) -> None:
    from chunkcore.cli.rate import told
    from chunkcore.errors import DataError
    from chunkcore.scale import ResumableOutput

    writer = ResumableOutput(output, _identity(stream), fresh=fresh)
    refused = False
    try:
        if writer.tallies:
            _tell(f"going on after {told(writer.tallies[-1])}")
            try:
                stream.go_on(writer.tallies)
            except DataError as error:
                refused = True
                raise DataError(f"{writer.partial} cannot be gone on with: {error}; begin anew with --fresh") from error
            if progress is not None:
                progress.start(stream.tally)
        for step in stream:
            writer.write(step, stream.tally)
            if progress is not None:
                progress(stream.tally)
        writer.finish()
    except BaseException as error:
        if writer.leave() and not refused:
            kept = f"{writer.partial} keeps what is done: the same command goes on, or begins anew with --fresh"
            if isinstance(error, KeyboardInterrupt):
                raise StoppedError(f"stopped before the end; {kept}") from error
            _tell(kept)
        raise
    if stream.tally.skipped:
        _tell(f"{stream.tally.skipped:,} left out for errors, which {writer.errors} tells")


def _identity(stream: Stream) -> dict[str, Any]:
    """What the lines follow from: a run with anything else does not go on with another's output."""
    from chunkcore.files import installed_version

    return {
        "files": [str(path) for path in stream.sources.paths],
        "strategy": stream.chunker.to_dict(),
        "fingerprint": stream.chunker.fingerprint,
        "part_size": stream.options.part_size,
        "errors": stream.options.errors,
        "version": installed_version(),
    }


def _check_processes(chunker: Chunker) -> None:
    """See that the strategy gains by processes.

    Raises:
        OptionError: it asks a language model, which answers as many as it will.
    """
    from chunkcore.chunkers.llm import LLMChunker

    if isinstance(chunker, LLMChunker):
        raise OptionError(f"{chunker.name} waits for a language model: ask it more at a time with --workers")


def _tell(sentence: str) -> None:
    from chunkcore.escaping import terminal_text

    typer.echo(f"chunkcore: {terminal_text(sentence)}", err=True)


def _keep_inputs(files: Iterable[Path], output: Path) -> None:
    """See that no file that is read would be replaced, and that the output is no document the next time.

    Raises:
        OptionError: the output is one of the files, or lies in one of the folders, as a document of it would.
    """
    from chunkcore.scale import beside

    if str(output) == "-":
        return
    there = {_place(each): each for each in (output, *beside(output)) if each.is_file()} if output.name else {}
    for path in files:
        found = next((there[place] for place in map(_place, _files(path)) if place in there), None) if there else None
        if found is not None:
            told = f"--output {output}" if found == output else f"{found}, which is written beside --output,"
            raise OptionError(f"{told} is one of the files to cut, and would be replaced: name another file")
        if _would_read(path, output.resolve()):
            raise OptionError(
                f"--output {output} lies in {path}, and would be taken for a document: write it elsewhere"
            )


def _would_read(path: Path, file: Path) -> bool:
    """Whether `load_documents` of the path would read the file, were it there."""
    root = path.resolve()
    if not root.is_dir() or (root / "documents.jsonl").is_file() or root not in file.parents:
        return False
    return not any(part.startswith(".") for part in file.relative_to(root).parts)


def _files(path: Path) -> Iterator[Path]:
    """The files that are read of an argument."""
    from chunkcore.evaluation.benchmarks.documents import FolderWalk

    if not path.is_dir():
        yield from () if str(path) == "-" else (path,)
    elif (path / "documents.jsonl").is_file():
        yield path / "documents.jsonl"
    else:
        yield from (file for _, file in FolderWalk(path, lambda *_: None))


def _place(file: Path) -> tuple[int, int] | None:
    """By which a file is known whatever leads to it, as links do; None where nothing can be reached."""
    try:
        told = os.stat(file)  # noqa: PTH116  # Path.stat is several times slower, and there may be millions
    except OSError:
        return None
    return told.st_dev, told.st_ino


def _chunker(strategy: str | None, config: Path | None) -> Chunker:
    """The one strategy that is asked for.

    Raises:
        OptionError: it is malformed, or more than one is asked for.
    """
    from chunkcore.chunkers import get_chunker, get_chunkers

    if config is None:
        return get_chunker("recursive:size=200" if strategy is None else strategy)
    if strategy is not None:
        raise OptionError(f"--strategy {strategy} and --config {config} were both given: give one")
    found = get_chunkers(config)
    if len(found) > 1:
        raise OptionError(f"{config} names {len(found)} strategies, and one is wanted: give it with --strategy")
    return found[0]
