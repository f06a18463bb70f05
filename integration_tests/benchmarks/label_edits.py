"""A thousand seeded edits of labelled evidence, and what `label_states` says: docs/evidence/data/label_edits.json.

    python -m integration_tests.benchmarks.label_edits [--edits 1000]

In each version of the collection lochmere, every excerpt is left, moved, split, reworded or deleted. What an edit makes
of an excerpt is known: one that is left has moved where text before it has changed.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from pathlib import Path

from chunkcore import Benchmark, Document, load_dataset
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.evaluation.benchmarks import Evidence
from chunkcore.questions.labels import label_states

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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--edits", type=int, default=1000)
    arguments = parser.parse_args()
    benchmark = load_dataset("lochmere")
    pieces = excerpts(benchmark)
    counts: Counter[str] = Counter()
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "questions.jsonl")
        rows = [
            {
                "id": str(number),
                "question": "?",
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
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        while counts.total() < arguments.edits:
            documents, truth = version(benchmark, pieces, rng)
            for true, state in zip(truth, label_states(documents, file), strict=True):
                counts[f"{true}: {state.state}"] += 1
                if state.state != true and arguments.edits < 500:
                    print(true, state)
    right = sum(count for name, count in counts.items() if name.split(": ")[0] == name.split(": ")[1])
    result = {"excerpts": len(pieces), "edits": counts.total(), "right": right, "states": dict(sorted(counts.items()))}
    print(json.dumps(result, indent=1))
    if arguments.edits >= 1000:
        DATA.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
