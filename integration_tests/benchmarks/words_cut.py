"""Cuts inside words of scripts without spaces, with and without the extra `words`, by other libraries' words.

`python -m integration_tests.benchmarks.words_cut` fetches Django's translations and the libraries into `corpus/`, which
git ignores, and writes `docs/evidence/data/words_cut.json`: of the cuts between two letters, the share inside a word.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import accumulate
from pathlib import Path

from chunkcore import get_chunker

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "corpus/words"
DATA = ROOT / "docs/evidence/data/words_cut.json"
PACKAGES = ("django", "fugashi", "jieba", "khmercut", "pyidaungsu", "pythainlp", "unidic-lite")
CHUNKERS = ("recursive:size=20", "sentence:size=20")
RUN = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]+")
_MESSAGE = re.compile(r'^msgstr(?:\[\d\])? ((?:".*"\n)+)', re.MULTILINE)


def japanese() -> Callable[[str], Iterable[str]]:
    from fugashi import Tagger

    tagger = Tagger()
    return lambda text: (word.surface for word in tagger(text))


def burmese() -> Callable[[str], Iterable[str]]:
    from pyidaungsu import tokenize

    return lambda text: tokenize(text, form="word")


REFERENCES: dict[str, Callable[[], Callable[[str], Iterable[str]]]] = {
    "th": lambda: import_module("pythainlp.tokenize").word_tokenize,
    "ja": japanese,
    "zh_Hans": lambda: import_module("jieba").cut,
    "km": lambda: import_module("khmercut").tokenize,
    "my": burmese,
}


def messages(language: str) -> Iterator[str]:
    for path in sorted(FOLDER.glob(f"django/**/locale/{language}/LC_MESSAGES/django.po")):
        for match in _MESSAGE.finditer(path.read_text(encoding="utf-8")):
            text = "".join(ast.literal_eval(line) for line in match[1].strip().split("\n"))
            if "Project-Id" not in text:
                yield text.replace("\u200b", "")


def edges_of(text: str, words_of: Callable[[str], Iterable[str]]) -> set[int]:
    """Where the reference's words end; of a run whose words are not all of its text, everywhere."""
    edges: set[int] = set()
    for run in RUN.finditer(text):
        words = list(words_of(run[0]))
        ends = accumulate(map(len, words))
        edges.update(run.start() + end for end in (ends if "".join(words) == run[0] else range(len(run[0]))))
    return edges


def cuts(chunker: str, text: str) -> Iterator[int]:
    """Where chunks end between two letters of these scripts."""
    for (span,) in get_chunker(chunker).spans(text):
        if RUN.match(text, span.end) and RUN.match(text[span.end - 1]):
            yield span.end


def main(with_extra: str = "") -> None:
    if not FOLDER.exists():
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", FOLDER)
        subprocess.run([*pip, *PACKAGES], check=True)
    sys.path.append(str(FOLDER))
    if with_extra == "without":
        sys.modules["icu4py.breakers"] = None  # type: ignore[assignment]
    rows = []
    for language, reference in REFERENCES.items():
        text = "\n".join(messages(language))
        edges = edges_of(text, reference())
        for chunker in CHUNKERS:
            places = list(cuts(chunker, text))
            inside = sum(place not in edges for place in places)
            rows.append({"language": language, "chunker": chunker, "cuts": len(places), "inside": inside})
    if with_extra == "without":
        sys.stdout.write(json.dumps(rows))
        return
    command = (sys.executable, "-m", "integration_tests.benchmarks.words_cut", "without")
    before = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = []
    for row, other in zip(rows, before, strict=True):
        row |= {"cuts_without": other["cuts"], "inside_without": other["inside"]}
        lines.append(json.dumps(row))
    DATA.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
