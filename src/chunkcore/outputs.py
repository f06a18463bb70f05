"""Names of the files that chunkcore's commands write, by which a folder's reader leaves them out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

REPORT_NAMES = ("report.md", "report.json", "scores.csv", "questions.csv", "report.html")
BENCHMARK_NAMES = ("documents.jsonl", "questions.jsonl")
CHECKSUMS = "checksums.json"  # of a benchmark that we wrote
ANSWERS = "answers.jsonl"
_INDEX_DATA = re.compile(r"(^|/)data-[0-9a-f]{16}/$")  # a saved index's folder of data


# The files of one output: it is there if all of the first are; the others are optional.
_FOLDERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("report.json", "scores.csv"), (*REPORT_NAMES, ANSWERS)),
    (BENCHMARK_NAMES, (CHECKSUMS,)),
)
# Endings of one stem: saved runs, and the files beside generated questions.
_ENDINGS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((".chunks.jsonl", ".jsonl"), ()),
    ((".rejected.jsonl", ".info.json", ".jsonl"), ()),
)


def written_names(names: set[str]) -> Iterator[str]:
    """Which of a folder's files an earlier command wrote: all names of one output are there.

    >>> sorted(set(written_names({"report.json", "scores.csv", "report.md", "own.md", "sweep.json"})))
    ['report.json', 'report.md', 'scores.csv']
    """
    outputs = [("", telling, others) for telling, others in _FOLDERS]
    for telling, others in _ENDINGS:
        stems = (name.removesuffix(telling[0]) for name in names if name.endswith(telling[0]))
        outputs += [(stem, telling, others) for stem in stems]
    for stem, telling, others in outputs:
        if all(stem + name in names for name in telling):
            yield from (stem + name for name in (*telling, *others) if stem + name in names)


def is_saved_index(files: Collection[str], folders: Collection[str]) -> bool:
    """Whether a folder with these files and folders, which end in a slash, is a saved index.

    >>> is_saved_index({"manifest.json"}, ["docs/index/data-0123456789abcdef/"]), is_saved_index({"manifest.json"}, [])
    (True, False)
    """
    return files == {"manifest.json"} and bool(folders) and all(_INDEX_DATA.search(name) for name in folders)
