"""QMSum (Zhong et al., 2021): meetings, questions with the turns that answer them, and the topics' turns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.documents import documents_of
from chunkcore.evaluation.benchmarks.rows import (
    Contents,
    Layout,
    Row,
    TextBuilder,
    begins_with,
    lacks_keys,
    member,
    regular_files,
    with_keys,
)
from chunkcore.files import json_lines, read_json, text_lines

__all__ = ["CHOI", "QMSUM", "WIKI727K"]

_KEYS = ("specific_query_list", "topic_list")
_SUFFIXES = (".json", ".jsonl")


def _read(root: Path, _: Path | None) -> Contents:
    """A meeting's text has ``speaker: content`` for each turn, on a line of its own where it has no line feeds.

    Evidence of a specific question is its turns, from the first to the last of each range. General questions (about
    the whole meeting) are without evidence.
    """
    meetings = list(_meetings(root))
    documents = documents_of((place, row) for place, row, _, _ in meetings)
    questions = [
        (Path(here).name, row)  # a list of questions has room for the file's name
        for place, told, turns, meeting in meetings
        for here, row in _questions(meeting, told, turns, place)
    ]
    return Contents(documents, questions)


def _boundaries(root: Path) -> Iterator[Row]:
    """The meetings; a section begins where a topic's turns do, and after its last turn."""
    for place, row, _, _ in _meetings(root):
        yield place, row


def _meetings(root: Path) -> Iterator[tuple[str, dict[str, Any], list[Span], dict[str, Any]]]:
    for file in with_keys(root, _KEYS, _SUFFIXES):
        for place, name, meeting in _listed(file):
            turns, text = _turns(meeting, place)
            starts = _starts(meeting, turns, place)
            yield place, {"id": name, "text": text, "boundaries": starts}, turns, meeting


def _listed(file: Path) -> Iterator[tuple[str, str, Any]]:
    if file.suffix.lower() == ".json":
        yield str(file), file.stem, read_json(file)
        return
    for number, meeting in json_lines(file):
        yield f"{file}, line {number}", f"{file.stem}-{number}", meeting


def _turns(meeting: dict[str, Any], place: str) -> tuple[list[Span], str]:
    builder, turns = TextBuilder("\n"), []
    for number, turn in enumerate(member(meeting, "meeting_transcripts", list, place)):
        here = f"{place}, meeting_transcripts[{number}]"
        span = builder.add(f"{member(turn, 'speaker', str, here)}: {member(turn, 'content', str, here)}")
        turns += [span] if span else []
    return turns, builder.text


def _starts(meeting: dict[str, Any], turns: list[Span], place: str) -> list[int]:
    begin: set[int] = set()
    for number, topic in enumerate(member(meeting, "topic_list", list, place)):
        here = f"{place}, topic_list[{number}]"
        for first, last in _ranges(topic, here):
            if not 0 <= first <= last < len(turns):
                raise DataError(f"{here}: {_outside(first, last, turns)}")
            begin |= {first, last + 1}
    return [turns[turn].start for turn in sorted(begin) if 0 < turn < len(turns)]


def _questions(meeting: dict[str, Any], document: dict[str, Any], turns: list[Span], place: str) -> Iterator[Row]:
    for kind in ("general_query_list", "specific_query_list"):
        for number, row in enumerate(member(meeting, kind, list, place, [])):
            here = f"{place}, {kind}[{number}]"
            told: dict[str, Any] = {
                "id": f"{document['id']}-{kind.partition('_')[0]}-{number + 1}",
                "question": member(row, "query", str, here),
                "document_id": document["id"],
                "answers": [member(row, "answer", str, here)],
            }
            told |= {"without_evidence": True} if kind.startswith("general") else _evidence(_ranges(row, here), turns)
            yield here, told


def _evidence(ranges: list[tuple[int, int]], turns: list[Span]) -> dict[str, Any]:
    for first, last in ranges:
        if not 0 <= first <= last < len(turns):
            return {"left_out": _outside(first, last, turns)}
    return {"evidence": [{"start": turns[first].start, "end": turns[last].end} for first, last in ranges]}


