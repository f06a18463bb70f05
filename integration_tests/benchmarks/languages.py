"""Passages in languages that the embedder does not know, beside BM25 over the same chunks.

    apt-get download debian-faq-ja debian-faq-zh-cn debian-faq-ru debian-faq-ko
    for package in *.deb; do dpkg-deb -x $package faqs; done
    python -m integration_tests.benchmarks.languages --shared ../shared --faqs faqs --words th=tnc_freq.txt \
        --words zh=dict.txt

Debian's FAQ: a heading is a question, the first paragraph under it its evidence; headings are in no document. And XQuAD
in English with each word replaced by a word of another language, the same one each time and about as frequent: it has
that language's signs and the English text's repetitions. The lists have a word and its count on a line, as pythainlp's
and jieba's have. Recall in % at 500 and 1,000 tokens, and the share of the evidence that may be shown at all; dense
vectors are of all-MiniLM-L6-v2. All goes to docs/evidence/data/languages.json.
"""

from __future__ import annotations

import argparse
import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore import Benchmark, Chunk, ChunkedCorpus, Document, Evidence, Index, Query, Retrieved, Span, run_retriever
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever
from integration_tests.benchmarks.passages_table import STORE, UNITS, Behind, benchmark_of
from langchain_text_splitters import RecursiveCharacterTextSplitter

FAQS, BUDGETS = ("ja", "zh-cn", "ru", "ko"), (500, 1000)
STORES = ("200 tokens", "1,000 characters")
WAYS = ((100, "hits"), (100, "whole"), (10, "all"))
FOREIGN = "\u0e00"  # the first letter of Thai; Chinese is behind it
DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "languages.json"
PARTS = re.compile(r'<h[23] class="title">(.*?)</h[23]>', re.DOTALL)
CHROME = re.compile(
    r'<div class="nav(?:header|footer)">.*?</table>.*?</div>|<div class="toc">.*?</dl></div>', re.DOTALL
)
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?| (?=[A-Za-z])|.", re.DOTALL)


def seen(text: str) -> str:
    """What a reader sees: a line a block; where lines of a script without spaces end, there is no space."""
    text = re.sub(r"(?<=[^\x00-\u04ff])\n(?=[^\x00-\u04ff])", "", text)
    text = re.sub(r"</?(?:p|div|li|pre|tr|dt|dd)\b[^>]*>", "\n", re.sub(r"\s+", " ", text))
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    return re.sub(r"\s*\n\s*", "\n", text).strip()


def corpus_of(benchmark: Benchmark, store: str) -> ChunkedCorpus:
    """The chunks that an app would have in its store."""
    if store == STORES[0]:
        return chunk_corpus(benchmark.documents, STORE)
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200, add_start_index=True)
    chunks = []
    for document in benchmark.documents:
        for number, piece in enumerate(splitter.create_documents([document.text])):
            start, text = piece.metadata["start_index"], piece.page_content
            chunks.append(Chunk(document.id, number, (Span(start, start + len(text)),), text, len(text)))
    return ChunkedCorpus(chunks, benchmark.documents)


