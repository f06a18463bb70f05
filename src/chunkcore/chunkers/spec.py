"""Strategies as strings, ``name:option=value,option=value``, and files of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from chunkcore.chunkers.base import Chunker, build_chunker, plain_option
from chunkcore.errors import OptionError

__all__ = ["format_chunker", "format_spec", "label", "load_chunkers", "parse_chunker", "split_spec"]

# A value that stands for itself: no separator of this syntax, no quote, no white space at its ends.
_BARE = re.compile(r"[^\s,\"'\[\]{}=]([^,\"'\[\]{}]*[^\s,\"'\[\]{}])?")


def parse_chunker(spec: str) -> Chunker:
    r"""The chunker that a string describes.

    A value is JSON where it can be read as such (numbers, true, false, null, lists, quoted strings), else the
    string that stands there. Commas inside brackets and double quotes belong to the value.

    Raises:
        OptionError: no such strategy or option, an option given twice, or a value that it cannot have.

    >>> parse_chunker('recursive:size=50,keep=end,separators=["\\n\\n",", "],counter=words').separators
    ('\n\n', ', ')
    """
    return build_chunker(*split_spec(spec))


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """The name and the options that a string states, as `parse_chunker` reads it; whether there are such is not asked.

    Raises:
        OptionError: no such syntax, or an option given twice.

    >>> split_spec("recursive:size=50,keep=end")
    ('recursive', {'size': 50, 'keep': 'end'})
    """
    if not isinstance(spec, str):
        raise OptionError(f"a strategy is given as name:option=value,...; got {spec!r}")
    name, _, rest = spec.partition(":")
    options: dict[str, Any] = {}
    for part in split_parts(rest, spec, "strategy"):
        option, equals, value = part.partition("=")
        option = option.strip()
        if not equals or not option:
            raise OptionError(f"expected option=value, got {part.strip()!r} in the strategy {spec!r}")
        if option in options:
            raise OptionError(f"the option {option} is given twice in the strategy {spec!r}; keep one")
        options[option] = read_value(value.strip(), option)
    return name.strip(), options


def load_chunkers(path: Path | str) -> list[Chunker]:
    """The strategies of a YAML file, in its order.

    The file is one entry or a list of entries. An entry is a string as `parse_chunker` reads them, or a mapping
    with the key ``strategy`` and the options' names. YAML's anchors and merge keys can share options.

        - recursive:size=200
        - strategy: cluster_semantic
          max_size: 200
          counter: o200k_base

    Only plain values are read (PyYAML's safe loader): no tag in a file can run anything. No model is loaded.

    Raises:
        OptionError: not YAML, an entry that is none, no such strategy or option, or a value that it cannot have;
            with the line.
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    from chunkcore.chunkers.configuration import read_specs

    return [parse_chunker(spec) for spec in read_specs(path)]


def format_chunker(chunker: Chunker) -> str:
    """A string with every option, from which `parse_chunker` builds an equal chunker.

    Raises:
        OptionError: an option holds an object that has no name to be built from again.

    >>> format_chunker(parse_chunker("fixed_token:size=50"))
    'fixed_token:counter=cl100k_base,size=50,overlap=0,minimum=0'
    """
    plain = chunker.to_dict()
    return format_spec(plain.pop("strategy"), plain)


def label(chunker: Chunker) -> str:
    """The shortest such string: only the options that differ from their defaults.

    >>> label(parse_chunker("recursive:overlap=20,size=200"))
    'recursive:overlap=20'
    """
    plain = chunker.to_dict()
    told = {name: plain[name] for name in chunker.option_names() if plain[name] != _default(chunker, name)}
    over = {name: label(value) for name in told if isinstance(value := getattr(chunker, name), Chunker)}
    return format_spec(chunker.name, told | over)


def _default(chunker: Chunker, option: str) -> Any:
    """An option's default, as `Chunker.to_dict` gives options."""
    field = next(field for field in fields(chunker) if field.name == option)
    value = field.default if field.default_factory is MISSING else field.default_factory()
    return plain_option(option, value)


def format_spec(name: str, options: Mapping[str, Any]) -> str:
    r"""A strategy's name and options, which are JSON values, as one string.

    >>> format_spec("recursive", {"size": 200, "separators": ["\n", " "], "counter": "words"})
    'recursive:size=200,separators=["\\n", " "],counter=words'
    """
    settings = ",".join(f"{option}={_write(value)}" for option, value in options.items())
    return f"{name}:{settings}" if settings else name


def split_parts(text: str, spec: str, kind: str) -> list[str]:
    """Cut at the commas that stand outside brackets and double quotes.

    Args:
        text: what is cut.
        spec: the whole string, as errors show it.
        kind: what it describes, as errors name it.

    Raises:
        OptionError: a quote or a bracket is not closed.
    """
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
        raise OptionError(f"a {'quote' if quoted else 'bracket'} is not closed in the {kind} {spec!r}")
    parts.append(text[start:])
    return parts if text.strip() else []


def read_value(value: str, option: str) -> Any:
    """A value as JSON where it can be read as such, else the string that stands there.

    Raises:
        OptionError: it begins like a string, a list or an object of JSON and is none.
    """
    try:
        return json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if value[:1] in ('"', "[", "{"):
            raise OptionError(f"the option {option} is no JSON: {value!r} ({error}); correct its quotes") from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number here")  # NaN, Infinity: they stay strings, and no option takes them


def _write(value: Any) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and isinstance(_read_quietly(value), str):
        return value
    return json.dumps(value)


def _read_quietly(value: str) -> Any:
    try:
        return read_value(value, "")
    except OptionError:
        return None