def _outside(first: int, last: int, turns: list[Span]) -> str:
    return f"the turns {first} to {last} are not all among the meeting's {len(turns)}"


def _ranges(row: Any, place: str) -> list[tuple[int, int]]:
    """Pairs of turns, which the files write as strings of digits."""
    found = []
    for pair in member(row, "relevant_text_span", list, place):
        numbers = [str(each).strip() for each in pair] if isinstance(pair, list) else []
        if len(numbers) != 2 or not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
            raise DataError(f"{place}: expected 'relevant_text_span' to be pairs of turns, got {str(pair)[:40]}")
        found.append((int(numbers[0]), int(numbers[1])))
    return found


QMSUM = Layout(
    name="qmsum",
    files='.json or .jsonl of {"topic_list", "general_query_list", "specific_query_list", "meeting_transcripts"}',
    holds="evidence",
    lacks=lambda root: lacks_keys(root, _KEYS, _SUFFIXES),
    read=_read,
    boundaries=_boundaries,
)


_HEADING = re.compile(r"========,(\d+),(.*)")
_RULE = "=========="


def _wiki(root: Path) -> Iterator[Row]:
    """An article a file: a sentence a line, sections under lines of ``========,level,title.``.

    The text is the sentences with line feeds between; headings are no part of it, and stand in
    ``metadata["headings"]`` as [offset, level, title].
    """
    for name, file in _named(root):
        heads: list[tuple[int, str]] = []
        text, starts, sentences = TextBuilder("\n"), [], []
        headings: list[list[Any]] = []
        for _, line in text_lines(file):
            found = _HEADING.match(line.rstrip("\r\n"))
            if found:
                heads.append((int(found[1][:9]), found[2].removesuffix(".")))
                continue
            span = text.add(line.strip())
            if span is None:
                continue
            sentences.append([span.start, span.end])
            if heads:
                starts += [span.start] if span.start else []
                headings += [[span.start, level, title] for level, title in heads]
                heads = []
        told = {"id": name, "text": text.text, "boundaries": starts, "sentences": sentences, "headings": headings}
        yield str(file), told


def _choi(root: Path) -> Iterator[Row]:
    """A text a file: a sentence a line, segments between lines of ``==========``."""
    for name, file in _named(root, ".ref"):
        text, starts, sentences, begins = TextBuilder("\n"), [], [], False
        for _, line in text_lines(file):
            if line.strip() == _RULE:
                begins = True
                continue
            span = text.add(line.strip())
            if span is None:
                continue
            starts += [span.start] if begins and span.start else []
            begins = False
            sentences.append([span.start, span.end])
        yield str(file), {"id": name, "text": text.text, "boundaries": starts, "sentences": sentences}


def _named(root: Path, suffix: str = "") -> Iterator[tuple[str, Path]]:
    """The files of a folder, by their paths in it."""
    for file in regular_files(root):
        if not suffix or file.suffix == suffix or file == root:
            yield (file.name if file == root else file.relative_to(root).as_posix()), file


def _texts(rows: Iterable[Row]) -> Contents:
    return Contents(documents_of(rows))


WIKI727K = Layout(
    name="wiki727k",
    files="files with lines of ========,level,title. at any depth (WIKI-50, too)",
    holds="boundaries",
    lacks=lambda root: "" if begins_with(root, b"========,") else "a file that begins with ========,",
    read=lambda root, _: _texts(_wiki(root)),
    boundaries=_wiki,
)
CHOI = Layout(
    name="choi",
    files="*.ref with lines of ==========, at any depth",
    holds="boundaries",
    lacks=lambda root: "" if begins_with(root, _RULE.encode()) else f"a file that begins with a line {_RULE}",
    read=lambda root, _: _texts(_choi(root)),
    boundaries=_choi,
)
