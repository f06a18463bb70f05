"""Our own patterns and finders on texts that are made for them: nothing grows with the square of the text."""

from __future__ import annotations

import subprocess
import sys

import pytest

# It takes two or three seconds of the processor, and may take a minute: hours, if anything in it grew with the square.
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.boundaries.code import nests_deeper
from chunkcore.plain import csv_cell, markdown_cell, page_text, terminal_text

units = " |\\n|\\t|- |#|> |`|[|](|<|</|<a |<!--|&|*|_|=|. |a. A|\\"|ก |。|\\r|\\x85|{|--".split("|")
units += ["+++\\n", "---\\n", ";\\n", "\\ufeff", "=\\u200b", "|", "| ", "|-", "\\\\"]
for unit in units:
    text = unit * (60_000 // len(unit))
    for _ in range(20):
        format_of(text)
    for shown in (csv_cell, markdown_cell, page_text, terminal_text):
        shown(text)
    sentence_ranges(text)
    markdown_blocks(text[:20_000])
nests_deeper(b"([{" * 200_000, 1_000)
print("done")
"""


# Likewise, of what searches and what parts a text by topics. Texts that are all alike make every place a tie.
SEARCHES = r"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
import numpy as np
from chunkcore.text import Chunk, Document, Span
from chunkcore.retrieval import ChunkedCorpus, Reranked, TextVectors
from chunkcore.retrieval.stage import get_retriever
from chunkcore.retrieval.lexicon import words
from chunkcore.chunkers.hierarchical import segment_starts
from tests.fakes import FakeEmbedder

units = "a|a |_|\u0301\u0316|\uff9e\u0301|\u0f73\u0301|각|ก|犬|\u1100\u1161|\ufdfa|\u1fb3|ß|İ|👩\u200d".split("|")
for unit in [*units, "\ud800"]:
    words("a" + unit * (200_000 // len(unit)))

class Known(FakeEmbedder):
    "Vectors that are alike, none, opposites in turn, or ever farther."
    kind = "alike"
    def embed_documents(self, texts):
        count = len(texts)
        turns = {"alike": np.ones(count), "none": np.zeros(count), "in turn": np.resize([1.0, -1.0], count)}
        first = turns[self.kind] if self.kind in turns else np.linspace(-1, 1, count)
        return np.stack([first] + [np.ones(count) * (self.kind != "none")] * 383, axis=1).astype(np.float32)

model = Known(384)
for model.kind in ("alike", "none", "in turn", "farther"):
    sentences = [f"Fox {n}." for n in range(5_000 if model.kind == "alike" else 500)]
    segment_starts(model.embed_documents(sentences), 15, 2.0)

alike = ["fox naps"] * 3_000
wordy = [" ".join(f"w{n}" for n in range(200))] * 100 + ["w7 " * 20_000]
for texts, queries in ((alike, ["fox naps " * 10_000, "fox"]), (wordy, ["w7 w8 " * 10_000, " ".join(wordy[:50])])):
    chunks = [Chunk("d", n, (Span(n, n + 1),), text, 2) for n, text in enumerate(texts)]
    for model.kind in ("alike", "none"):
        corpus, vectors = ChunkedCorpus(chunks, [Document("d", "x" * len(texts))]), TextVectors(model)
        methods = [get_retriever(name) for name in ("bm25", "dense", "hybrid:bm25,dense")]
        for method in [*methods, Reranked(method=methods[0], model=lambda pairs: [0.0] * len(pairs), depth=1_000)]:
            found = method.index(corpus, vectors).search(queries, 1_000)
            assert all(len(set(row[row >= 0].tolist())) == (row >= 0).sum() for row in found.indices)
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process's time is limited as Unix does")
@pytest.mark.parametrize("program", ["texts", "searches"])
def test_what_reads_foreign_text_grows_with_it(program: str) -> None:
    if program == "searches":
        pytest.importorskip("safetensors", reason="the extra openvino is not installed")
    source = PROGRAM if program == "texts" else SEARCHES
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=900)
    assert ran.stdout == "done\n", ran.stderr


@pytest.mark.parametrize("unit", ["a ", "the fox ", "x", "fox. ", "aaab "])
def test_texts_that_repeat_are_placed_soon(unit: str) -> None:
    from chunkcore.locating.alignment import Aligner
    from chunkcore.text import Document

    document = Document("d", unit * (20_000 // len(unit)))
    found = Aligner([document]).locate((unit * 200)[1:-1] + "?")
    assert all(0 <= span.start < span.end <= len(document.text) for span in found.spans)
