"""How often retrieved text is located right: `python -m integration_tests.benchmarks.alignment_accuracy --shared PATH`.

Chunks of six collections, whose origin is known, are changed as splitters, loaders and models change them, and then
sought by their text alone, in the whole collection or in the document that is named.

right      located where it came from, and said to be sure of the place
ambiguous  said to stand at several places that are equally good, right or not the one that was taken
unlocated  said to stand nowhere
wrong      located elsewhere, and said to be sure

A place is right where the characters in it and those of the true place, white space at the ends left out, have an
intersection over union of 0.9 or more. The last row is of chunks of documents that are not searched: all should be
unlocated.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chunkcore import Document, Retrieved, Span, get_chunker
from chunkcore.evaluation import Aligner

COLLECTIONS = ("chroma", "covid_qa", "cuad", "evidence_inference", "fairytaleqa", "qmsum", "wiki300")
RIGHT = 0.9

Change = Callable[[str, random.Random], tuple[str, slice]]


@dataclass(frozen=True)
class Origin:
    """A chunk's text and where it stands."""

    document: Document
    span: Span

    @property
    def text(self) -> str:
        return self.span.slice(self.document.text)


def load(shared: Path, name: str) -> list[Document]:
    """The collection's documents."""
    folder = shared / "data" / name
    if name == "chroma":
        return [Document(path.name, path.read_text("utf-8")) for path in sorted((folder / "corpora").glob("*.md"))]
    rows = map(json.loads, (folder / "documents.jsonl").read_text("utf-8").splitlines())
    return [Document(row["id"], row["text"]) for row in rows]


def origins(documents: list[Document], spec: str, count: int, seed: int) -> list[Origin]:
    """So many chunks, drawn at random."""
    chunker = get_chunker(spec)
    located = [Origin(each, Span(chunk.start, chunk.end)) for each in documents for chunk in chunker.chunk(each)]
    return random.Random(seed).sample(located, min(count, len(located)))


ALL = slice(None)
CURLY = str.maketrans({"'": "’", "-": "‐"})
CONTEXT = (
    "This excerpt is taken from the middle of a longer document and continues what was set out before it; it "
    "describes in more detail the points at issue and prepares those that follow. "
)


def unchanged(text: str, _: random.Random) -> tuple[str, slice]:
    return text, ALL


def stripped(text: str, _: random.Random) -> tuple[str, slice]:
    return text.strip(), ALL


def one_space(text: str, _: random.Random) -> tuple[str, slice]:
    return " ".join(text.split()), ALL


def other_lines(text: str, rng: random.Random) -> tuple[str, slice]:
    return "".join(each + rng.choice([" ", "\n", "\r\n", "\n\n", "\u00a0"]) for each in text.split()), ALL


def lower(text: str, _: random.Random) -> tuple[str, slice]:
    return text.lower(), ALL


def upper(text: str, _: random.Random) -> tuple[str, slice]:
    return text.upper(), ALL


def typographic(text: str, _: random.Random) -> tuple[str, slice]:
    paired = re.sub(r'"([^"]*)"', "“\\1”", text).translate(CURLY)
    return unicodedata.normalize("NFD", paired).replace("ff", "ﬀ").replace("fi", "ﬁ").replace("...", "…"), ALL


def without_markup(text: str, _: random.Random) -> tuple[str, slice]:
    return re.sub(r"[*_#`|>~\[\]]", "", text), ALL


def hyphenated(text: str, rng: random.Random) -> tuple[str, slice]:
    words = text.split(" ")
    return " ".join(
        f"{word[: len(word) // 2]}-\n{word[len(word) // 2 :]}" if len(word) > 7 and rng.random() < 0.2 else word
        for word in words
    ), ALL


def titled(text: str, _: random.Random) -> tuple[str, slice]:
    return f"Title: Collected Papers, vol. 3 > Section 2.4\n\n{text}", ALL


def in_context(text: str, _: random.Random) -> tuple[str, slice]:
    return f"{CONTEXT}\n{text}", ALL


def surrounded(text: str, _: random.Random) -> tuple[str, slice]:
    return f"Document 7\nPage 12\n---\n{text}\n---\nRetrieved on Monday by the search tool", ALL


