"""Where words end in scripts that put no spaces between them: by ICU's dictionaries, where they are installed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# Thai, Lao, Burmese, Khmer, Japanese and Chinese. Beyond U+FFFF the library's places are not those of Python's text.
_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua9e0-\ua9ff\uaa60-\uaa7f]+"
)
_LONGEST = 40  # characters of a word


def word_ends(text: str, start: int, end: int, last: int) -> list[int]:
    """Where words of scripts without spaces end in ``text[start:end]``, before its end; a word begins at `start`, and
    the text that may be looked at ends at `last`. None without the extra ``words``. Linear time.
    """
    breaker = _breaker()
    ends: list[int] = []
    if breaker is None:
        return ends
    for run in _RUN.finditer(text, start, min(last, end + _LONGEST)):
        begin = run.start()
        ends += [begin + stop for _, stop in breaker(run[0], "").segments() if begin + stop < end]
    return ends


@cache
def _breaker() -> Any:
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        return None
    return WordBreaker
