"""`find_quote`: a document's words in another text of the same document, such as an app's own loader gives."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chunkcore.locating.alignment import Aligner
from chunkcore.locating.text_search import fold
from chunkcore.text import Document, Span

_TAG = re.compile(r"<[/!]?[A-Za-z][^<>]*>")
_LEAST = 0.9  # of a resemblance: most words have to be the same


@dataclass(frozen=True, slots=True)
class Quote:
    """Where words stand in a text; `certainty` is 1 where all their letters and digits do."""

    span: Span
    certainty: float = 1.0


def find_quote(text: str, words: str) -> Quote | None:
    """The first place of the words in the text, by letters and digits, else by resemblance; None if there is none.

    >>> find_quote("Valves. Never open the lid.", "never <em>open</em>  the lid").span
    Span(start=8, end=26)
    """
    form = fold(text)
    aligner = None
    for written in (words, _TAG.sub(" ", words)):
        sought = fold(written).text
        if not sought:
            continue
        start = form.text.find(sought)
        if start >= 0:
            return Quote(form.span(start, start + len(sought)))
        aligner = aligner or Aligner([Document("text", text)], similarity=_LEAST)
        piece = aligner.locate(written)
        if piece.match == "fuzzy":
            return Quote(piece.spans[0], piece.certainty)
    return None