def truncated(text: str, _: random.Random) -> tuple[str, slice]:
    kept = slice(0, max(1, len(text) * 6 // 10))
    return text[kept] + "...", kept


def beheaded(text: str, _: random.Random) -> tuple[str, slice]:
    kept = slice(len(text) * 4 // 10, None)
    return "... " + text[kept], kept


def typos(share: float) -> Change:
    def change(text: str, rng: random.Random) -> tuple[str, slice]:
        letters = []
        for letter in text:
            if letter.isspace() or rng.random() >= share:
                letters.append(letter)
            else:
                letters.append(rng.choice(["", rng.choice("etaoin") + letter, rng.choice("etaoinsrhl")]))
        return "".join(letters), ALL

    return change


def page_break(text: str, rng: random.Random) -> tuple[str, slice]:
    place = rng.randrange(len(text))
    return f"{text[:place]}\n\n12 | Annual Report of the Society, Part Two\n\n{text[place:]}", ALL


def much(text: str, rng: random.Random) -> tuple[str, slice]:
    kept, part = truncated(text, rng)
    return titled(one_space(typos(0.03)(kept.lower(), rng)[0], rng)[0], rng)[0], part


CHANGES: dict[str, Change] = {
    "unchanged": unchanged,
    "stripped": stripped,
    "every gap one space": one_space,
    "other line ends and gaps": other_lines,
    "lower case": lower,
    "upper case": upper,
    "typographic signs, ligatures, NFD": typographic,
    "Markdown's signs taken out": without_markup,
    "hyphenated at line ends": hyphenated,
    "a title before it": titled,
    "a context of 180 characters before it": in_context,
    "lines before and after it": surrounded,
    "the last 40 % cut off": truncated,
    "the first 40 % cut off": beheaded,
    "a page's foot inside": page_break,
    "2 % of the characters mistyped": typos(0.02),
    "5 % mistyped": typos(0.05),
    "10 % mistyped": typos(0.10),
    "title, lower case, one space, cut off, 3 % mistyped": much,
}


def judge(located: Retrieved, origin: Origin, part: slice) -> str:
    """Right, ambiguous, unlocated or wrong."""
    if not located.spans:
        return "unlocated"
    if located.match == "ambiguous":
        return "ambiguous"
    start, stop, _ = part.indices(len(origin.span))
    true = _trimmed(origin.document.text, origin.span.start + start, origin.span.start + stop)
    seen = _trimmed(origin.document.text, located.spans[0].start, located.spans[-1].end)
    shared = min(true[1], seen[1]) - max(true[0], seen[0])
    whole = max(true[1], seen[1]) - min(true[0], seen[0])
    return "right" if located.document_id == origin.document.id and shared >= RIGHT * whole else "wrong"


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    held = text[start:end]
    return start + len(held) - len(held.lstrip()), end - len(held) + len(held.rstrip())


def measure(aligner: Aligner, drawn: list[Origin], change: Change, *, named: bool, seed: int) -> Counter[str]:
    """How many chunks were judged how."""
    rng = random.Random(seed)
    judged: Counter[str] = Counter()
    for origin in drawn:
        text, part = change(origin.text, rng)
        located = aligner.locate(text, document_id=origin.document.id if named else "")
        judged[judge(located, origin, part)] += 1
    return judged


def strangers(documents: list[Document], drawn: list[Origin]) -> Counter[str]:
    """Chunks sought among the documents that they are not from."""
    judged: Counter[str] = Counter()
    half = documents[::2]
    aligner = Aligner(half)
    inside = {document.id for document in half}
    for origin in drawn:
        if origin.document.id not in inside:
            located = aligner.locate(origin.text)
            # Boilerplate stands in many contracts: what is there verbatim, but for its spelling, is no mistake.
            verbatim = located.spans and located.match not in ("fuzzy", "part")
            judged["elsewhere too" if verbatim else "wrong" if located.spans else "unlocated"] += 1
    return judged


def rows(shared: Path, count: int) -> Iterator[tuple[str, Counter[str], Counter[str]]]:
    """Each change's name, and how its chunks were judged: sought everywhere, and in their document."""
    totals: dict[str, tuple[Counter[str], Counter[str]]] = {name: (Counter(), Counter()) for name in CHANGES}
    foreign: Counter[str] = Counter()
    for collection in COLLECTIONS:
        documents = load(shared, collection)
        drawn = origins(documents, "recursive:size=200,overlap=0", count, 0)
        aligner = Aligner(documents)
        for name, change in CHANGES.items():
            for total, named in zip(totals[name], (False, True), strict=True):
                total.update(measure(aligner, drawn, change, named=named, seed=0))
        foreign.update(strangers(documents, drawn))
    yield from ((name, *both) for name, both in totals.items())
    yield "of documents that are not searched", foreign, Counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder that holds data/")
    parser.add_argument("--count", type=int, default=150, help="chunks of each collection")
    options = parser.parse_args()
    kinds = ("right", "ambiguous", "unlocated", "wrong")
    print(
        "| what was done to the chunk | "
        + " | ".join(f"{kind}, %" for kind in kinds)
        + " | right where the document is named, % |"
    )
    print("|---|" + "---:|" * 5)
    for name, everywhere, named in rows(options.shared, options.count):
        cells = [_percent(everywhere, kind) for kind in kinds] + [_percent(named, "right")]
        print(f"| {name} | {' | '.join(cells)} |")
        if everywhere["elsewhere too"]:
            print(f"({everywhere['elsewhere too']} of {everywhere.total()} stand in a searched document, too)")


def _percent(judged: Counter[str], kind: str) -> str:
    return f"{100 * judged[kind] / judged.total():.1f}" if judged.total() else ""


if __name__ == "__main__":
    main()
