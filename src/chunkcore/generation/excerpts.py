"""From what a model says it copied to spans of the document: verbatim, or but for white space, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from chunkcore.document import Span
from chunkcore.evaluation.text_forms import Form, fold, squeeze
from chunkcore.generation.samples import Sample
from chunkcore.spans import union

__all__ = ["NotVerbatimError", "locate_excerpts"]

_SHOWN = 80


class NotVerbatimError(ValueError):
    """An excerpt that does not stand in the passage, or stands there twice; the reason why a question is rejected."""


def locate_excerpts(sample: Sample, excerpts: Sequence[str]) -> list[Span]:
    r"""Where the excerpts stand in the sample's document, in the document's order; those that overlap are one.

    Each is sought in the passage that the model was shown, and nowhere else: verbatim, then with other white space.
    What is returned are places of the document, so whatever the model wrote becomes no text.

    Raises:
        NotVerbatimError: an excerpt stands nowhere or at several places, or has neither letter nor digit.

    >>> from chunkcore.document import Document
    >>> sample = Sample(Document("fox.txt", "A tale. The quick\n  fox naps."), Span(8, 29), 0)
    >>> locate_excerpts(sample, ["The quick fox"])
    [Span(start=8, end=23)]
    """
    squeezed: list[Form] = []
    found = []
    for excerpt in excerpts:
        place = _verbatim(sample.text, excerpt)
        if place is None:
            squeezed = squeezed or [squeeze(sample.text)]
            place = _but_for_space(squeezed[0], excerpt)
        found.append(Span(sample.span.start + place.start, sample.span.start + place.end))
    return union(found)


def _verbatim(text: str, excerpt: str) -> Span | None:
    if not fold(excerpt).text:
        raise NotVerbatimError(f"the excerpt {_short(excerpt)} has neither a letter nor a digit")
    start = _only_place(text, excerpt, excerpt)
    return None if start < 0 else Span(start, start + len(excerpt))


def _but_for_space(form: Form, excerpt: str) -> Span:
    sought = "".join(excerpt.split())
    start = _only_place(form.text, sought, excerpt)
    if start < 0:
        raise NotVerbatimError(f"the excerpt {_short(excerpt)} does not stand in the passage that was shown")
    return form.span(start, start + len(sought))


def _only_place(text: str, sought: str, excerpt: str) -> int:
    """Where it begins; -1 where it is not there."""
    start = text.find(sought)
    if start >= 0 and text.find(sought, start + 1) >= 0:
        raise NotVerbatimError(f"the excerpt {_short(excerpt)} stands at several places of the passage that was shown")
    return start


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 4]}...{shown[0]}"
