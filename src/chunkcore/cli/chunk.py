"""``chunkcore chunk``: files to chunks, one JSON object a line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError, OptionError

if TYPE_CHECKING:
    from chunkcore.text import Chunk, Document

_STANDARD = Path("-")


@options.grouped
def chunk(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files and folders, or - for standard input.", metavar="FILES"),
    ],
    costs: options.Models,
    spec: Annotated[str | None, options.chunker(help="Default: recursive:size=200.")] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: standard output.", show_default=False
        ),
    ] = _STANDARD,
    workers: Annotated[int, options.number("Threads that cut.", 1)] = 1,
    follow_links: options.FollowLinks = False,
) -> None:
    """Cut files into chunks and write them as JSON lines.

    A line is {"document_id", "id", "index", "spans", "text", "token_count", "metadata"}: text[start:end] of the file's
    characters is the chunk. Some have "context", "segments" or "derived".

    Example: chunkcore chunk docs/ -s recursive:size=200,overlap=20 -o chunks.jsonl

    Example: cat manual.md | chunkcore chunk -
    """
    from chunkcore.chunkers import get_chunker
    from chunkcore.files import write_parts

    _keep_inputs(files, output)
    prices, kept = costs.prices(), running.KeptAnswers(costs.kept)
    chunker = get_chunker(spec or "recursive:size=200")
    documents = _read(files, follow_links=follow_links)
    if costs.dry_run:
        running.say(*running.estimates({spec or chunker.name: chunker}, documents, prices))
        return
    lines = _lines(documents, kept(chunker).chunk_many(documents, workers=workers))
    if output != _STANDARD:
        write_parts(output, lines)
    else:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    running.say(*kept.used(prices), err=True)


def _read(files: Iterable[Path], *, follow_links: bool) -> list[Document]:
    """The documents of all inputs. Raises `DataError`: two share an id."""
    from chunkcore.files import decoded, read_text
    from chunkcore.reading import load_documents
    from chunkcore.text import Document

    places: dict[str, Path] = {}
    documents: list[Document] = []
    for path in files:
        if path == _STANDARD:
            text = decoded(sys.stdin.buffer.read(), Path("standard input"))
            if not text:
                raise DataError("standard input is empty: pipe a text into the command")
            found = [Document("-", text)]
        elif path.is_fifo():  # <(a command) of a shell
            found = [Document(str(path), read_text(path))]
        else:
            found = load_documents(path, follow_links=follow_links)
        for document in found:
            if document.id in places:
                raise DataError(
                    f"{places[document.id]} and {path} both hold a document with the id {document.id!r}: give each "
                    "file once, and of folders the one above them, in which their paths differ"
                )
            places[document.id] = path
        documents += found
    return documents


def _lines(documents: Iterable[Document], chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """Each chunk as a line of JSON; its spans are those of the document's file."""
    from chunkcore.files import utf8_line
    from chunkcore.reading.visible import in_source
    from chunkcore.spans import pairs_of

    sources = {document.id: document for document in documents}
    for item in chunks:
        source = sources[item.document_id]
        row = {
            "document_id": item.document_id,
            "id": item.id,
            "index": item.index,
            "spans": pairs_of(in_source(source, item.spans)),
            "text": item.text,
            "token_count": item.token_count,
        }
        if item.context:
            row["context"] = item.context
        if item.segments:
            row["segments"] = [pairs_of(in_source(source, spans)) for spans in item.segments]
        if item.derived:
            row["derived"] = True
        row["metadata"] = dict(item.metadata)
        yield utf8_line(row)


def _keep_inputs(files: Iterable[Path], output: Path) -> None:
    """Raise `OptionError` if the output is an input, or would be taken for one the next time."""
    if output == _STANDARD:
        return
    for path in files:
        for file in (path, path / "documents.jsonl"):
            if output.is_file() and file.is_file() and file.samefile(output):
                raise OptionError(
                    f"--output {output} is one of the files to cut, and would be replaced: name another file"
                )
        options.check_outside(path, output)
