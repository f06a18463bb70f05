"""Commands on files: ``chunkcore search``, ``index``, ``serve``, ``chunk``; ``calibrate`` and ``check`` of an index."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import chunkcore
from chunkcore import retrieval
from chunkcore.cli import options
from chunkcore.cli.options import (
    EmbedderName,
    FollowLinks,
    cached_embedder,
    flag_option,
    grouped,
    number_option,
    say,
    value_option,
)
from chunkcore.errors import DataError, OptionError, counted, echo, warn_user
from chunkcore.plain import terminal_block, terminal_text

if TYPE_CHECKING:
    from chunkcore.scale.folder_index import FolderIndex

Source = Annotated[
    Path,
    typer.Argument(metavar="DOCS", help="A folder, a file, a documents.jsonl, or a saved index."),
]
Labelled = Annotated[
    Path, value_option("FILE", "Labelled questions of these documents.", "--questions")
]
Verify = Annotated[
    bool, flag_option("Read every file again, even if it looks unchanged.", "--verify")
]


@dataclass
class Opening:
    """What is searched, and how its index is kept."""

    docs: Source
    dense: Annotated[bool, flag_option("Search by meaning, too, with a model.", "--dense")] = False
    embedder: EmbedderName = "all-MiniLM-L6-v2"
    verify: Verify = False
    follow_links: FollowLinks = False
    no_cache: Annotated[bool, flag_option("Do not keep the index and vectors.", "--no-cache")] = (
        False
    )

    def open(self) -> FolderIndex:
        """A saved index as it is, or the index of files as they are now, kept in the user's cache."""
        from chunkcore.scale.folder_index import NotSavedError, index_files, is_index, open_index

        _check_source(self.docs)
        model = cached_embedder(self.embedder, keep=not self.no_cache) if self.dense else None
        if is_index(self.docs):
            opened = open_index(self.docs, embedder=model)
            if self.dense and not opened.index.vectors:
                raise OptionError(
                    f"{self.docs} has no vectors for --dense: make it by chunkcore index -r passages"
                )
            return opened
        retriever = "passages" if model else "passages:lexical"
        cache = None if self.no_cache else self._cache(model)
        try:
            return index_files(
                self.docs,
                cache,
                retriever=retriever,
                embedder=model,
                reread=self.verify,
                follow_links=self.follow_links,
            )
        except NotSavedError as error:  # a full or read-only disk
            warn_user(str(error))
            return error.opened

    def _cache(self, model: chunkcore.Embedder | None) -> Path | None:
        """The folder in which the index of these files is kept; None, with a warning, where it cannot be made."""
        from chunkcore.plain import digest

        name = os.path.realpath(self.docs) + (f" {model.fingerprint}" if model else "")
        key = digest(name.encode("utf-8", "surrogateescape"))
        folder = options.default_cache().parent / "search" / key
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds the texts
        except OSError as error:
            warn_user(f"the index is not kept: {error.filename}: {error.strerror or error}")
            return None
        return folder


@grouped
def search(
    opening: Opening,
    question: Annotated[str, typer.Argument(help="What to look for.", metavar="QUESTION")],
    max_tokens: Annotated[int, number_option("Most tokens, of all passages together.", 1)] = 1000,
    k: Annotated[int | None, number_option("Most passages.", 1, "--k", "-k")] = None,
    where: Annotated[
        options.Repeatable,
        value_option("KEY=VALUE", "Only documents with this in their metadata.", "--where"),
    ] = None,
    as_json: Annotated[bool, flag_option("Write one passage a line.", "--json")] = False,
) -> None:
    """Print the passages that answer a question.

    Each comes with its file, lines and offsets. The search compares the first five letters of words; --dense adds a
    model. Passages have at most --max-tokens together. The index is kept in the user's cache folder; only changed
    files are read again. DOCS may be an index made by chunkcore index.

    --json writes one passage a line: {"document_id", "file", "lines", "pages", "spans", "score", "text", "parts"}.

    Example: chunkcore search docs/ "how is a pump primed?" --max-tokens 500
    """
    from chunkcore.scale.folder_index import check_question

    check_question(question)
    if os.path.exists(question) and not os.path.exists(opening.docs):  # noqa: PTH110  # Path.exists raises for a text
        raise OptionError(
            f"{opening.docs} does not exist, and {question} does: name the folder first, then the question"
        )
    searched = opening.open()
    index = searched.index.within(_conditions(where)) if where else searched.index
    if where and not len(index.corpus):
        say(f"chunkcore: no document has {' and '.join(where)} in its metadata", err=True)
        return
    passages = index.retrieve(question, k, max_tokens)
    documents = counted(len(searched.index.corpus.documents), "document")
    advice = "try other words" if opening.dense else "try other words, or --dense"
    if passages:
        advice = f"these passages are no nearer to the question than chance; {advice}"
    is_far = isinstance(index, retrieval.WindowIndex) and not index.is_related(question)
    if is_far or not passages:
        say(f"chunkcore: nothing relevant in {documents}: {advice}", err=True)
    _print(searched, passages, as_json)
    if passages and not as_json:
        say(f"{counted(len(passages), 'passage')} from {documents}", err=True)


