"""A thousand seeded edits of labelled evidence and of deployed indexes, and what `chunkcore check` says of them.

    python -m integration_tests.benchmarks.label_edits [--edits 1000] [--anchor PYTHON]

In each version of the collection lochmere, every excerpt is left, moved, split, reworded or deleted. What an edit makes
of an excerpt is known: one that is left has moved where text before it has changed. An index is calibrated with one
half of the questions, and checked with the other: unchanged, with another embedder, and without a third of its
documents. With `--anchor`, a Python in which anchor-eval is installed, that says on the same edits what it can: `anchor
drift corpus` whether a label holds, `anchor ci` whether a score has fallen. The numbers go to
docs/evidence/data/label_edits.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore import Benchmark, Document, Evidence, chunk_corpus, get_retriever, load_dataset
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.questions.validate import label_states
from chunkcore.retrieval import TextVectors, WindowIndex
from chunkcore.retrieval.lexicon import words
from chunkcore.study.enough import calibrate, index_changes

DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "label_edits.json"
KINDS = ("left", "moved", "split", "reworded", "deleted")
INSERTED = "\n\nThis paragraph was added in a later edition, and says nothing of the matter.\n\n"


def excerpts(benchmark: Benchmark) -> list[Evidence]:
    """Excerpts that do not overlap, whose text stands once, and is long enough to be told from others."""
    texts = [document.text for document in benchmark.documents]
    chosen: list[Evidence] = []
    for query in benchmark.queries:
        for piece in query.evidence:
            text = text_of(benchmark, piece)
            apart = all(
                piece.document_id != other.document_id
                or piece.span.end <= other.span.start
                or other.span.end <= piece.span.start
                for other in chosen
            )
            if apart and len(text) >= 40 and sum(other.count(text) for other in texts) == 1:
                chosen.append(piece)
    return chosen


def text_of(benchmark: Benchmark, piece: Evidence) -> str:
    return piece.span.slice(next(item.text for item in benchmark.documents if item.id == piece.document_id))


def edited(text: str, kind: str, rng: random.Random) -> tuple[str, str, str]:
    """What stands in place of the text, what is added at the end of another document, and the true state."""
    if kind == "moved":
        return "", text, "moved"
    if kind == "deleted":
        return "", "", "gone"
    if kind == "split":
        cuts = [start for start, _ in sentence_ranges(text).tolist()[1:]]
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        if len(parts) > 1 and min(len(part.strip()) for part in parts) >= 20:
            place = rng.choice(cuts)
            return text[:place] + INSERTED + text[place:], "", "split"
    if kind == "reworded":
        words = text.split(" ")
        places = [place for place, word in enumerate(words) if sum(map(str.isalpha, word)) > 2]
        if len(places) < 5:  # of a script without spaces
            middle, size = len(text) // 2, len(text) // 10
            return text[:middle] + "somewhat" + text[middle + size :], "", "changed"
        for place in rng.sample(places, max(1, len(places) // 12)):
            words[place] = "somewhat"
        return " ".join(words), "", "changed"
    return text, "", "left"


def version(benchmark: Benchmark, pieces: list[Evidence], rng: random.Random) -> tuple[list[Document], list[str]]:
    """The documents after an edit of each excerpt, and each excerpt's true state."""
    texts = {document.id: document.text for document in benchmark.documents}
    added: dict[str, str] = dict.fromkeys(texts, "")
    truth = [""] * len(pieces)
    order = sorted(range(len(pieces)), key=lambda number: -pieces[number].span.start)
    changed: dict[str, int] = {}
    for number in order:
        piece = pieces[number]
        span, name = piece.span, piece.document_id
        text = text_of(benchmark, piece)
        now, elsewhere, truth[number] = edited(text, rng.choice(KINDS), rng)
        texts[name] = texts[name][: span.start] + now + texts[name][span.end :]
        if elsewhere:
            added[rng.choice(list(texts))] += f"\n\n{elsewhere}\n"
        if now != text:
            changed[name] = min(changed.get(name, span.start), span.start)
    for number, piece in enumerate(pieces):
        if truth[number] == "left":
            text = text_of(benchmark, piece)
            is_there = texts[piece.document_id].startswith(text, piece.span.start)
            truth[number] = "there" if is_there else "moved"
    return [Document(name, texts[name] + added[name]) for name in texts], truth


