r"""Papers whose section headings stand on lines of their own, as texts without headings whose sections are known.

    python -m integration_tests.benchmarks.sections_of_papers \
        ../shared/data/evidence_inference/documents.jsonl papers.jsonl

Writes ``{"id", "text", "boundaries"}`` a line: what `chunkcore train-segmenter` reads. Headings are those of Evidence
Inference's articles, such as ``BODY.METHODS:``; the title is left out.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_HEADING = re.compile(r"^((?:TITLE|ABSTRACT|BODY)\b[^\n]{0,200}|[A-Z][^a-z\n]{0,200}):[ ]*\n", re.MULTILINE)


def sections(text: str) -> list[str]:
    """The bodies of all sections but the title."""
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    bodies = [text[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)]
    return [body for heading, body in zip(headings, bodies, strict=True) if body and heading[1] != "TITLE"]


def labelled(row: dict) -> dict:
    """A paper's text without its headings, and where its sections begin."""
    bodies = sections(row["text"])
    starts, place = [], 0
    for body in bodies:
        starts.append(place)
        place += len(body) + 2
    return {"id": row["id"], "text": "\n\n".join(bodies), "boundaries": starts[1:]}


def main(source: str, target: str) -> None:
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    rows = [labelled(json.loads(line)) for line in lines]
    Path(target).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} papers, {sum(len(row['boundaries']) for row in rows)} boundaries")


if __name__ == "__main__":
    main(*sys.argv[1:])
