"""How long fifty questions take on the page of ``questions label``, with the keyboard alone, in a real browser.

A script presses the keys of somebody who knows the answer when it is read. For each question it reads the question and
the candidates, best first, until one holds evidence; of that one, a sentence before and after too. A sentence is read
once a question. ``J`` and ``K`` take in neighbours that are evidence, and one key accepts. After five wrong candidates
it looks for the first five words of the evidence, which a person must guess.

The browser's time is measured. A person's is estimated by two models, from what was pressed and shown. Both count 0.28
s a key, and 1.35 s of thought for each mark, search and question done (Card, Moran and Newell, 1980, keystroke-level
model), and the question's words at 238 a minute (Brysbaert, 2019). They differ in the candidates:

- read in full: every word of them and around the evidence at 238 a minute, and a thought for each wrong one;
- judged as assessors did: 4.4 s for each candidate, as for a result's summary; around the evidence 7.8 s and 0.018 s a
  word, as for a document (Smucker and Clarke, 2012, "Time-Based Calibration of Effectiveness Measures").

    python -m integration_tests.benchmarks.label_time
    python -m integration_tests.benchmarks.label_time --collection ../shared/data/chroma
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chunkcore import Document, Span, get_chunker, load_dataset
from chunkcore.evaluation.benchmarks import Benchmark, Evidence, Query, load_benchmark
from chunkcore.models import get_embedder
from chunkcore.questions.label import LabelledQuestions, LabelServer
from chunkcore.retrieval import TextVectors, cut, get_retriever
from integration_tests.browser import Browser, browser

KEY, THOUGHT = 0.28, 1.35  # seconds
READING = 238 / 60  # words a second
SUMMARY, DOCUMENT, WORD = 4.4, 7.8, 0.018  # seconds: a summary; a document, and each of its words
_TRIED = 5  # candidates that are read before other words are looked for

_WORD = re.compile(r"\S+")
_CURSOR = "[state.shown.units[state.cursor][0], state.shown.units[state.last + 1]?.[0] ?? state.shown.end]"

Place = tuple[int, int, int]  # document number, start and end


class Labeller:
    """Presses keys, and counts keys, thoughts and words."""

    def __init__(self, tab: Browser, benchmark: Benchmark) -> None:
        self.tab = tab
        self.numbers = {document.id: number for number, document in enumerate(benchmark.documents)}
        self.texts = [document.text for document in benchmark.documents]
        self.keys = self.thoughts = self.missed = 0
        self.asked = self.around = 0  # words of questions, and around evidence
        self.candidates = self.wrong = self.listed = 0  # judged, those without evidence, and words of all
        self.places = 0  # around which was read
        self.first: Counter[int | None] = Counter()  # the place of the first right candidate; None: a search was needed
        self._seen: set[tuple[int, int]] = set()  # the words read for this question: document and place

    def press(self, key: str) -> None:
        self.keys += 1
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" else {}
            code = {"windowsVirtualKeyCode": 13, "code": "Enter"} if key == "Enter" else {}
            self.tab.call("Input.dispatchKeyEvent", type=kind, key=key, **text, **code)

    def think(self) -> None:
        self.thoughts += 1

    def new_words(self, place: Place) -> int:
        """Read a place: how many of its words are read for the first time."""
        document, start, end = place
        found = {(document, start + word.start()) for word in _WORD.finditer(self.texts[document][start:end])}
        new = len(found - self._seen)
        self._seen |= found
        return new

    def label(self, query: Query) -> None:
        asked = json.dumps(" ".join(query.text.split()))
        self.tab.wait(f"document.getElementById('asked')?.textContent === {asked}")
        self.tab.wait("document.querySelector('#text .here, #candidates li:not(:has(button))')")
        self.asked += len(query.text.split())
        self._seen.clear()
        marked: list[Place] = []
        candidates = self.tab.ask("state.candidates")
        places = [(self.numbers[each.document_id], each.span.start, each.span.end) for each in query.evidence]
        for place in sorted(places, key=lambda place: _first(candidates, place)):
            if any(number == place[0] and start <= place[1] and place[2] <= end for number, start, end in marked):
                continue
            at = self._find(place)
            if not marked:
                self.first[at] += 1
            if at is None:
                self.think()
                self.press("f")
                words = " ".join(self.texts[place[0]][place[1] : place[2]].split()[:5])
                self.tab.write(words)
                self.keys += len(words)
                self.tab.ask("state.candidate = -1")
                self.press("Enter")
                self.tab.wait("state.candidate === 0 && document.querySelector('#text .here')")
                if self._find(place) is None:
                    self.missed += 1
                    continue
            marked.append(self._mark(place, only=len(places) == 1))
        self.think()
        if not marked:
            self.press(".")  # stays open
            return
        self.press("Enter")

    def _find(self, place: Place) -> int | None:
        """Judge candidates until one holds a part of the place."""
        candidates: list[dict[str, Any]] = self.tab.ask("state.candidates")[:_TRIED]
        for at in range(self.tab.ask("state.candidate"), len(candidates)):
            self.tab.wait(f"state.candidate === {at}")
            shown = candidates[at]
            new = self.new_words((shown["document"], shown["start"], shown["end"]))
            self.listed += new
            self.candidates += new > 0
            if _first(candidates, place) == at:
                begins = f"state.shown.units[state.cursor]?.[0] === {shown['start']}"
                self.tab.wait(f"state.shown?.document === {place[0]} && {begins}")
                return at
            self.wrong += new > 0
            if at + 1 < len(candidates):
                self.press("n")
        return None

    def _mark(self, place: Place, *, only: bool) -> Place:
        """Read around the candidate and take in what is evidence; if there is no more, Enter will mark it."""
        document, start, end = place
        first, last = self._cursor()
        begin, until = self.tab.ask(
            "[state.shown.units[Math.max(0, state.cursor - 1)][0], state.shown.units[state.last + 2]?.[0] ?? "
            "state.shown.end]"
        )
        self.places += 1
        self.around += self.new_words((document, begin, until))
        while first > start or last < end:
            before = first, last
            self.press("K" if first > start else "J")
            self.tab.wait(f"JSON.stringify({_CURSOR}) !== '[{first},{last}]'")
            first, last = self._cursor()
            self.around += self.new_words((document, min(first, before[0]), max(last, before[1])))
        if not only:
            self.think()
            self.press(" ")
        return document, first, last

    def _cursor(self) -> list[int]:
        found: list[int] = self.tab.ask(_CURSOR)
        return found

    def minutes(self, judging: float) -> float:
        """A person's time, with so many seconds for candidates and what is around evidence."""
        return (self.keys * KEY + self.thoughts * THOUGHT + self.asked / READING + judging) / 60

    @property
    def reading(self) -> float:
        """The seconds of who reads candidates in full."""
        return (self.listed + self.around) / READING + self.wrong * THOUGHT

    @property
    def assessing(self) -> float:
        """The seconds of who judges candidates as assessors judged results."""
        return self.candidates * SUMMARY + self.places * DOCUMENT + self.around * WORD


