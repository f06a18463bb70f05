"""Text in any encoding: a mark, a declaration, or the alphabet that the letters fit."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from chunkcore.boundaries import pairs
from chunkcore.files import UnreadError, decoded

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_DECLARED = re.compile(rb"""(?i)(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""")
# Python's codecs that are charsets of texts: not punycode, idna, unicode_escape, rot13, base64 and their like.
_CHARSETS = re.compile(
    r"ascii|utf-8(-sig)?|utf-(16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|gb2312|gbk|gb18030|big5(hkscs)?|johab|hz"
    r"|shift_jis(x0213|_2004)?|euc_\w+|iso2022_\w+|mac-\w+|tis-620|ptcp154|kz1048|hp-roman8"
)
# Labels that Python's codecs do not have.
_LABELS = pairs(
    "cn-big5=big5 gb_2312-80=gbk koi8-ru=koi8-u ks_c_5601-1989=cp949 sjis=shift_jis unicode-1-1-utf-8=utf-8",
    "utf8mb4=utf-8 windows-31j=cp932",
)
# Python's codec for the label of another, by the WHATWG's encoding standard, which browsers and mail programs follow.
_READ_AS = pairs(
    "ascii=cp1252 iso8859-1=cp1252 iso8859-9=cp1254 iso8859-11=cp874 tis-620=cp874 gb2312=gb18030 gbk=gb18030",
    "euc_kr=cp949 shift_jis=cp932 big5=big5hkscs utf-16=utf-16-le",
)
# What begins Japanese or Korean in seven bits, which is ASCII otherwise.
_ESCAPES = (
    (b"\x1b$B", "iso2022_jp_ext"),
    (b"\x1b$@", "iso2022_jp_ext"),
    (b"\x1b$)C", "iso2022_kr"),
)
# Quotation marks, dashes and other signs, the same in all of Windows's charsets of Europe; in older ones, letters.
_WINDOWS_SIGNS = re.compile(rb"[\x00-\x7f\x80\x85\x91-\x97\xa0\xa7\xa9\xab\xae\xb0\xb1\xb7\xbb]*")
_SIGN_IN_WORD = re.compile(rb"(?:[A-Za-z][\x85\x91\x93-\x95]|\x80)(?=[a-z])")
_LOOKED_AT = 200_000  # bytes from which an encoding is guessed
_NOT_ASCII = re.compile("[^\x00-\x7f]")


def charset(label: str | None) -> str | None:
    """Python's codec for a charset that a file declares; None for an unknown one and for codecs that are no charsets.

    >>> charset("Latin-1"), charset("gb2312"), charset("x-sjis"), charset("punycode"), charset("no-such")
    ('cp1252', 'gb18030', 'cp932', None, None)
    """
    name = str(label or "").strip().lower()[:40].removeprefix("x-")
    name = re.sub("^(windows|win|dos)-(?=[0-9])", "cp", _LABELS.get(name, name))
    name = re.sub("^iso[-_]?8859[-_]?([0-9]+)(-[ei])?$", r"iso8859-\1", name)
    with suppress(LookupError, ValueError):
        codec = codecs.lookup(name).name
        if _CHARSETS.fullmatch(codec):
            return _READ_AS.get(codec, codec)
    return None


def decode_text(data: bytes, path: Path | str) -> tuple[str, tuple[str, ...]]:
    """The text, and a note if it is not UTF-8.

    A byte order mark, UTF-16 without one, a charset that the text declares, or the alphabet that its letters fit tell
    the encoding; else charset-normalizer. Damaged UTF-8 is no other encoding. A note names the other encodings that a
    guess would allow.

    Raises `NoTextError`: binary data; or `UnreadError`: the encoding cannot be told.

    >>> decode_text("Crème brûlée".encode("cp1252"), "menu.txt")
    ('Crème brûlée', ('is no UTF-8, and was read as cp1252',))
    """
    others = ""
    encoding = _wide(data[:_LOOKED_AT])
    if data.isascii():
        encoding = next((codec for escape, codec in _ESCAPES if escape in data), encoding)
    if encoding is None:
        try:
            return decoded(data, path), ()
        except UnreadError as error:  # of no UTF-8
            encoding, rivals = _encoding_of(data)
            if rivals:
                others = f"; it may be {' or '.join(rivals[:3])}"
            if encoding is None:
                if not find_spec("charset_normalizer"):
                    others = others or '; pip install "chunkadapters[files]" tells encodings'
                raise UnreadError(path, f"{error.reason}{others}") from None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadError(
            path, f"is not UTF-8 text, and damaged as {encoding} (byte {error.start}): convert it"
        ) from None
    guess = others.replace("; ", ", which is a guess; ", 1)
    return text, (f"is no UTF-8, and was read as {encoding}{guess}",)


def is_utf8(data: bytes) -> bool:
    """Whether a text in UTF-8 may begin with these bytes, the last of which may be half a character."""
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(data)
        return True
    return False


def _encoding_of(data: bytes) -> tuple[str | None, tuple[str, ...]]:
    """The encoding of bytes that are no UTF-8, and the others that would fit."""
    text = data.decode("utf-8", "replace")
    if 2 * text.count("\ufffd") < len(_NOT_ASCII.findall(text)):  # damaged UTF-8
        return None, ()
    with suppress(UnicodeDecodeError):
        data.decode("utf-8", "surrogatepass")
        return None, ()
    match = _DECLARED.search(data[:2048])
    declared = charset(match[1].decode("ascii")) if match else None
    if declared:
        with suppress(UnicodeDecodeError):
            data.decode(declared)
            return declared, ()
    if _WINDOWS_SIGNS.fullmatch(data) and not _SIGN_IN_WORD.search(data):
        return "cp1252", ()
    sample = data[:_LOOKED_AT]
    fitting = (
        _by_letters(sample, _LATIN)
        or tuple(codec for codec in _WRITINGS if _is_written(sample, codec, codec))
        or _by_letters(sample, _OTHER)
    )
    if fitting:
        return fitting[0], fitting[1:]
    return _guessed(sample)


# ---- UTF-16, Chinese, Japanese and Korean: by the blocks of their characters

_HAN = "\u4e00-\u9fff"
_KANA = "\u3041-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_SIGNS = "\t\n\r\x20-\x7e\u00a0-\u00bf\u2010-\u2026\u20ac\u3000-\u303f\uff01-\uff5e\ufeff"
_WRITINGS = {  # the characters of a text, and those of which it has a fifth
    "euc_kr": (f"[{_HANGUL}{_SIGNS}]*", f"[{_HANGUL}]"),
    "cp932": (f"[{_HAN}{_KANA}{_SIGNS}\u2460-\u2473\u9ad9]*", f"[{_KANA}]"),
    "euc_jp": (f"[{_HAN}{_KANA}{_SIGNS}]*", f"[{_KANA}]"),
    "gb18030": (f"[{_HAN}{_SIGNS}]*", f"[{_HAN}]"),
    "big5hkscs": (f"[{_HAN}{_SIGNS}]*", f"[{_HAN}]"),
}
_SHARE = 0.2
_IN_WORD = re.compile("[a-z][^\x00-\x7f](?=[a-z])")  # as accents stand in Latin words


def _is_written(data: bytes, codec: str, writing: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    allowed, needed = _WRITINGS[writing]
    foreign = len(_NOT_ASCII.findall(text))
    in_words = len(_IN_WORD.findall(text))
    share = len(re.findall(needed, text)) - in_words
    return re.fullmatch(allowed, text) is not None and share > _SHARE * foreign > 3 * in_words


def _wide(data: bytes) -> str | None:
    """The encoding that a byte order mark tells; or UTF-16 without a mark, of a script that needs few high bytes, or
    Chinese, Japanese or Korean.
    """
    marked = next((codec for mark, codec in _BOMS if data.startswith(mark)), None)
    is_narrow = b"\x00" not in data and is_utf8(data)
    if marked or is_narrow or len(data) < 8:
        return marked
    for codec, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        high, low = data[first::2], data[1 - first :: 2]
        text = data.decode(codec, "replace")
        shown = sum(letter.isprintable() or letter.isspace() for letter in text)
        has_few = len(set(high)) <= 4 < len(set(low)) and 0 in high and 0 not in low
        if has_few and shown > 0.95 * len(text) and "\ufffd" not in text[:-1]:
            return codec
        if len(data) % 2 or not _EASTERN_STOP.search(text):
            continue
        if any(_is_written(data, codec, writing) for writing in ("gb18030", "euc_kr", "cp932")):
            return codec
    return None


_EASTERN_STOP = re.compile("[\n\x20\u3000-\u3002\uff01-\uff1f]")


# ---- Encodings of one byte a letter: by the alphabets of languages

# An alphabet, and its encodings.
_LATIN = """
    àâäáãåæçèéêëìíîïñòóôöõøœùúûüßÿ cp1252 iso8859-15 mac-roman cp850
    áéíóúýþæöøð cp1252
    çğıöşüâîû\u0307 cp1254
    áčďéěíňóřšťúůýž cp1250 iso8859-2
    áäčďéíĺľňóôŕšťúýž cp1250 iso8859-2
    ąćęłńóśźż cp1250 iso8859-2
    áéíóöőúüű cp1250 iso8859-2
    ăâîşţșț cp1250 iso8859-2 iso8859-16
    čćđšž cp1250 iso8859-2
    ąčęėįšųūž cp1257 iso8859-13
    āčēģīķļņšūž cp1257 iso8859-13
    äõöüšž cp1257 iso8859-13"""
_THAI = "".join(map(chr, range(0x0E01, 0x0E5C)))
# With the eight commonest letters first.
_OTHER = f"""
    оеаинтсрбвгджзйклмпуфхцчшщъыьэюяё cp1251 koi8-r cp866 iso8859-5 mac-cyrillic
    оаинівтебгґдєжзїйклмпрсуфхцчшщьюя cp1251 koi8-u iso8859-5
    аоиенрстбвгдђжзјклљмњпћуфхцчџш cp1251 iso8859-5
    יוהלארמתבגדזחטכךםנןסעפףצץקש cp1255 iso8859-8
    αοιετσνηβγδζθκλμξπρςυφχψωάέήίόύώϊϋΐΰ cp1253 iso8859-7
    اليمنوترءآأؤإئبةثجحخدذزسشصضطظعغفقكىهًٌٍَُِّْ cp1256 iso8859-6
    านรกอเงม{_THAI} cp874"""
_COMMON = 8
_COMMON_SHARE = 0.4
_MARKS = set("“”„‘’‚«»‹›–—…•·€£§°©®™№ \u00a0\u00ad¡¿´²³½")
# Letters that end a word in Western languages, a sign that begins none, and signs that stand in none, but in "m³s".
_MISPLACED = re.compile(r"[ìòù](?=[a-z])|®(?=\w)|[a-zA-Z]{2}[³¹¿][a-z]")
_WORD = re.compile(r"[^\W\d_]+")
_MIXED = re.compile(r"[a-zA-Z](?=[^\W\d_a-zA-Z])|(?<=[^\W\d_a-zA-Z])[a-zA-Z]")  # of two alphabets


def _by_letters(data: bytes, alphabets: str) -> tuple[str, ...]:
    """The encodings in which the letters are those of one language, the likeliest first; one for each other text."""
    texts = {}  # the encoding by the text
    likely = set()
    for row in alphabets.strip().splitlines():
        alphabet, *names = row.split()
        for name in names:
            with suppress(UnicodeDecodeError):
                text = data.decode(name)
                if text not in texts and _fits(text, alphabet):
                    texts[text] = name
                    if 3 * len(set(alphabet) & set(text.lower())) > 2 * len(alphabet):
                        likely.add(text)
    # Greek in capitals alone is likelier Hebrew, which has no others.
    ranked = sorted(
        texts, key=lambda text: (alphabets is _OTHER and text.isupper(), text not in likely)
    )
    return tuple(texts[text] for text in ranked)


def _fits(text: str, alphabet: str) -> bool:
    foreign = _NOT_ASCII.findall(text.lower())
    letters = [sign for sign in foreign if sign not in _MARKS]
    if not set(letters) <= set(alphabet) or not letters:
        return False
    words = _WORD.findall(text)
    cased = sum(
        word in (word.lower(), word.upper(), word.capitalize(), word.title()) for word in words
    )
    if cased < 0.9 * len(words):
        return False
    if alphabet in _LATIN:
        return 3 * len(letters) <= sum(map(str.isalpha, text)) and not _MISPLACED.search(text)
    common = sum(letter in alphabet[:_COMMON] for letter in letters)
    return common >= _COMMON_SHARE * len(letters) and not _MIXED.search(text)


def _guessed(data: bytes) -> tuple[str | None, tuple[str, ...]]:
    """By charset-normalizer: the encoding, where all that it finds likely give one text."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None, ()
    if len(_NOT_ASCII.findall(data.decode("latin-1"))) <= 3:
        return None, ()
    matches = {str(match): match.encoding for match in from_bytes(data)}
    names = tuple(filter(None, map(charset, matches.values())))
    return (names[0], ()) if len(names) == 1 else (None, names)
