"""How passages read: what a reader of an answer stumbles over, in % of its passages.

    python -m integration_tests.benchmarks.readable --shared ../shared

`passages:lexical` over `sentence:size=50`, answers of 1,000 tokens; of each collection 400,000 characters and 60
questions at most. The shares go to docs/evidence/data/readable.json. A sentence ends at a line's end, or at a closing
mark or bracket; a table is cut where its next row is not in the passage.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from chunkcore import Retrieved, chunk_corpus, get_retriever
from chunkcore.tokens import get_counter
from integration_tests.benchmarks.passages_table import COLLECTIONS, UNITS, benchmark_of

DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "readable.json"
CLOSED = ".!?:;\"'”’)]|。！？"
HEADING = re.compile(r"#{1,6} |\*\*[^*]+\*\*$")
REFERS = re.compile(r"(?:It|This|These|Those|They|He|She)\b")


def faults(passage: Retrieved, text: str) -> dict[str, bool]:
    before, after = text[: passage.spans[0].start], text[passage.spans[-1].end :]
    kept = passage.text.rstrip()
    line = kept.rpartition("\n")[2]
    is_new_line = "\n" in before[len(before.rstrip()) :]
    ends_line = "\n" in after[: len(after) - len(after.lstrip())]
    return {
        "begin inside a sentence": bool(before.strip()) and not is_new_line and before.rstrip()[-1] not in CLOSED,
        "end inside a sentence": bool(after.strip()) and not ends_line and kept[-1] not in CLOSED,
        "end with a bare heading": bool(after.strip() and HEADING.match(line)),
        "under 40 tokens": get_counter("cl100k_base").count(passage.text) < 40,
        "cut a table": line.startswith("|") and after.lstrip("\n").startswith("|"),
        "begin with It, This or They": bool(before.strip() and REFERS.match(passage.text)),
    }


def rows(name: str, shared: Path) -> Iterator[dict[str, bool]]:
    benchmark = benchmark_of(name, shared, 60, 400_000)
    texts = {document.id: document.text for document in benchmark.documents}
    index = get_retriever("passages:lexical").index(chunk_corpus(benchmark.documents, UNITS))
    for query in benchmark.queries:
        for passage in index.retrieve(query.text, max_tokens=1000):
            yield faults(passage, texts[passage.document_id])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    shared = parser.parse_args().shared
    data = {}
    for name in COLLECTIONS:
        found = list(rows(name, shared))
        shares = {key: round(100 * sum(row[key] for row in found) / len(found), 1) for key in found[0]}
        data[name] = {"passages": len(found), **shares}
        print(name, data[name], flush=True)
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
