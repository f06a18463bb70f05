"""Places: where retrieved text stands."""

from __future__ import annotations

from chunkcore import Document, Span
from chunkcore.locating.alignment import Aligner
from chunkcore.locating.text_search import fold
from chunkcore.run import Retrieved
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq

from tests.fuzzing.targets import target
from tests.fuzzing.texts import recipes, text_of, texts

# What happens to a passage between an index and an answer.
_CHANGES = {
    "nothing": lambda passage: passage,
    "white space": lambda passage: " \n".join(passage.split()),
    "no white space at its ends": str.strip,
    "case": str.upper,
    "markup": lambda passage: f"**{passage}**",
    "a title": lambda passage: f"Chapter 3 > At sea\n{passage}",
    "a cut": lambda passage: passage[: len(passage) * 2 // 3] + "...",
    "a typing error": lambda passage: passage[: len(passage) // 2] + "x" + passage[len(passage) // 2 + 1 :],
    "swapped letters": lambda passage: passage[:3] + passage[4:5] + passage[3:4] + passage[5:],
    "signs lost": lambda passage: passage.encode("utf-8", "replace").decode("ascii", "replace"),
}
_place = st.integers(0, 1 << 12)


_SAID = {"change": st.sampled_from(sorted(_CHANGES)), "told": st.none() | st.tuples(_place, _place)}


@target(share=3, texts=3, guided=True, text=texts(), other=recipes(30), ends=st.tuples(_place, _place), **_SAID)
def changed_text_is_found_where_it_stands_or_not_at_all(
    text: str, other: bytes, ends: tuple[int, int], change: str, told: tuple[int, int] | None
) -> None:
    """Verbatim text is always found; what is found holds what was sought; offsets that are wrong are not believed."""
    start, end = sorted(each % (len(text) + 1) for each in ends)
    sought = _CHANGES[change](text[start:end])
    texts_of = {"a": text, "b": text_of(other)}
    aligner = Aligner([Document(name, each) for name, each in texts_of.items()])
    spans = [Span(*told)] if told and told[0] < told[1] else []
    found = aligner.locate(sought, document_id="a", spans=spans)
    _check_place(found, texts_of, sought)
    if change in ("nothing", "white space", "no white space at its ends") and sought.strip():
        assert found.document_id == "a"
        held = "".join(span.slice(text) for span in found.spans)
        assert "".join(held.split()) == "".join(sought.split()) or found.match in ("spans", "order")


def _check_place(found: Retrieved, texts_of: dict[str, str], sought: str) -> None:
    assert 0 <= found.certainty <= 1
    assert found.text == sought
    assert bool(found.spans) == (found.match != "unlocated") == (found.certainty > 0)
    if not found.spans:
        return
    source = texts_of[found.document_id]
    assert all(span.end <= len(source) for span in found.spans)
    held = "".join(span.slice(source) for span in found.spans)
    if found.match == "exact":
        assert held == sought
    elif found.match == "whitespace":
        assert "".join(held.split()) == "".join(sought.split())
    elif found.match == "folded":
        assert fold(held).text == fold(sought).text
    elif found.match in ("fuzzy", "part"):
        letters = fold(held).text
        assert LCSseq.similarity(letters, fold(sought).text) >= 0.75 * len(letters)


@target(share=1, cases=st.lists(texts(40).filter(bool), min_size=1, max_size=6))
def pieces_in_order_are_each_found(cases: list[str]) -> None:
    """The pieces of a document, one after another, all of them, the repeated ones too."""
    document = Document("a", "".join(cases))
    found = Aligner([document]).locate_in_order(cases, document_id="a")
    assert [each.text for each in found] == cases
    for piece, each in zip(cases, found, strict=True):
        assert each.spans[0].slice(document.text) == piece
