"""``chunkcore chunk``: files to chunks, one JSON object a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError, NotWrittenError, OptionError

if TYPE_CHECKING:
    from chunkcore.scale.stream import Stream, StreamOptions, Tally


@dataclass(frozen=True)
class Streaming:
    """How files are read and cut."""

    processes: Annotated[int, options.number("Processes that cut.", 1)] = 1
    workers: Annotated[int, options.number("Threads of each.", 1)] = 1
    part_size: Annotated[
        float, typer.Option(min=0.0001, max=1e6, metavar="MB", help="Larger texts are parted.")
    ] = 8.0
    errors: Annotated[
        Literal["stop", "skip"], options.value("stop|skip", "Stop at a bad document?")
    ] = "stop"
    follow_links: options.FollowLinks = False

    def settings(self) -> StreamOptions:
        from chunkcore.scale.stream import StreamOptions

        return StreamOptions(**{**vars(self), "part_size": round(self.part_size * 1_000_000)})


@options.grouped
def chunk(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files and folders, or - for standard input.", metavar="FILES"),
    ],
    costs: options.Models,
    streaming: Streaming,
    spec: Annotated[str | None, options.chunker(help="Default: recursive:size=200.")] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: standard output.", show_default=False
        ),
    ] = Path("-"),
    fresh: Annotated[bool, options.flag("Discard what a stopped run left.", "--fresh")] = False,
) -> int:
    """Cut files into chunks and write them as JSON lines.

    A line is {"document_id", "id", "index", "spans", "text", "token_count", "metadata"}: text[start:end] of the file's
    characters is the chunk. Some have "context", "segments", "derived" or "part".

    A run that was stopped resumes with the same command. With --errors skip the errors are in OUTPUT.errors.jsonl.

    Example: chunkcore chunk docs/ -s recursive:size=200,overlap=20 -o chunks.jsonl

    Example: cat manual.md | chunkcore chunk -
    """
    from chunkcore.chunkers import get_chunker
    from chunkcore.scale.stream import Stream, stream_documents

    _keep_inputs(files, output)
    prices, settings, kept = costs.prices(), streaming.settings(), running.KeptAnswers(costs.kept)
    chunker = get_chunker(spec or "recursive:size=200")
    named = {spec or chunker.name: chunker}
    if costs.dry_run:
        running.say(*running.estimates(named, stream_documents(files, settings.part_size), prices))
        return 0
    if settings.processes > 1 and running.asking(named):
        raise OptionError(
            f"{chunker.name} waits for a language model: ask it more at a time with --workers"
        )
    stream = Stream(files, kept(chunker), settings)
    if str(output) == "-" and sys.stdout.isatty():
        running.quiet.set(True)  # the lines themselves show progress
    _write(stream, output, fresh=fresh)
    running.say(*kept.used(prices), err=True)
    return 1 if stream.tally.skipped or stream.tally.unread else 0


_SHOWN = 10_000_000  # bytes; less is cut too fast to show progress


def _write(stream: Stream, output: Path, *, fresh: bool) -> None:
    from chunkcore.files import write_parts
    from chunkcore.scale.stream import total_bytes

    total = total_bytes(stream.sources.paths) or 0
    with running.reporting(sys.stderr) as progress:

        def show(tally: Tally) -> None:
            if total >= _SHOWN:
                progress("MB read", tally.read // 1_000_000, total // 1_000_000)

        if (
            str(output) != "-"
            and stream.is_repeatable
            and (output.is_file() or not output.exists())
        ):
            try:
                _resumable(stream, output, show, fresh=fresh)
            except OSError as error:
                raise NotWrittenError.of(output, error) from error
        elif str(output) != "-":
            write_parts(output, _lines(stream, show))
        else:
            for line in _lines(stream, show):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()


def _lines(stream: Stream, show: Callable[[Tally], None]) -> Iterator[bytes]:
    for step in stream:
        yield b"".join(step.lines)
        for failure in step.failures:
            running.say(f"chunkcore: left out: {failure.error}", err=True)
        show(stream.tally)


def _resumable(stream: Stream, output: Path, show: Callable[[Tally], None], *, fresh: bool) -> None:
    from chunkcore.scale.stream import ChangedDocumentError, ResumableOutput

    writer = ResumableOutput(output, _identity(stream), fresh=fresh)
    try:
        if writer.done is not None:
            documents = running.several(len(writer.done.ids), "document")
            chunks = running.several(writer.done.chunks, "chunk")
            running.say(f"chunkcore: going on after {documents}, {chunks}", err=True)
            stream.skip(writer.done)
        for step in stream:
            writer.write(step)
            show(stream.tally)
        writer.finish()
    except ChangedDocumentError as error:
        writer.leave()
        raise DataError(
            f"{writer.partial} cannot be gone on with: {error}; begin anew with --fresh"
        ) from error
    except BaseException as error:
        if writer.leave():
            kept = f"{writer.partial} keeps what is done: the same command goes on, or begins anew with --fresh"
            if isinstance(error, KeyboardInterrupt):
                raise running.StoppedError(f"stopped before the end; {kept}") from error
            running.say(f"chunkcore: {kept}", err=True)
        raise
    if stream.tally.skipped:
        skipped = f"{stream.tally.skipped:,} left out for errors, which {writer.errors} tells"
        running.say(f"chunkcore: {skipped}", err=True)


def _identity(stream: Stream) -> dict[str, object]:
    """What the lines follow from: a run resumes only the output of an equal identity."""
    from chunkcore.files import installed_version

    return {
        "files": [str(path) for path in stream.sources.paths],
        "chunker": stream.chunker.to_dict(),
        "fingerprint": stream.chunker.fingerprint,
        "part_size": stream.options.part_size,
        "errors": stream.options.errors,
        "follow_links": stream.options.follow_links,
        "version": installed_version(),
    }


def _keep_inputs(files: Iterable[Path], output: Path) -> None:
    from chunkcore.scale.sources import input_files
    from chunkcore.scale.stream import beside

    if str(output) == "-":
        return
    written = [file for file in (output, *beside(output)) if file.is_file()] if output.name else []
    there = {_place(file): file for file in written}
    for path in files:
        places = map(_place, input_files(path)) if there else ()
        clash = next((there[place] for place in places if place in there), None)
        if clash is not None:
            place = f"--output {output}"
            if clash != output:
                place = f"{clash}, which is written beside --output,"
            raise OptionError(
                f"{place} is one of the files to cut, and would be replaced: name another file"
            )
        options.check_outside(path, output)


def _place(file: Path) -> tuple[int, int] | None:
    """A file's device and inode, the same for every link to it; None if it cannot be reached."""
    try:
        state = os.stat(file)  # noqa: PTH116  # Path.stat is several times slower, and there may be millions
    except OSError:
        return None
    return state.st_dev, state.st_ino
