"""``chunkcore search``: a question in, passages of a folder's files out, under a budget of tokens."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence, Set
from contextlib import nullcontext
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError, OptionError
from chunkcore.escaping import terminal_text

if TYPE_CHECKING:
    from rich.text import Text

    from chunkcore.concurrency import Progress
    from chunkcore.document import Document
    from chunkcore.retrieval.corpus import ChunkedCorpus
    from chunkcore.run import Retrieved
    from chunkcore.scale.folder_index import FolderIndex

_STRATEGY = "recursive:size=50"  # of the units; a fourth of the time of sentences
_TOLD = 2_000_000  # bytes; less is read too fast to be told of
_WORDS = re.compile(r"(\w+)")
_SPACE = re.compile(r"([ \t\n]+)")
_FORM = "first5"


@options.grouped
def search(
    docs: Annotated[Path, typer.Argument(help="A folder, a file, or a documents.jsonl.", metavar="DOCS")],
    question: Annotated[str, typer.Argument(help="What to look for.", metavar="QUESTION")],
    max_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Tokens of all passages together.")] = 500,
    k: Annotated[int | None, typer.Option("-k", min=1, metavar="N", help="At most so many passages.")] = None,
    counter: options.Counter = "cl100k_base",
    dense: Annotated[bool, typer.Option("--dense", help="Search with the model, too.")] = False,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    as_json: Annotated[bool, typer.Option("--json", help="Write a passage a line.")] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no index and no embeddings.")] = False,
) -> None:
    """Print the passages of files that answer a question best, with file, lines and offsets.

    Passages are exact spans of any size, at most --max-tokens together. Words are searched, cut to five letters;
    --dense searches meanings, too, with the model. The index, and the texts of PDFs and other converted files, are kept
    in the user's cache folder; only changed files are read again.

    --json writes a passage a line: {"document_id", "file", "lines", "pages", "spans", "score", "text", "parts"}.

      chunkcore search docs/ "how is a pump primed?" --max-tokens 500
    """
    from chunkcore.retrieval import Passages, TextVectors
    from chunkcore.retrieval.lexicon import word_keys
    from chunkcore.tokens import get_counter

    if not question.strip():
        raise OptionError("the question is empty: write what to look for")
    if not docs.exists() and os.path.exists(question):  # noqa: PTH110  # Path.exists raises for long questions
        raise OptionError(f"{docs} does not exist, and {question} does: name the folder first, then the question")
    tokens = get_counter(counter)
    wanted = set(word_keys(question, _FORM))
    model = options.cached_embedder(embedder, keep=not no_cache) if dense else None

    def found(index: FolderIndex) -> tuple[ChunkedCorpus, Sequence[Retrieved] | None]:
        """The index as a corpus, and the passages; None without a word of the question."""
        corpus = index.corpus()
        vectors = TextVectors(model, [corpus], progress=progress) if model else None
        if not (vectors or (corpus.postings(_FORM).find([*wanted]) >= 0).any()):
            return corpus, None
        kinds = ("dense", "lexical") if vectors else ("lexical",)
        retriever = Passages(kinds=kinds, words=_FORM).index(corpus, vectors)
        (passages,) = retriever.answers([question], k, max_tokens, counter=tokens)
        return corpus, passages

    with running.reporting(sys.stderr) as progress, TemporaryDirectory() if no_cache else nullcontext("") as temporary:
        stale: set[str] = set()
        while True:
            index = _index(docs, progress, temporary, stale)
            try:
                corpus, passages = found(index)
                break
            except DataError:  # a file has changed since, or has its old size and time
                if index.stale <= stale:
                    raise
                stale |= index.stale
    documents = running.several(index.documents, "document")
    if passages is None:
        running.say(f"chunkcore: none of {documents} has a word of the question: try other words, or --dense", err=True)
        return
    if not dense:  # what is left of the budget goes to passages that have none of the words
        passages = [each for each in passages if wanted.intersection(word_keys(each.text, _FORM))]
    by_id = {document.id: document for document in corpus.documents}
    if as_json:
        for passage in passages:
            typer.echo(json.dumps(_row(passage, by_id[passage.document_id], index), ensure_ascii=False))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for number, passage in enumerate(passages, start=1):
        place = _row(passage, by_id[passage.document_id], index)
        console.print(_shown(f"[{number}]", place, passage, wanted))
    used = running.several(sum(tokens.count(passage.text) for passage in passages), "token")
    running.say(f"{running.several(len(passages), 'passage')} from {documents}, {used}", err=True)


def _index(docs: Path, progress: Progress, temporary: str, stale: Set[str]) -> FolderIndex:
    """The index of what is there now, and on disk the same; with a `temporary` folder for texts nothing is kept."""
    from chunkcore.chunkers import get_chunker
    from chunkcore.scale import total_bytes
    from chunkcore.scale.folder_index import FolderIndex

    if str(docs) == "-" or docs.is_fifo():
        raise OptionError("search reads files, not standard input or a pipe: name a folder or a file")
    name = blake2b(os.path.realpath(docs).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    file = options.default_cache().parent / "search" / f"{name}.npz"
    earlier = None
    if not temporary and file.exists():
        try:
            earlier = FolderIndex.load(file)
        except DataError as error:
            warnings.warn(f"{error}; it is made anew", stacklevel=2)
    total = 0

    def tell(read: int) -> None:
        nonlocal total
        if read >= _TOLD:
            total = total or total_bytes([docs]) or read
            progress("index (kB)", read // 1000, max(total, read) // 1000)

    texts = Path(temporary) if temporary else file.with_suffix("")
    index = FolderIndex.update(docs, get_chunker(_STRATEGY), _FORM, earlier, tell, os.cpu_count() or 1, texts, stale)
    if index.changed and not temporary:
        try:
            index.save(file)
        except OSError as error:
            warnings.warn(f"the index is not kept: {error.filename or file}: {error.strerror or error}", stacklevel=2)
    return index


def _row(passage: Retrieved, document: Document, index: FolderIndex) -> dict[str, Any]:
    from chunkcore.document import pages_of_all

    start, end = passage.spans[0].start, passage.spans[-1].end
    first = document.text.count("\n", 0, start) + 1
    return {
        "document_id": passage.document_id,
        "file": index.place(passage.document_id),
        "lines": [first, first + document.text.count("\n", start, end - 1)],
        "pages": list(next(pages_of_all(index.marks.get(passage.document_id, ()), [passage.spans]))),
        "spans": [[span.start, span.end] for span in passage.spans],
        "score": passage.score,
        "text": passage.text,
        "parts": [
            {"spans": [[span.start, span.end] for span in part.spans], "score": part.score} for part in passage.parts
        ],
    }


def _shown(number: str, place: Mapping[str, Any], passage: Retrieved, wanted: Set[str]) -> Text:
    """The passage under its place: words of the question are bold, the parts below the passage's mean score dim."""
    from rich.text import Text

    file, (first, last), spans = place["file"], place["lines"], place["spans"]
    pages = place["pages"]
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    if pages:  # of a PDF, whose lines nobody counts
        lines = f"page {pages[0]}" if len(pages) == 1 else f"pages {pages[0]}-{pages[-1]}"
    shown = Text(f"{number} {terminal_text(file)}", style="bold cyan")
    if place["document_id"] not in file:
        shown.append(f" · {terminal_text(place['document_id'])}")
    shown.append(f" · {lines} · characters {spans[0][0]}-{spans[-1][1]}\n", style="not bold cyan")
    mean = sum(part.score for part in passage.parts) / max(1, len(passage.parts))
    end = 0
    for part in sorted(passage.parts, key=lambda part: part.spans):
        begin = max(end, passage.text.find(part.text, end))
        close = min(len(passage.text), begin + len(part.text))
        _append(shown, passage.text[end:begin], wanted, "dim")
        _append(shown, passage.text[begin:close], wanted, "" if part.score >= mean else "dim")
        end = close
    _append(shown, passage.text[end:], wanted, "dim")
    shown.append("\n")
    return shown


def _append(shown: Text, text: str, wanted: Set[str], style: str) -> None:
    from chunkcore.retrieval.lexicon import word_keys

    for piece in _WORDS.split(text):
        own = "bold" if piece and not wanted.isdisjoint(word_keys(piece, _FORM)) else style
        words = (each.expandtabs(4) if not each.strip(" \t\n") else terminal_text(each) for each in _SPACE.split(piece))
        shown.append("".join(words), style=own)
