"""Strings such as ``recursive:size=200,overlap=20``: a name with options, read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any

from chunkcore.errors import OptionError, echo
from chunkcore.options import default_of

# Written without quotes: no separator, quote, or white space at the ends.
_BARE = re.compile(r"[^\s,\"'\[\]{}=]([^,\"'\[\]{}]*[^\s,\"'\[\]{}])?")


def split_spec(spec: str, noun: str = "strategy") -> tuple[str, dict[str, Any]]:
    """The name and options in ``name:option=value,...``; neither is looked up. Raises `OptionError` if malformed.

    A value is JSON if it parses as JSON, else a plain string. Commas inside brackets and double quotes belong to it.

    >>> split_spec("recursive:size=50,keep=end")
    ('recursive', {'size': 50, 'keep': 'end'})
    """
    if not isinstance(spec, str):
        raise OptionError(f"a {noun} is given as name:option=value,...; got {echo(spec)}")
    name, _, rest = spec.partition(":")
    return name.strip(), split_options(rest, spec, noun)


def split_options(text: str, spec: str, noun: str, unnamed: list[str] | None = None) -> dict[str, Any]:
    """The options in ``option=value,option=value``.

    `spec` and `noun` appear in errors. `unnamed` collects parts without "="; None makes them errors.
    """
    options: dict[str, Any] = {}
    for part in map(str.strip, split_parts(text, spec, noun)):
        option, equals, value = part.partition("=")
        option = option.strip()
        if unnamed is not None and part.startswith('"'):
            unnamed.append(str(read_value(part, noun)))
        elif unnamed is not None and not equals:
            unnamed.append(part)
        elif not equals or not option:
            raise OptionError(f"expected option=value, got {echo(part)} in the {noun} {echo(spec)}")
        elif option in options:
            raise OptionError(f"the option {option} is given twice in the {noun} {echo(spec)}; keep one")
        else:
            options[option] = read_value(value.strip(), option)
    return options


def plain_options(thing: Any, *, changed: bool = False) -> dict[str, Any]:
    """The options of a dataclass instance as JSON values; with `changed`, only non-default ones."""
    options = {}
    for field in fields(thing):
        value, default = getattr(thing, field.name), default_of(field)
        plain = plain_option(field.name, value)
        if changed:
            if default is not MISSING and plain == plain_option(field.name, default):
                continue
            plain = getattr(value, "label", plain)  # a strategy over another one
        options[field.name] = plain
    return options


def plain_option(option: str, value: Any) -> Any:
    """An option's value as JSON. A strategy, counter or model becomes its string."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain_option(option, item) for item in value]
    for attribute in ("spec", "name"):
        if isinstance(name := getattr(value, attribute, None), str):
            return name
    raise OptionError(
        f"the option {option} holds a {type(value).__name__}, which has no name to be built from again; "
        "give it a `name` or pass a name instead of the object"
    )


def format_spec(name: str, options: Mapping[str, Any]) -> str:
    r"""The inverse of `split_spec`, for JSON values.

    >>> format_spec("recursive", {"size": 200, "separators": ["\n", " "], "counter": "words"})
    'recursive:size=200,separators=["\\n", " "],counter=words'
    """
    settings = ",".join(f"{option}={_write(value)}" for option, value in options.items())
    return f"{name}:{settings}" if settings else name


def split_parts(text: str, spec: str, kind: str) -> list[str]:
    """Split `text` at commas outside brackets and double quotes. Raises `OptionError` if one is not closed."""
    parts, start, depth, quoted, place = [], 0, 0, False, 0
    while place < len(text):
        character = text[place]
        if quoted:
            place += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
        place += 1
    if quoted or depth:
        raise OptionError(f"a {'quote' if quoted else 'bracket'} is not closed in the {kind} {echo(spec)}")
    parts.append(text[start:])
    return parts if text.strip() else []


def read_value(value: str, option: str) -> Any:
    """The value as JSON, else a plain string. Raises `OptionError` for malformed JSON after a quote or bracket."""
    try:
        return json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if value[:1] in ('"', "[", "{"):
            raise OptionError(f"the option {option} is no JSON: {echo(value)} ({error}); correct its quotes") from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number here")  # NaN, Infinity: no option accepts them


def _write(value: Any) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        with suppress(OptionError):
            if isinstance(read_value(value, ""), str):
                return value
    return json.dumps(value)
