"""How long fifty questions take on the page of ``questions label``, with the keyboard alone, in a real browser.

A script presses the keys of somebody who knows the answer when it is read. For each question it reads the question and
the candidates, best first, until one holds evidence; of that one, a sentence before and after too. One key accepts
it; further sentences of the evidence are walked to and marked. After five wrong candidates it looks for the first five
words of the evidence, which a person must guess. The browser's time is measured. A person's is estimated from what was
pressed and shown: 0.28 s a key and 1.35 s of thought for each candidate, mark and search (Card, Moran and Newell, 1980,
keystroke-level model), and 238 words a minute (Brysbaert, 2019), for wrong candidates
too; "skimming" counts 450 for these (Carver, 1992).

    python -m integration_tests.benchmarks.label_time
    python -m integration_tests.benchmarks.label_time --collection ../shared/data/chroma
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chunkcore import Document, Span, get_chunker, load_dataset
from chunkcore.evaluation.benchmarks import Benchmark, Evidence, Query, load_benchmark
from chunkcore.questions.label import LabelledQuestions, LabelServer
from chunkcore.retrieval import cut, get_retriever
from integration_tests.browser import Browser, browser

KEY, THOUGHT = 0.28, 1.35  # seconds
READING, SKIMMING = 238 / 60, 450 / 60  # words a second
_TRIED = 5  # candidates that are read before other words are looked for

Place = tuple[int, int, int]  # document number, start and end


class Labeller:
    """Presses keys, and counts keys, thoughts and words."""

    def __init__(self, tab: Browser, benchmark: Benchmark) -> None:
        self.tab = tab
        self.numbers = {document.id: number for number, document in enumerate(benchmark.documents)}
        self.texts = [document.text for document in benchmark.documents]
        self.keys = self.thoughts = self.words = self.rejected = self.missed = 0
        self.first: Counter[int | None] = Counter()  # the place of the first right candidate; None: a search was needed

    def press(self, key: str) -> None:
        self.keys += 1
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" else {}
            code = {"windowsVirtualKeyCode": 13, "code": "Enter"} if key == "Enter" else {}
            self.tab.call("Input.dispatchKeyEvent", type=kind, key=key, **text, **code)

    def think(self) -> None:
        self.thoughts += 1

    def read(self, text: str) -> None:
        self.words += len(text.split())

    def label(self, query: Query) -> None:
        asked = json.dumps(" ".join(query.text.split()))
        self.tab.wait(f"document.getElementById('asked')?.textContent === {asked}")
        self.tab.wait("document.querySelector('#text .here, #candidates li:not(:has(button))')")
        self.read(query.text)
        marked: list[tuple[int, int, int]] = []
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
        """Read candidates until one holds a part of the place."""
        candidates: list[dict[str, Any]] = self.tab.ask("state.candidates")[:_TRIED]
        for at in range(self.tab.ask("state.candidate"), len(candidates)):
            self.tab.wait(f"state.candidate === {at}")
            self.read(candidates[at]["text"])
            if _first(candidates, place) == at:
                begins = f"state.shown.units[state.cursor]?.[0] === {candidates[at]['start']}"
                self.tab.wait(f"state.shown?.document === {place[0]} && {begins}")
                return at
            self.rejected += len(candidates[at]["text"].split())
            if at + 1 < len(candidates):
                self.think()
                self.press("n")
        return None

    def _mark(self, place: Place, *, only: bool) -> Place:
        """Read around the candidate and mark the evidence; if it is all of it, Enter will."""
        document, start, end = place
        for text in self.tab.ask("[...document.querySelectorAll('#text .near')].map((each) => each.textContent)"):
            self.read(text)
        first, last = self._cursor()
        if first <= start and end <= last and only:
            return document, first, last
        self._toggle()
        while first > start or last < end:
            self._walk("k" if first > start else "j")
            at, until = self._cursor()
            if at < first or until > last:
                self.read(self.texts[document][at:until])
                self._toggle()
            first, last = min(first, at), max(last, until)
        return document, first, last

    def _toggle(self) -> None:
        self.think()
        self.press(" ")

    def _cursor(self) -> list[int]:
        found: list[int] = self.tab.ask(
            "[state.shown.units[state.cursor][0], state.shown.units[state.last + 1]?.[0] ?? state.shown.end]"
        )
        return found

    def _walk(self, key: str) -> None:
        cursor = self.tab.ask("state.cursor")
        self.press(key)
        self.tab.wait(f"state.cursor !== {cursor}")

    def minutes(self, skimming: float) -> float:
        read = (self.words - self.rejected) / READING + self.rejected / skimming
        return (self.keys * KEY + self.thoughts * THOUGHT + read) / 60


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
    wanted = parser.parse_args()
    benchmark = load_benchmark(wanted.collection) if wanted.collection else load_dataset("lochmere")
    size, count = len(benchmark.queries), min(wanted.count, len(benchmark.queries))
    asked = [benchmark.queries[number * size // count] for number in range(count)]
    index = get_retriever(wanted.retriever).index(cut(benchmark.documents, get_chunker("sentence:size=25")))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "questions.jsonl")
        listed = [query.text for query in asked]
        with LabelledQuestions(benchmark.documents, output, listed) as kept, LabelServer(kept, index) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
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
    print(f"{labeller.keys:,} keys, {labeller.thoughts:,} decisions")
    print(f"{labeller.words:,} words read, {labeller.rejected:,} of them in wrong candidates")
    print(f"browser and server: {spent:.0f} s")
    print(f"a person, estimated: {labeller.minutes(READING):.0f} minutes; skimming: {labeller.minutes(SKIMMING):.0f}")


if __name__ == "__main__":
    main()
