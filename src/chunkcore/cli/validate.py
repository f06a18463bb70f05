"""``chunkcore validate``: what is wrong with questions and their evidence, by kind, with file and line."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli.caching import default_cache
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.models import Embedder
    from chunkcore.questions.validate import Finding

__all__ = ["HELP", "validate"]

HELP = help_text(
    """Find what is wrong with questions and their evidence, before strategies are compared on them.

Looks for evidence that is not found, is ambiguous, is too short or over the chunk size, or overlaps; for questions
asked twice, also in nearly the same words; for leakage (a question that stands in a document, or holds its
answer); and for documents that are one chunk or have no question.

  chunkcore validate --docs docs/ --questions questions.jsonl

  chunkcore validate --docs docs/ --questions questions.jsonl --size 400 --ignore unanswered --json

Exit code 0 when nothing is wrong, 1 when something is, 2 when the collection cannot be read.
"""
)


def validate(
    docs: Annotated[Path, typer.Option(help="A folder of text files, a file, or a documents.jsonl.")],
    questions: Annotated[Path | None, typer.Option(help="The questions, where they are not in the folder.")] = None,
    size: Annotated[int, typer.Option(min=1, help="Of the chunks that will be compared, in tokens.")] = 200,
    least: Annotated[int, typer.Option(min=1, help="Tokens that evidence has at least.")] = 3,
    similarity: Annotated[float, typer.Option(help="Cosine over which two questions are nearly the same.")] = 0.9,
    counter: Annotated[str, typer.Option(help="The tokens that are counted.")] = "cl100k_base",
    embedder: Annotated[
        str, typer.Option(help="For questions in nearly the same words: a sentence-transformers model, or none.")
    ] = "all-MiniLM-L6-v2",
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="A kind that is fine; once a kind.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many of a kind to list; 0 for all.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON instead.")] = False,
) -> None:
    """Find what is wrong with questions and their evidence."""
    from chunkcore.escaping import terminal_text
    from chunkcore.questions.validate import ValidationOptions, validate_benchmark

    ignored = _kinds(ignore or [])
    options = ValidationOptions(size=size, least=least, similarity=similarity, counter=counter)
    found = validate_benchmark(docs, questions, options=options, embedder=_embedder(embedder))
    found = [each for each in found if each.kind not in ignored]
    if as_json:
        typer.echo(json.dumps({"findings": [_record(each) for each in found]}, indent=2))
    else:
        for line in _lines(found, limit):
            typer.echo(terminal_text(line) if line else "")
    if found:
        raise typer.Exit(1)


def _kinds(given: Sequence[str]) -> frozenset[str]:
    """The kinds to leave out.

    Raises:
        OptionError: there is no such kind.
    """
    from chunkcore.errors import OptionError
    from chunkcore.questions.validate import KINDS

    for each in given:
        if each not in KINDS:
            raise OptionError(f"--ignore is one of {', '.join(KINDS)}; got {each!r}")
    return frozenset(given)


def _embedder(name: str) -> Embedder | None:
    """The model, or None where none is wanted or installed: what it would find is then not looked for, and told."""
    from chunkcore.errors import MissingExtraError
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder

    if name == "none":
        return None
    try:
        return CachedEmbedder(get_embedder(name), EmbeddingCache(default_cache(), private=True))
    except MissingExtraError as error:
        sys.stderr.write(f"questions in nearly the same words are not looked for: {error}\n")
        return None


def _record(found: Finding) -> dict[str, object]:
    line = re.search(r"line (\d+)$", found.place)
    return {**asdict(found), "line": int(line[1]) if line and found.query_id else None}


def _lines(found: Sequence[Finding], limit: int) -> Iterator[str]:
    """A table of kinds, and then the findings of each."""
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