def labels(benchmark: Benchmark, pieces: list[Evidence]) -> list[dict[str, Any]]:
    asked = {piece: query.text for query in benchmark.queries for piece in query.evidence}
    return [
        {
            "id": str(number),
            "question": asked[piece],
            "evidence": [
                {
                    "document": piece.document_id,
                    "start": piece.span.start,
                    "end": piece.span.end,
                    "text": text_of(benchmark, piece),
                }
            ],
        }
        for number, piece in enumerate(pieces)
    ]


HOLDS = ("there", "moved")  # states of labels that nobody need look at


class Hashed:
    """An embedder: the sum of a random vector for each word."""

    max_tokens = None

    def __init__(self, seed: int) -> None:
        self.name = self.fingerprint = f"hashed-{seed}"
        self._seed = seed

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        rows = [sum(map(self._of, words(text)), np.zeros(256)) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 256)

    embed_queries = embed_documents

    def _of(self, word: str) -> np.ndarray:
        digest = hashlib.sha256(f"{self._seed} {word}".encode()).digest()
        return np.random.default_rng(list(digest[:8])).choice((-1.0, 1.0), 256)


UNCHANGED, CHANGED = 200, 100  # runs


def deployments(benchmark: Benchmark) -> dict[str, Any]:
    """What `index_changes` says of an index that was calibrated with half of the questions."""
    corpus = chunk_corpus(benchmark.documents, "sentence:size=50")
    embedder = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    method, vectors = get_retriever("passages"), TextVectors(embedder)
    index = method.index(corpus, vectors)
    names = [document.id for document in benchmark.documents]
    results: dict[str, Counter[str]] = {"unchanged": Counter(), "embedder": Counter(), "lost": Counter()}
    for run in range(UNCHANGED):
        rng = random.Random(run)
        queries = rng.sample(benchmark.queries, len(benchmark.queries))
        half = len(queries) // 2
        calibrated = calibrate(index, Benchmark("half", benchmark.documents, queries[:half]), 0.3)
        deployed = {"unchanged": calibrated}
        if run < CHANGED:
            deployed["embedder"] = method.index(corpus, TextVectors(Hashed(run)))
            kept = rng.sample(names, len(names) - len(names) // 3)
            deployed["lost"] = calibrated.within(kept)
        for kind, part in deployed.items():
            assert isinstance(part, WindowIndex)
            part.enough = calibrated.enough
            said = {*index_changes(part, [query.text for query in queries[half:]])}
            results[kind]["runs"] += 1
            results[kind]["alarms"] += bool(said)
            results[kind]["named"] += kind in said
            results[kind]["drift"] += "drift" in said
    return {kind: dict(counts) for kind, counts in results.items()}


# What anchor-eval says, in its own Python: of each label in each folder, and of the scores in each folder.
ANCHOR = """
import json, sys
from datetime import datetime, timezone
from pathlib import Path
from typer.testing import CliRunner
import anchor
from anchor.cli.main import app
from anchor.corpus import LocalCorpusLoader
from anchor.corpus.fingerprint import compute_corpus_fingerprint
from anchor.models.anchor_set import AnchorSet, Requirement
from anchor.models.question import Question, QuestionSet
from anchor.models.span import Span

root, rows = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
documents = LocalCorpusLoader().load(str(root / "labelled"))
ids = {document.doc_id.partition("/")[2]: document.doc_id for document in documents}
questions = []
for row in rows:
    (piece,) = row["evidence"]
    span = Span(doc_id=ids[piece["document"]], char_start=piece["start"], char_end=piece["end"])
    anchors = AnchorSet(spans=(span,), requirement=Requirement.all())
    questions.append(Question(
        question_id=row["id"], text=row["question"], archetype_id="plain", anchors=anchors, difficulty=1))
made = QuestionSet(
    questions=tuple(questions), corpus_fingerprint=compute_corpus_fingerprint(documents), pack_versions={},
    created_at=datetime.now(timezone.utc), engine_version=anchor.__version__)
file, baseline = root / "set.json", root / "baseline.json"
file.write_text(made.canonical_json())
def exit_code(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments]).exit_code
chunking = ("--chunking-strategy", "document_structure")
exit_code("score", file, "-c", root / "labelled", "--save-baseline", baseline, *chunking)
result = {"version": anchor.__version__}
for folder in sorted(root.glob("*-*")):
    now = {document.doc_id for document in LocalCorpusLoader().load(str(folder))}
    spans = {question.question_id: question.anchors.spans[0].doc_id in now for question in questions}
    drift = exit_code("drift", "corpus", file, "-c", folder)
    assert (drift == 0) == all(spans.values()), folder
    ci = exit_code("ci", "-q", file, "-c", folder, "-b", baseline, *chunking)
    result[folder.name] = {"holds": [spans[row["id"]] for row in rows], "drift": drift, "ci": ci}
print(json.dumps(result))
"""


def write(folder: Path, documents: Sequence[Document]) -> None:
    for document in documents:
        path = folder / document.id
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document.text, "utf-8", newline="")


