"""How long fifty questions take on the page of ``questions label``, with the keyboard alone, in a real browser.

A script presses the keys of somebody who knows the answer when it is read: next open question, passages from the best
on, sentences, mark. Where no passage holds the evidence, it looks for five words of the evidence. The browser's time is
measured. A person's is estimated from what was pressed and shown: 0.28 s a key and 1.35 s of thought before each mark
and each change of passage (Card, Moran and Newell, 1980, keystroke-level model), and 238 words a minute (Brysbaert,
2019) for the question, the best part of each passage before the one that holds the evidence, and the sentences from
its best part to the evidence's end.

    python -m integration_tests.benchmarks.label_time
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from chunkcore import get_chunker, load_dataset
from chunkcore.evaluation.benchmarks import Benchmark, Query
from chunkcore.questions.label import LabelledQuestions, LabelServer
from chunkcore.retrieval import cut, get_retriever
from integration_tests.browser import Browser, browser

KEY, THOUGHT, READING = 0.28, 1.35, 238 / 60  # seconds, seconds, words a second


class Labeller:
    """Presses keys, and counts keys, thoughts and words."""

    def __init__(self, tab: Browser, benchmark: Benchmark) -> None:
        self.tab = tab
        self.numbers = {document.id: number for number, document in enumerate(benchmark.documents)}
        self.texts = {document.id: document.text for document in benchmark.documents}
        self.keys = self.thoughts = self.words = self.searched = self.missed = 0

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
        self.tab.wait(f"document.getElementById('asked')?.textContent === {json.dumps(query.text)}")
        self.tab.wait("document.querySelector('#text .here, #passages li:not(:has(button))')")
        self.read(query.text)
        for evidence in query.evidence:
            place = (self.numbers[evidence.document_id], evidence.span.start, evidence.span.end)
            if not self._find(*place):
                self.searched += 1
                self.press("f")
                words = " ".join(evidence.span.slice(self.texts[evidence.document_id]).split()[:5])
                self.tab.write(words)
                self.keys += len(words)
                self.tab.ask("state.passage = -1")
                self.press("Enter")
                self.tab.wait("state.passage === 0 && document.querySelector('#text .here')")
                if not self._find(*place):
                    self.missed += 1
                    continue
            self._mark(*place)
        self.tab.ask("saving")
        self.press(".")

    def _find(self, document: int, start: int, end: int) -> bool:
        """Go through the passages until one holds the place; those that were seen are not read again."""
        passages: list[dict[str, Any]] = self.tab.ask("state.passages")
        now = self.tab.ask("state.passage")
        holding = [
            at
            for at, each in enumerate(passages)
            if each["document"] == document and each["start"] < end and start < each["end"]
        ]
        target = min(holding, default=len(passages) - 1)
        for at in range(now, target, 1 if target > now else -1):
            if target > now:
                self.read(passages[at]["text"])
            self._step(at, 1 if target > now else -1)
        return bool(holding)

    def _step(self, at: int, by: int) -> None:
        self.think()
        self.press("]" if by > 0 else "[")
        self.tab.wait(f"state.passage === {at + by} && state.shown && document.querySelector('#text .here')")

    def _mark(self, document: int, start: int, end: int) -> None:
        self.tab.wait(f"state.shown.document === {document}")
        while True:
            first, text = self.tab.ask("state.shown.units[state.cursor]")
            self.read(text)
            if first <= start:
                break
            self._walk("k")
        while True:
            first, text = self.tab.ask("state.shown.units[state.cursor]")
            if first + len(text) > start and text.strip():
                self.think()
                self.press(" ")
            if first + len(text) >= end:
                return
            self._walk("j")
            self.read(self.tab.ask("state.shown.units[state.cursor][1]"))

    def _walk(self, key: str) -> None:
        cursor = self.tab.ask("state.cursor")
        self.press(key)
        self.tab.wait(f"state.cursor !== {cursor}")

    def seconds(self) -> float:
        return self.keys * KEY + self.thoughts * THOUGHT + self.words / READING


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    count = parser.parse_args().count
    benchmark = load_dataset("lochmere")
    asked = benchmark.queries[:count]
    index = get_retriever("passages:lexical").index(cut(benchmark.documents, get_chunker("sentence:size=50")))
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
                spent = time.perf_counter() - began
            server.shutdown()
            thread.join()
            done = kept.done
    print(
        f"{done} of {count} questions labelled; {labeller.searched} searches of other words, {labeller.missed} missed"
    )
    print(f"{labeller.keys:,} keys, {labeller.thoughts:,} decisions, {labeller.words:,} words read")
    print(f"browser and server: {spent:.0f} s; a person, estimated: {labeller.seconds() / 60:.0f} minutes")


if __name__ == "__main__":
    main()
