"""Hypothesis strategies: the texts that break chunkers, and spans of them."""

from __future__ import annotations

from functools import lru_cache

from chunkcore.text import Document, Span
from hypothesis import strategies as st

# Special tokens of well-known tokenizers, which in a document are only text.
LOOK_ALIKES = ("<|endoftext|>", "<|fim_prefix|>", "<|im_start|>", "[CLS]", "[SEP]", "<s>", "</s>")

_WRITTEN = """the chunk Chunk chunks don't DON'T it's we'll a of retrieval naïve café HTTPServer x_y 3 42 1234567 3.14
e.g. http://a.b/c?d=e ... --- == ## | `code` (see [1]) ſtart 'ſ don'ſ слово λόγος مرحبا שלום नमस्ते ภาษาไทย 한국어"""
WORDS = tuple(_WRITTEN.split())
UNSPACED = ("これは日本語の文章です。", "中文没有空格，但是有标点。", "ภาษาไทยไม่มีช่องว่าง", "漢字", "ｶﾀｶﾅ", "𠮷野家", "ﷺ")
GRAPHEMES = (
    *("👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇯🇵", "👍🏽", "😀", "e\u0301", "a\u0323\u0302\u0306", "가", "\u1100\u1161\u11a8"),
    *("각", "क्षि", "1️⃣"),
)
# U+0085, U+001C and U+2028 are line ends to some programs only; U+200B is no white space to Python.
RARE_GAPS = ("\u00a0", "\u3000", "\u2028", "\u2029", "\x85", "\x1c", "\x0c", "\u200b", "\ufeff")
GAPS = (" ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", "\t", " \n", "\n ")
STOPS = (". ", ".", "? ", "! ", "!?", "。", "！", ": ", "; ", ", ", ".\n", ".\n\n", "…", '."', "'s", "'")
# An unpaired high and low surrogate, and a pair written as two code points.
POISON = (
    *LOOK_ALIKES,
    *("\ud800", "\udc00", "\ud83d\ude00", "\udfff\ud800", "\x00", "\x00\x00", "\x7f", "\u202e", "\uffff"),
    "\U0010ffff",
)

_words, _unspaced, _graphemes = (st.sampled_from(WORDS), st.sampled_from(UNSPACED), st.sampled_from(GRAPHEMES))
_gaps = st.sampled_from(RARE_GAPS) | st.sampled_from(GAPS)
_stops, _poison = st.sampled_from(STOPS), st.sampled_from(POISON)
_anything = st.text(max_size=8) | st.text(
    st.characters(categories=["Cs", "Mn", "Zs", "Cc", "No", "Lm", "Lt"]), max_size=4
)
_parts = st.one_of(_words, _words, st.just(" "), _gaps, _gaps, _stops, _unspaced, _graphemes, _poison, _anything)
_plain = st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "while", "rain", "fell", "over", "stone", "roofs"])
_sentences = st.lists(_plain, min_size=1, max_size=9).map(lambda words: " ".join(words).capitalize() + ".")
_breaks = st.sampled_from([" ", " ", "\n", "\n\n"])


@lru_cache
def _lists(elements: st.SearchStrategy[str], least: int, most: int) -> st.SearchStrategy[list[str]]:
    """Hypothesis checks a strategy once."""
    return st.lists(elements, min_size=least, max_size=most)


@st.composite
def hard_text(draw: st.DrawFn, max_parts: int = 60) -> str:
    """Words, scripts without spaces, emoji families, CRLF, surrogates, look-alikes, NULs, repeated passages.

    Repeats matter: where a passage occurs twice, only exact offsets tell the two places apart.
    """
    parts = draw(_lists(_parts, 0, max_parts))
    if parts and draw(st.booleans()):
        start = draw(st.integers(0, len(parts) - 1))
        passage = parts[start : start + draw(st.integers(1, 12))]
        for _ in range(draw(st.integers(1, 4))):
            place = draw(st.integers(0, len(parts)))
            parts[place:place] = passage
    return "".join(parts)


@st.composite
def prose(draw: st.DrawFn, max_sentences: int = 12) -> str:
    """Plain paragraphs of short sentences, some of them repeated."""
    sentences = draw(_lists(_sentences, 1, max_sentences))
    gaps = draw(_lists(_breaks, len(sentences), len(sentences)))
    return "".join(part for pair in zip(sentences, gaps, strict=True) for part in pair)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A document of hard text."""
    name = draw(st.sampled_from(["a", "faq.md", "Ünïcode/文書.txt", "x y"]))
    return Document(name, draw(hard_text()))


@st.composite
def text_with_spans(draw: st.DrawFn, max_spans: int = 6) -> tuple[str, list[Span]]:
    """A hard text that is not empty, and spans inside it, in any order, which may overlap or repeat."""
    text = draw(hard_text().filter(bool))
    found = []
    for _ in range(draw(st.integers(0, max_spans))):
        start = draw(st.integers(0, len(text) - 1))
        found.append(Span(start, draw(st.integers(start + 1, len(text)))))
    return text, found


@st.composite
def text_with_pieces(draw: st.DrawFn) -> tuple[str, list[int], list[int]]:
    """A hard text and the starts and ends of pieces of it: any half-open ranges, empty ones included."""
    text = draw(hard_text())
    place = st.integers(0, len(text))
    pairs = draw(st.lists(st.tuples(place, place).map(sorted), max_size=30))
    return text, [start for start, _ in pairs], [end for _, end in pairs]