def _print(searched: FolderIndex, passages: Sequence[chunkcore.Retrieved], as_json: bool) -> None:
    from chunkcore.files import utf8_line

    old = searched.changed({passage.document_id for passage in passages})
    if old:
        several = counted(len(old), "document")
        what = f"{several} changed since the index was made, such as {min(old)}"
        say(f"chunkcore: {what}: this is the old text; run chunkcore index again", err=True)
    for number, passage in enumerate(passages, start=1):
        row = searched.row(passage)
        if as_json:
            typer.echo(utf8_line(row), nl=False)
        else:
            typer.secho(f"[{number}] {_place(row)}", fg="cyan", bold=True)
            typer.echo(f"{terminal_block(passage.text)}\n")


@grouped
def index(
    docs: Source,
    output: Annotated[Path, value_option("FOLDER", "The index's folder.", "--output", "-o")],
    chunker: Annotated[
        str, options.chunker(help="Cuts the units of the index.")
    ] = "sentence:size=50",
    retriever: Annotated[
        str, options.retriever(help="How chunks are searched (list retrievers).")
    ] = "passages:lexical",
    embedder: EmbedderName = "all-MiniLM-L6-v2",
    verify: Verify = False,
    follow_links: FollowLinks = False,
) -> None:
    """Make or update an index of files.

    Only what changed is read, cut and embedded again. With -r passages vectors are saved, too. `search`, `serve`
    and the adapters open the folder; so does chunkcore.load_index.

    Example: chunkcore index docs/ -o docs.index && chunkcore search docs.index "how is a pump primed?"
    """
    from chunkcore.scale.folder_index import index_files, is_index

    _check_source(docs)
    if is_index(docs):
        raise OptionError(f"{docs} is a saved index: name the folder of its documents")
    model = cached_embedder(embedder) if chunkcore.get_retriever(retriever).embeds else None
    indexed = index_files(
        docs,
        output,
        retriever=retriever,
        chunker=chunker,
        embedder=model,
        reread=verify,
        follow_links=follow_links,
    )
    corpus = indexed.index.corpus
    read = "nothing had changed"
    if indexed.read:
        read = f"{counted(indexed.read, 'document')} read"
    documents = counted(len(corpus.documents), "document")
    say(f"{output}: {documents}, {counted(len(corpus), 'unit')}; {read}")


@grouped
def serve(opening: Opening) -> None:
    """Serve the search to language models (MCP).

    A Model Context Protocol server on standard input and output. The tool `search` takes question, max_tokens and
    where; the resource span://... reads a span with its surroundings.
    Files that change, and an index that is saved anew while it serves, are seen at the next question.
    Put into the client's configuration: {"command": "chunkcore", "args": ["serve", "docs/"]}
    """
    from chunkcore.scale.folder_index import is_index, tool_server

    reopen = None if is_index(opening.docs) else opening.open
    server = tool_server(opening.open(), reopen)
    # Python would wait for the thread that reads the input.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    server.run("stdio")