def _first(candidates: Sequence[Mapping[str, Any]], place: Place) -> int:
    """The first candidate that holds a part of the place; as many as there are, if none does."""
    document, start, end = place
    held = (each["document"] == document and each["start"] < end and start < each["end"] for each in candidates)
    return next((at for at, holds in enumerate(held) if holds), len(candidates))


def _holds(row: Mapping[str, Any], query: Query, documents: Sequence[Document]) -> bool:
    """Whether all the evidence is within what was marked."""
    marked = [(documents[each["document"]].id, Span(each["start"], each["end"])) for each in row["evidence"]]
    return all(any(_within(each, name, span) for name, span in marked) for each in query.evidence)


def _within(evidence: Evidence, name: str, span: Span) -> bool:
    return evidence.document_id == name and span.start <= evidence.span.start and evidence.span.end <= span.end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--collection", type=Path, help="a folder of documents and questions; lochmere without it")
    parser.add_argument("--retriever", default="passages:lexical")
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2", help="of a retriever that embeds: a name or a folder")
    wanted = parser.parse_args()
    benchmark = load_benchmark(wanted.collection) if wanted.collection else load_dataset("lochmere")
    size, count = len(benchmark.queries), min(wanted.count, len(benchmark.queries))
    asked = [benchmark.queries[number * size // count] for number in range(count)]
    method = get_retriever(wanted.retriever)
    vectors = TextVectors(get_embedder(wanted.embedder)) if method.embeds else None
    index = method.index(cut(benchmark.documents, get_chunker("sentence:size=25")), vectors)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "questions.jsonl")
        listed = [query.text for query in asked]
        with LabelledQuestions(benchmark.documents, output, listed) as kept, LabelServer(kept, index) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            with browser() as tab:
                tab.size(1440, 900)
                tab.call("Page.navigate", url=server.address)
                labeller = Labeller(tab, benchmark)
                began = time.perf_counter()
                for query in asked:
                    labeller.label(query)
                tab.ask("saving")
                spent = time.perf_counter() - began
            server.shutdown()
            thread.join()
            right = sum(
                _holds(row, query, benchmark.documents) for row, query in zip(kept.states(), asked, strict=True)
            )
            done = kept.done
    found = ", ".join(f"{at + 1}: {labeller.first[at]}" for at in range(_TRIED))
    print(f"{done} of {count} questions labelled, {right} with all their evidence; {labeller.missed} places not found")
    print(f"first right candidate: {found}, none: {labeller.first[None]}")
    print(f"{labeller.keys:,} keys, {labeller.thoughts + labeller.wrong:,} decisions")
    print(f"{labeller.candidates:,} candidates judged, {labeller.wrong:,} of them without evidence")
    read = f"{labeller.asked:,} of questions, {labeller.listed:,} of candidates, {labeller.around:,} around evidence"
    print(f"words read: {read}")
    print(f"browser and server: {spent:.0f} s")
    full, assessed = map(labeller.minutes, (labeller.reading, labeller.assessing))
    print(f"a person, estimated: {full:.0f} minutes if all is read in full, {assessed:.0f} by assessors' times")


if __name__ == "__main__":
    main()