def by_anchor(python: str, root: Path, file: Path, truths: list[list[str]], benchmark: Benchmark) -> dict[str, Any]:
    """anchor-eval on the versions in the folder, on unchanged files, and on files without a third of them."""
    rng = random.Random(0)
    documents = list(benchmark.documents)
    write(root / "unchanged-0", documents)
    for run in range(CHANGED):
        write(root / f"lost-{run}", rng.sample(documents, len(documents) - len(documents) // 3))
    command = [python, "-c", ANCHOR, str(root), str(file)]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    counts: Counter[str] = Counter()
    for number, truth in enumerate(truths):
        for true, holds in zip(truth, said[f"edited-{number}"]["holds"], strict=True):
            counts[f"{true}: {'holds' if holds else 'drifted'}"] += 1
    lost = [said[f"lost-{run}"] for run in range(CHANGED)]
    return {
        "version": said["version"],
        "labels": dict(sorted(counts.items())),
        "right": sum(n for name, n in counts.items() if (name.split(": ")[0] in HOLDS) == name.endswith("holds")),
        "unchanged": {"drift": said["unchanged-0"]["drift"], "ci": said["unchanged-0"]["ci"]},
        "lost": {key: sum(row[key] != 0 for row in lost) for key in ("drift", "ci")},
        "embedder": "its commands read the files alone: as unchanged",
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--anchor", default="")
    arguments = parser.parse_args()
    benchmark = load_dataset("lochmere")
    pieces = excerpts(benchmark)
    counts: Counter[str] = Counter()
    truths: list[list[str]] = []
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        file = root / "questions.jsonl"
        rows = labels(benchmark, pieces)
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        write(root / "labelled", benchmark.documents)
        while counts.total() < arguments.edits:
            documents, truth = version(benchmark, pieces, rng)
            write(root / f"edited-{len(truths)}", documents)
            truths.append(truth)
            for true, state in zip(truth, label_states(documents, file), strict=True):
                counts[f"{true}: {state.state}"] += 1
                if state.state != true and arguments.edits < 500:
                    print(true, state)
        result: dict[str, Any] = {"excerpts": len(pieces), "edits": counts.total(), **rights(counts)}
        result["states"] = dict(sorted(counts.items()))
        result["deployments"] = deployments(benchmark)
        if arguments.anchor:
            listed = root / "rows.json"
            listed.write_text(json.dumps(rows))
            result["anchor_eval"] = by_anchor(arguments.anchor, root, listed, truths, benchmark)
    print(json.dumps(result, indent=1))
    if arguments.edits >= 1000:
        DATA.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def rights(counts: Counter[str]) -> dict[str, int]:
    """How many states are right, and how many labels that nobody need look at are told from the others."""
    pairs = [(*name.split(": "), count) for name, count in counts.items()]
    return {
        "right": sum(count for true, said, count in pairs if true == said),
        "right_whether_it_holds": sum(count for true, said, count in pairs if (true in HOLDS) == (said in HOLDS)),
    }


if __name__ == "__main__":
    main()