def _check_source(docs: Path) -> None:
    if str(docs) == "-" or docs.is_fifo():
        raise OptionError(
            "an index is made of files, not of standard input or a pipe: name a folder or a file"
        )


def _conditions(where: list[str]) -> Callable[[Mapping[str, Any]], bool]:
    """Whether metadata have these values; a value is text, or JSON, such as a number."""
    conditions = []
    for condition in where:
        key, equals, value = condition.partition("=")
        if not key or not equals:
            raise OptionError(
                f"--where takes KEY=VALUE, such as level=public; got {echo(condition)}"
            )
        values = [value]
        with suppress(ValueError, RecursionError):
            values.append(json.loads(value))
        conditions.append((key, values))
    return lambda metadata: all(
        key in metadata and metadata[key] in values for key, values in conditions
    )


def _place(row: Mapping[str, Any]) -> str:
    """File, document, the pages of a PDF, whose lines nobody counts, or else the lines, and characters."""
    names = [row["file"]]
    if row["document_id"] not in row["file"]:
        names.append(row["document_id"])
    noun, numbers = ("page", row["pages"]) if row["pages"] else ("line", row["lines"])
    first, last, spans = numbers[0], numbers[-1], row["spans"]
    place = f"{noun} {first}" if first == last else f"{noun}s {first}-{last}"
    characters = f"characters {spans[0][0]}-{spans[-1][1]}"
    return " · ".join([*map(terminal_text, names), place, characters])


# ---- chunk

_STANDARD = Path("-")


@grouped
def chunk(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files and folders, or - for standard input.", metavar="FILES"),
    ],
    costs: options.Models,
    spec: Annotated[str | None, options.chunker(help="Default: recursive:size=200.")] = None,
    output: Annotated[
        Path, value_option("FILE", "Or - for standard output.", "--output", "-o")
    ] = _STANDARD,
    workers: Annotated[int, number_option("Threads that cut.", 1)] = 1,
    follow_links: FollowLinks = False,
) -> None:
    """Cut files into chunks: JSON lines with offsets.

    A line is {"document_id", "id", "index", "spans", "text", "token_count", "metadata"}: text[start:end] of the file's
    characters is the chunk. Some have "context", "segments" or "derived".

    Example: chunkcore chunk docs/ -s recursive:size=200,overlap=20 -o chunks.jsonl

    Example: cat manual.md | chunkcore chunk -
    """
    from chunkcore.files import write_parts

    _keep_inputs(files, output)
    chunker = chunkcore.get_chunker(spec or "recursive:size=200")
    documents = _read(files, follow_links)
    if costs.dry_run:
        say(*costs.estimates({spec or chunker.name: chunker}, documents))
        return
    lines = _lines(documents, costs(chunker).chunk_many(documents, workers=workers))
    if output != _STANDARD:
        write_parts(output, lines)
    else:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    say(*costs.used(), err=True)


def _read(files: Iterable[Path], follow_links: bool) -> list[chunkcore.Document]:
    """The documents of all inputs. Raises `DataError`: two share an id."""
    from chunkcore.files import decoded, read_text

    places: dict[str, Path] = {}
    documents = []
    for path in files:
        if path == _STANDARD:
            text = decoded(sys.stdin.buffer.read(), Path("standard input"))
            if not text:
                raise DataError("standard input is empty: pipe a text into the command")
            loaded = [chunkcore.Document("-", text)]
        elif path.is_fifo():  # <(a command) of a shell
            loaded = [chunkcore.Document(str(path), read_text(path))]
        else:
            loaded = chunkcore.load_documents(path, follow_links=follow_links)
        for document in loaded:
            if document.id in places:
                raise DataError(
                    f"{places[document.id]} and {path} both hold a document with the id {document.id!r}: give each "
                    "file once, and of folders the one above them, in which their paths differ"
                )
            places[document.id] = path
        documents += loaded
    return documents


def _lines(
    documents: Iterable[chunkcore.Document], chunks: Iterable[chunkcore.Chunk]
) -> Iterator[bytes]:
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


# ---- thresholds