class Alone:
    """The retriever's own hits, more than any budget here holds."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def retrieve(self, query: str, k: int | None = None, max_tokens: int | None = None) -> Sequence[Retrieved]:
        return self._index.retrieve(query, 100)


def faq(folder: Path, language: str) -> Benchmark:
    documents: list[Document] = []
    queries: list[Query] = []
    for path in sorted(folder.glob(f"**/FAQ/{language}/*.html")):
        page = path.read_text(encoding="utf-8")
        rows = PARTS.split(CHROME.sub("", page[page.index("<body") :]))
        text = ""
        for title, body in zip(rows[1::2], rows[2::2], strict=True):
            answer = seen(body)
            if len(answer) < 40:
                continue
            start = len(text)
            end = start + len(answer.partition("\n")[0])
            text += f"{answer}\n\n"
            question = re.sub(r"^[\d.]+\s*", "", seen(title).replace("\n", " "))
            queries.append(Query(str(len(queries)), question, (Evidence(path.name, Span(start, end)),)))
        if text:
            documents.append(Document(path.name, text))
    return Benchmark(f"FAQ {language}", documents, queries)


class Replaced:
    """Texts whose English words are words of another language."""

    def __init__(self, language: str, words: Path, documents: Sequence[Document]) -> None:
        rows = [line.split() for line in words.read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if len(row) > 1 and row[0] >= FOREIGN and row[1].isdigit()]
        counts = {row[0]: int(row[1]) for row in rows}
        ranked = sorted(counts, key=lambda word: -counts[word])
        text = " ".join(document.text.lower() for document in documents)
        frequent = Counter(piece for piece in WORD.findall(text) if piece[0].isalpha())
        self._words = dict(zip([word for word, _ in frequent.most_common()], ranked, strict=False))
        self._rare = iter(ranked[len(self._words) :])
        self._marks = str.maketrans(".,?", "。，？") if language == "zh" else {}

    def read(self, text: str) -> tuple[str, list[int]]:
        """The text, and the new place of each old one."""
        pieces: list[str] = []
        places: list[int] = []
        size = 0
        for match in WORD.finditer(text):
            piece = match[0].translate(self._marks)
            if piece[0].isalpha() and piece.isascii():
                key = piece.lower()
                if key not in self._words:
                    self._words[key] = next(self._rare)
                piece = self._words[key]
            elif piece == " ":
                piece = ""
            pieces.append(piece)
            places += [size] * len(match[0])
            size += len(piece)
        return "".join(pieces), [*places, size]


def replaced(benchmark: Benchmark, language: str, words: Path) -> Benchmark:
    reader = Replaced(language, words, benchmark.documents)
    texts = {document.id: reader.read(document.text) for document in benchmark.documents}
    queries = []
    for query in benchmark.queries:
        rows = []
        for row in query.evidence:
            places = texts[row.document_id][1]
            rows.append(Evidence(row.document_id, Span(places[row.span.start], places[row.span.end])))
        queries.append(Query(query.id, reader.read(query.text)[0], tuple(rows)))
    return Benchmark(f"XQuAD {language}", [Document(name, text) for name, (text, _) in texts.items()], queries)


def visible(query: Query, hits: Sequence[Any], show: str) -> float:
    """The share of the question's evidence that may be shown."""
    shares = []
    for row in query.evidence:
        if show == "whole":
            shares.append(any(hit.document_id == row.document_id for hit in hits))
            continue
        is_shown = np.zeros(len(row.span), dtype=bool)
        for hit in hits:
            for span in hit.spans if hit.document_id == row.document_id else ():
                is_shown[max(0, span.start - row.span.start) : max(0, span.end - row.span.start)] = True
        shares.append(is_shown.mean())
    return float(np.mean(shares))


def systems(benchmark: Benchmark, embedder: Any) -> Iterator[tuple[str, Any, float]]:
    units = chunk_corpus(benchmark.documents, UNITS)
    words: Any = get_retriever("passages:lexical").index(units)
    yield "passages:lexical", words, 100.0
    yield "passages", get_retriever("passages").index(units, TextVectors(embedder, [units])), 100.0
    for store in STORES:
        corpus = corpus_of(benchmark, store)
        dense = get_retriever("dense").index(corpus, TextVectors(embedder, [corpus]))
        yield f"{store}: bm25", Alone(get_retriever("bm25").index(corpus)), 100.0
        yield f"{store}: dense", Alone(dense), 100.0
        for count, show in WAYS:
            shares = [
                1.0 if show == "all" else visible(query, dense.retrieve(query.text, count), show)
                for query in benchmark.queries
            ]
            label = f"{store}: behind {count} hits, {show}"
            yield label, Behind(dense, words, count, show), 100 * float(np.mean(shares))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--faqs", type=Path, required=True, help="the folder of the unpacked packages")
    parser.add_argument("--words", action="append", default=[], metavar="LANGUAGE=FILE")
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    embedder = CachedEmbedder(get_embedder("openvino:all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    benchmarks = [faq(options.faqs, language) for language in FAQS]
    for setting in options.words:
        language, _, path = setting.partition("=")
        benchmarks.append(replaced(benchmark_of("xquad_en", options.shared, 100), language, Path(path)))
    rows: dict[str, dict[str, list[float]]] = {}
    for benchmark in benchmarks:
        scorer = Scorer(benchmark)
        rows[benchmark.name] = {}
        for label, system, most in systems(benchmark, embedder):
            means = []
            for budget in BUDGETS:
                run = run_retriever(system, benchmark, None, budget)
                measure = f"Recall@{budget}tok"
                means.append(round(100 * scorer.score(run, [measure]).mean(measure), 1))
            rows[benchmark.name][label] = [*means, round(most, 1)]
            print(benchmark.name, label, rows[benchmark.name][label], flush=True)
        options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
