r"""Wikipedia articles of a dump as texts without headings whose sections are known.

    pip install mwparserfromhell
    pip download gensim==4.3.3 --no-deps --no-binary :all:
    tar xzf gensim-4.3.3.tar.gz
    python -m integration_tests.benchmarks.sections_of_wikipedia \
        gensim-4.3.3/gensim/test/test_data/enwiki-latest-pages-articles1*.bz2 enwiki.jsonl

gensim's tests hold 106 whole English articles (CC BY-SA 3.0), 89 of them with three sections of prose or more. Sections
are those of the second level. Lists, tables, references and lines that are no sentence are left out.
"""

from __future__ import annotations

import bz2
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_NO_PROSE = re.compile(
    r"references?|notes?|footnotes?|external links?|see also|further reading|.*bibliography.*|sources?|citations?|"
    r"gallery|notes and references|works cited|discography|filmography|selected works|works|publications|other uses",
    re.IGNORECASE,
)
_FILE = re.compile(r"\s*(file|image|category|[a-z-]{2,12}):", re.IGNORECASE)
_TAGS = ("ref", "table", "gallery", "math", "li", "dd", "dt")


def pages(path: Path) -> Iterator[tuple[str, str]]:
    """Titles and wikitexts of a dump's articles."""
    with bz2.open(path) as file:
        for _, page in ElementTree.iterparse(file):
            if page.tag.endswith("}page"):
                held = {element.tag.rpartition("}")[2]: element.text or "" for element in page.iter()}
                page.clear()
                if ":" not in held["title"] and not re.match(r"\s*#redirect", held["text"], re.IGNORECASE):
                    yield held["title"], held["text"]


def bodies(wikitext: str) -> list[str]:
    """The prose of the introduction and of each section, a string each."""
    import mwparserfromhell

    prose = []
    for section in mwparserfromhell.parse(wikitext).get_sections(levels=[2], include_lead=True):
        headings = section.filter_headings()
        if str(section).lstrip().startswith("==") and _NO_PROSE.fullmatch(headings[0].title.strip_code().strip()):
            continue
        for dropped in (
            section.filter_tags(matches=lambda tag: str(tag.tag) in _TAGS),
            headings,
            section.filter_wikilinks(matches=lambda link: _FILE.match(str(link.title))),
        ):
            _remove(section, dropped)
        lines = [" ".join(line.split()) for line in section.strip_code().split("\n")]
        body = " ".join(line for line in lines if len(line) > 60 and line[-1] in '.!?"”)' and "|" not in line)
        if len(body) > 150:
            prose.append(body)
    return prose


def _remove(section: Any, nodes: list[Any]) -> None:
    for node in nodes:
        try:
            section.remove(node)
        except ValueError:  # it was inside one that is gone
            continue


def main(source: str, target: str) -> None:
    rows = []
    for title, wikitext in pages(Path(source)):
        prose = bodies(wikitext)
        if len(prose) >= 3:
            ends = [sum(len(element) + 1 for element in prose[: place + 1]) for place in range(len(prose) - 1)]
            rows.append({"id": f"enwiki-{title}", "text": " ".join(prose), "boundaries": ends})
    Path(target).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} articles, {sum(len(row['boundaries']) for row in rows)} boundaries")


if __name__ == "__main__":
    main(*sys.argv[1:])