@grouped
def calibrate(
    opening: Opening,
    questions: Labelled,
    miss: Annotated[float, value_option("SHARE", "Of questions that may lack evidence.")] = 0.1,
    refuse: Annotated[
        float, value_option("SHARE", "Of questions that may be called unrelated.")
    ] = 0.05,
) -> None:
    """Find how many tokens a question needs.

    Also finds when the answer is not in the documents. Prints tokens against the share of questions with all evidence,
    and keeps two thresholds in the index: max_tokens="auto" then gives each question what it needs, and `related`
    says whether the answer is there. Of questions like these, in the mean, at most --miss lack evidence; that is no
    promise for a single one. The exit code is 1 if there are too few questions, or too much evidence is out of
    reach.

    Example: chunkcore calibrate docs.index --questions questions.jsonl --miss 0.1
    """
    from chunkcore.retrieval.saved import read_manifest
    from chunkcore.study.enough import UnattainableError, measure_needs

    opened = opening.open()
    benchmark = chunkcore.load_benchmark(opened.index.corpus.documents, questions)
    needs = measure_needs(opened.index, benchmark)
    say(
        f"{counted(len(needs.levels), 'question')}: tokens in the mean, and questions with all evidence"
    )
    for point in needs.curve():
        interval = f"(95 % interval {point.low:.0%} to {point.high:.0%})"
        typer.echo(f"{point.tokens:8,.0f}  {point.share:4.0%}  {interval}")
    try:
        enough = needs.enough(miss, refuse)
    except UnattainableError as error:
        say(f"chunkcore: {error}", err=True)
        raise typer.Exit(1) from error
    say(
        f"at most {enough.miss:.0%} of questions like these lack evidence: {enough.tokens:,.0f} tokens in the mean",
        f"at most {enough.refuse:.0%} are called unrelated",
    )
    if len(needs.unanswered):
        share, low, high = needs.passing(enough.least)
        say(
            f"asked without their documents, {share:.0%} ({low:.0%} to {high:.0%}) are still called related"
        )
    for question, document in needs.repeated.items():
        say(f"left out there: {document} answers {question} as well")
    if not opened.folder:
        return
    opened.index.enough = enough
    opened.index.save(opened.folder, notes=read_manifest(opened.folder)["notes"])
    say("saved in the index; in Python, and in each framework's IndexRetriever:")
    typer.echo(_PASTED.format(folder=str(opened.folder)))


@grouped
def check(
    opening: Opening,
    questions: Labelled,
) -> None:
    """Check that labels still match the documents.

    Run it after documents or the index have changed. Each excerpt is there, moved, split (its sentences stand
    apart), changed or gone. A calibrated index is compared with what was calibrated: another embedder, lost
    documents or units, and drift of the questions' presence, with 5 % of false alarms at most. The exit code is 1
    if an excerpt is split, changed or gone, or the index has changed.

    Example: chunkcore check docs/ --questions questions.jsonl
    """
    from chunkcore.evaluation.benchmarks.benchmark import question_rows
    from chunkcore.evaluation.benchmarks.loading import understood
    from chunkcore.questions.validate import label_states
    from chunkcore.study.enough import index_changes

    index = opening.open().index
    states = label_states(index.corpus.documents, questions)
    if not states:
        raise DataError(f'{questions} has no excerpt to check: expected lines with "evidence"')
    counts = Counter(state.state for state in states)
    say(*(str(state) for state in states if state.state != "there"))
    listed = ", ".join(f"{count} {state}" for state, count in counts.items())
    say(f"{counted(len(states), 'excerpt')}: {listed}")
    failures = counts["split"] + counts["changed"] + counts["gone"]
    if index.enough:
        rows = [understood(row) for _, row in question_rows(questions)]
        texts = [str(row.get("question", "")) for row in rows]
        changes = [f"{words}: calibrate again" for words in index_changes(index, texts).values()]
        say(*changes or ["the questions' presence is as it was"])
        failures += len(changes)
    if failures:
        raise typer.Exit(1)


_PASTED = """\
    from chunkcore import load_index
    index = load_index({folder!r})
    passages = index.retrieve(question, max_tokens="auto")
    if not index.is_related(question): ...  # ask back, or say that it is not there"""
