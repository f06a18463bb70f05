"""``chunkcore chunk``: files to chunks, one JSON object a line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli.caching import default_answers, shown
from chunkcore.cli.spending import estimates, keeping, read_prices, used
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.chunkers import Chunker
    from chunkcore.document import Chunk, Document, Span

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

Answers of language models are kept in {shown(default_answers())}, so that nothing is asked twice; --dry-run tells
beforehand what they take.

  chunkcore chunk manual.md --strategy recursive:size=200,overlap=20

  chunkcore chunk docs/ --strategy fixed_token:size=256 --output chunks.jsonl

  cat manual.md | chunkcore chunk -

  chunkcore chunk docs/ -s "lumber:llm=openai:qwen3:8b@http://localhost:11434/v1" --dry-run
"""
)

_SURROGATE = re.compile("[\ud800-\udfff]")


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
    workers: Annotated[int, typer.Option(min=1, help="Documents that are cut at the same time.")] = 1,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no answers of language models.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what language models would be asked, and what it costs, and end.")
    ] = False,
    input_price: Annotated[
        float | None, typer.Option(help="Of a million tokens that a language model reads, in any currency.")
    ] = None,
    output_price: Annotated[float | None, typer.Option(help="Of a million tokens that one writes.")] = None,
) -> None:
    """Cut files into chunks and write them as JSON lines."""
    from chunkcore.report.files import write_parts
    from chunkcore.report.text import terminal_text

    _keep_inputs(files, output)
    prices = read_prices(input_price, output_price)
    chunker = _chunker(strategy, config)
    if dry_run:
        spec = strategy or str(config or chunker.name)
        for told in estimates({spec: chunker}, list(_documents(files)), prices):
            typer.echo(terminal_text(told))
        return
    chunker = keeping(chunker, None if no_cache else default_answers())
    lines = (_line(each) for each in chunker.chunk_many(_documents(files), workers=workers))
    if str(output) == "-":
        for line in lines:
            sys.stdout.buffer.write(line)
    else:
        write_parts(output, lines)
    for told in used([chunker], prices):
        typer.echo(terminal_text(told), err=True)


def _keep_inputs(files: Iterable[Path], output: Path) -> None:
    """See that no file that is read would be replaced, and that the output is no document the next time.

    Raises:
        OptionError: the output is one of the files, or lies in one of the folders, as a document of it would.
    """
    from chunkcore.errors import OptionError

    if str(output) != "-" and output.is_file() and any(_reads(path, output) for path in files):
        raise OptionError(f"--output {output} is one of the files to cut, and would be replaced: name another file")
    for path in files:
        if str(output) != "-" and _would_read(path, output.resolve()):
            raise OptionError(
                f"--output {output} lies in {path}, and would be taken for a document: write it elsewhere"
            )


def _would_read(path: Path, file: Path) -> bool:
    """Whether `load_documents` of the path would read the file, were it there."""
    root = path.resolve()
    if not root.is_dir() or (root / "documents.jsonl").is_file() or root not in file.parents:
        return False
    return not any(part.startswith(".") for part in file.relative_to(root).parts)


def _reads(path: Path, file: Path) -> bool:
    """Whether `load_documents` of the path, or its text, would read the file."""
    if str(path) == "-" or not path.exists():
        return False
    if path.is_dir() and (path / "documents.jsonl").is_file():
        path = path / "documents.jsonl"
    if not path.is_dir():
        return path.samefile(file)
    return any(
        each.is_file() and each.samefile(file)  # a link in the folder may lead out of it
        for each in path.rglob("*")
        if not any(part.startswith(".") for part in each.relative_to(path).parts)
    )


def _chunker(strategy: str | None, config: Path | None) -> Chunker:
    """The one strategy that is asked for.

    Raises:
        OptionError: it is malformed, or more than one is asked for.
    """
    from chunkcore.chunkers import load_chunkers, parse_chunker
    from chunkcore.errors import OptionError

    if config is None:
        return parse_chunker("recursive:size=200" if strategy is None else strategy)
    if strategy is not None:
        raise OptionError(f"--strategy {strategy} and --config {config} were both given: give one")
    found = load_chunkers(config)
    if len(found) > 1:
        raise OptionError(f"{config} names {len(found)} strategies, and one is wanted: give it with --strategy")
    return found[0]


def _line(chunk: Chunk) -> bytes:
    data = {
        "document_id": chunk.document_id,
        "id": chunk.id,
        "index": chunk.index,
        "spans": _pairs(chunk.spans),
        "text": chunk.text,
        "token_count": chunk.token_count,
        **({"context": chunk.context} if chunk.context else {}),
        **({"segments": [_pairs(each) for each in chunk.segments]} if chunk.segments else {}),
        **({"derived": True} if chunk.derived else {}),
        "metadata": dict(chunk.metadata),
    }
    text = json.dumps(data, ensure_ascii=False)
    if _SURROGATE.search(text):  # UTF-8 cannot say it, JSON's escapes can
        text = json.dumps(data, ensure_ascii=True)
    return f"{text}\n".encode()


def _pairs(spans: Iterable[Span]) -> list[list[int]]:
    return [[span.start, span.end] for span in spans]


def _documents(files: Iterable[Path]) -> Iterator[Document]:
    """The documents of all arguments, each id once.

    Raises:
        DataError: a file cannot be read, holds no text or is not UTF-8, or two documents share an id.
    """
    from chunkcore.errors import DataError

    seen: dict[str, Path] = {}
    for path in files:
        for document in _of(path):
            if document.id in seen:
                raise DataError(_two_of_one_id(document.id, seen[document.id], path))
            seen[document.id] = path
            yield document


def _two_of_one_id(name: str, first: Path, second: Path) -> str:
    """What is wrong, and what to do, where two arguments both hold a document of that id."""
    one, other = (path if path.as_posix() == name else path / name for path in (first, second))
    # Path.is_file raises for ids that are longer than a file's name can be.
    are_files = os.path.isfile(one) and os.path.isfile(other)  # noqa: PTH113
    if first == second or (are_files and one.samefile(other)):
        return f"two documents have the id {name!r}: give each file once, or a folder of them"
    if are_files:
        return (
            f"two files have one name, {name!r} in {first} and in {second}, and documents are told apart by it: "
            "chunk the folder above them, in which their paths differ"
        )
    return f"{first} and {second} both hold a document with the id {name!r}: make the ids unique, or chunk each alone"


def _of(path: Path) -> Iterable[Document]:
    from chunkcore.document import Document
    from chunkcore.evaluation.loading import load_documents
    from chunkcore.evaluation.textfiles import read_text

    if str(path) == "-":
        return [Document("-", _standard_input())]
    if path.is_dir() or path.suffix == ".jsonl" or not path.exists():
        return load_documents(path)
    return [Document(path.as_posix(), read_text(path))]


def _standard_input() -> str:
    from chunkcore.errors import DataError

    data = sys.stdin.buffer.read()
    if not data:
        raise DataError("standard input is empty: pipe a text into the command")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start} is 0x{data[error.start]:02x}"
        raise DataError(f"standard input is not UTF-8 text ({byte}): convert it first") from error
