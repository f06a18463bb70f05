"""What this package writes, by its names: in a folder of documents it is no document, since it quotes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "ANSWERS",
    "BENCHMARK_NAMES",
    "REPORT_NAMES",
    "SWEEP_NAMES",
    "TUNE_NAMES",
    "written_before",
    "written_names",
]

REPORT_NAMES = ("report.md", "report.json", "scores.csv", "questions.csv", "report.html")
SWEEP_NAMES = ("sweep.md", "sweep.json", "sweep.html")
TUNE_NAMES = ("study.jsonl", "tune.json", "winner.yaml")
BENCHMARK_NAMES = ("documents.jsonl", "questions.jsonl")
ANSWERS = "answers.jsonl"


class _Output(NamedTuple):
    """Files that are written together: those that tell it, all of them there, and those that may be there, too."""

    telling: tuple[str, ...]
    others: tuple[str, ...] = ()


_FOLDERS = (
    _Output(("report.json", "scores.csv"), (*REPORT_NAMES, ANSWERS)),
    _Output(("sweep.json", "sweep.html"), SWEEP_NAMES),
    _Output(("study.jsonl", "tune.json"), TUNE_NAMES),
    _Output(BENCHMARK_NAMES),
)
# Endings of one stem: saved runs, and what stands beside generated questions.
_ENDINGS = (
    _Output((".chunks.jsonl", ".trec", ".jsonl")),
    _Output((".journal.jsonl", ".info.json", ".jsonl"), (".rejected.jsonl", ".filters.html")),
)


def written_before(files: Iterable[Path]) -> set[Path]:
    """Those of the files that an earlier command wrote: one name alone tells nothing, those of one output together do.

    >>> names = ("out/report.json", "out/scores.csv", "out/report.md", "out/own.md", "deep/report.json")
    >>> sorted(each.as_posix() for each in written_before(map(Path, names)))
    ['out/report.json', 'out/report.md', 'out/scores.csv']
    """
    folders: dict[Path, set[str]] = defaultdict(set)
    for file in files:
        folders[file.parent].add(file.name)
    return {folder / name for folder, names in folders.items() for name in written_names(names)}


def written_names(names: set[str]) -> Iterator[str]:
    """`written_before` of the names of one folder's files."""
    for stem, output in [*(("", each) for each in _FOLDERS), *_by_stem(names)]:
        if all(stem + name in names for name in output.telling):
            yield from (stem + name for name in (*output.telling, *output.others) if stem + name in names)


def _by_stem(names: set[str]) -> Iterator[tuple[str, _Output]]:
    for output in _ENDINGS:
        ending = output.telling[0]
        yield from ((name.removesuffix(ending), output) for name in names if name.endswith(ending))
