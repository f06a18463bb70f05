"""Options of frozen dataclasses: their types and ranges, and strings such as ``recursive:size=200``."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import lru_cache, wraps
from inspect import Parameter, Signature, iscoroutinefunction, signature
from numbers import Integral, Real
from operator import ge, le
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import ParamSpec, TypeVar

from chunkcore import guesses
from chunkcore.errors import OptionError, echo, suggestion

_P = ParamSpec("_P")
_R = TypeVar("_R")


def default_of(field: Any) -> Any:
    """The default of a dataclass field, or MISSING."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def shown_default(field: Any) -> str:
    """The default of a dataclass field as Python source; a counter or a model by its name."""
    default = default_of(field)
    if default is MISSING:
        return "(must be given)"
    return repr(getattr(default, "name", default))


def check_option_names(owner: str, options: Iterable[str], names: Iterable[str]) -> None:
    """Raise `OptionError` for unknown options.

    >>> check_option_names("the chunker blank", ["sise"], ["size"])
    Traceback (most recent call last):
    chunkcore.errors.OptionError: the chunker blank has no option 'sise': expected some of size; did you mean 'size'?
    """
    names = list(names)
    unknown = sorted(set(options).difference(names))[:3]
    if not unknown:
        return
    expected = "it has none"
    if names:
        hints = {}
        for guess, meant in guesses.OPTIONS.items():
            there = [option for option in meant.split() if option in names]
            if there:
                hints[guess] = repr(there[0])
        hint = suggestion(unknown, names, hints)
        expected = f"expected some of {', '.join(names)}{hint}"
    listed = ", ".join(map(echo, unknown))
    raise OptionError(f"{owner} has no option {listed}: {expected}")


def suggesting(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function`; an unknown argument raises an `OptionError` that suggests the right one. Options of a TypedDict are
    parameters of the signature that ``help`` shows.

    >>> suggesting(shown_default)(feild=3)
    Traceback (most recent call last):
    chunkcore.errors.OptionError: shown_default has no option 'feild': expected some of field; did you mean 'field'?
    """
    shape = _written_out(function)

    @wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        try:
            return function(*arguments, **options)
        except TypeError:
            _check_call(function, shape, len(arguments), options)
            raise

    @wraps(function)
    async def wait(*arguments: Any, **options: Any) -> Any:
        _check_call(function, shape, len(arguments), options)
        return await cast("Any", function)(*arguments, **options)

    # Frameworks ask whether a function is asynchronous.
    wrapper: Any = wait if iscoroutinefunction(function) else call
    wrapper.__signature__ = shape
    return cast("Callable[_P, _R]", wrapper)


def _written_out(function: Callable[..., Any]) -> Signature:
    """The signature, with options of a TypedDict as parameters."""
    shape = signature(function)
    parameters = list(shape.parameters.values())
    kind, _, options = str(parameters[-1].annotation).partition("[")
    if kind != "Unpack":
        return shape
    parameters.pop()
    for name, value in function.__globals__[options[:-1]].__annotations__.items():
        annotation = getattr(value, "__forward_arg__", value)
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=annotation)
        )
    return shape.replace(parameters=parameters)


def _check_call(
    function: Callable[..., Any], shape: Signature, count: int, options: Iterable[str]
) -> None:
    """Raise `OptionError`: `function` has no such option, or takes fewer than `count` arguments without a name."""
    parameters = shape.parameters.items()
    by_name = [name for name, parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY]
    owner = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    check_option_names(owner, options, [name for name, _ in parameters if name != "self"])
    if count > len(parameters) - len(by_name):
        listed = ", ".join(f"{name}=" for name in by_name)
        raise OptionError(f"{owner}: too many arguments without a name; these have one: {listed}")


# Of the numbers in options. Larger ones overflow in arrays of 64 bits.
LARGEST = 2**63 - 1

_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    type(None): "null",
}


def check_options(thing: Any) -> None:
    """Check every option of a frozen dataclass instance that is not its default, and store what `check_option` returns;
    then `check_ranges` with the `bounds` of its class and of those above it.
    """
    for field in fields(thing):
        value = getattr(thing, field.name)
        if value is not field.default:
            checked = check_option(type(thing), field.name, value)
            object.__setattr__(thing, field.name, checked)
    for cls in type(thing).__mro__[::-1]:
        check_ranges(thing, **vars(cls).get("bounds", {}))


def check_option(cls: type, name: str, value: Any) -> Any:
    """The value as stored: a tuple for a list, Python's numbers for numpy's. Raises `OptionError`: another type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Chunker:
    ...     sizes: tuple[int, ...]
    >>> check_option(Chunker, "sizes", [1, 2])
    (1, 2)
    """
    hint = _hints(cls)[name]
    try:
        return _checked(value, hint)
    except TypeError:
        is_large = isinstance(value, Real) and abs(cast(Any, value)) > LARGEST
        limit = f" of at most {LARGEST}" if is_large else ""
        # A retriever's kind, or a chunker's name: a retriever's name is an instance property.
        called = getattr(cls, "kind", "") or getattr(cls, "name", "")
        if not called or not isinstance(called, str):
            called = cls.__name__
        raise OptionError(
            f"{called}: {name} is {described(hint)}{limit}; got {echo(value)}"
        ) from None


def check_number(
    name: str, value: Any, least: float = 0, most: float = LARGEST, *, whole: bool = True
) -> None:
    """Raise `OptionError` for anything but a number from `least` to `most`; `whole`: an integer.

    >>> check_number("k", 0, least=1)
    Traceback (most recent call last):
    chunkcore.errors.OptionError: k is at least 1, got 0
    """
    kind: Any = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kind) or value != value:
        raise OptionError(f"{name} is a {'whole ' * whole}number, got {echo(value)}")
    if not least <= value <= most:
        bound = f"least {least:,}" if value < least else f"most {most:,}"
        raise OptionError(f"{name} is at {bound}, got {echo(value)}")


class Bounds(dict[str, float | str | tuple[float | str, ...]]):
    """The bounds of options by name; see `check_ranges`."""


def check_ranges(thing: Any, **ranges: float | str | tuple[float | str, ...]) -> None:
    """Raise `OptionError` for options outside their bounds: a minimum, or (minimum, maximum). None passes, NaN fails.

    A bound is a number or the name of an option that holds it; an option that is None is no bound.

    >>> from types import SimpleNamespace
    >>> check_ranges(SimpleNamespace(size=5, minimum=6), size=1, minimum=(0, "size"))
    Traceback (most recent call last):
    chunkcore.errors.OptionError: minimum is at least 0 and at most size (5), got 6
    """
    cls: Any = type(thing)
    for name, bounds in ranges.items():
        value = getattr(thing, name)
        limits = []
        is_inside = True
        both = bounds if isinstance(bounds, tuple) else (bounds, None)
        for bound, word, fits in zip(both, ("at least", "at most"), (ge, le), strict=True):
            limit = getattr(thing, bound) if isinstance(bound, str) else bound
            if value is None or limit is None:
                continue
            shown = f"{bound} ({limit})" if isinstance(bound, str) else f"{limit:.15g}"
            limits.append(f"{word} {shown}")
            is_inside = is_inside and fits(value, limit)
        if not is_inside:
            is_optional = type(None) in get_args(_hints(cls).get(name))
            null = ", or null for none" if is_optional else ""
            raise OptionError(f"{name} is {' and '.join(limits)}{null}, got {value}")


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _checked(value: Any, hint: Any) -> Any:
    """The value as stored under a type hint. Raises `TypeError`."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, types.UnionType):
        for choice in parts:
            with suppress(TypeError):
                return _checked(value, choice)
        is_right = False
    elif kind is tuple:
        hints = parts[:1] * len(value) if parts[1:] == (...,) else parts
        is_right = isinstance(value, tuple | list) and len(hints) == len(value)
        value = tuple(map(_checked, value, hints))
    elif kind in (int, float):
        expected = Integral if kind is int else Real
        # NaN is refused here: no range check would catch it.
        is_right = isinstance(value, expected) and abs(cast("Any", value)) <= LARGEST
        is_right = is_right and not isinstance(value, bool)
    elif kind is Literal:
        is_right = (type(value), value) in [(type(choice), choice) for choice in parts]
    else:
        is_right = hint is Any or isinstance(value, kind)
    if not is_right:
        raise TypeError
    return kind(value) if kind in (int, float, str) else value


def described(hint: Any) -> str:
    """A type in words.

    >>> described(tuple[str, ...]), described(int | None)
    ('a list of: a string', 'a whole number or null')
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(described, parts)))
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is tuple:
        return f"a list of: {', '.join(described(part) for part in parts if part is not ...)}"
    name = getattr(origin or hint, "__name__", str(hint))
    article = "an" if name[0] in "AEIO" or name == "LLM" else "a"
    return _NAMES.get(hint) or ("a callable" if name == "Callable" else f"{article} {name}")


# Written without quotes: no separator, also of a retriever's stages, no quote, nor white space at the ends.
_BARE = re.compile(r"[^\s,\"'\[\]{}=+]([^,\"'\[\]{}+]*[^\s,\"'\[\]{}+])?")


def split_spec(
    spec: str, noun: str = "chunker", unnamed: list[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """The name and options in ``name:option=value,...``; neither is looked up. Raises `OptionError` if malformed.

    A value is JSON if it parses as JSON, else a plain string. Commas inside brackets and double quotes belong to it.
    `noun` is what errors call it. `unnamed` collects parts without "="; None makes them errors.

    >>> split_spec("recursive:size=50,keep=end")
    ('recursive', {'size': 50, 'keep': 'end'})
    """
    if not isinstance(spec, str):
        raise OptionError(f"a {noun} is given as name:option=value,...; got {echo(spec)}")
    name, _, rest = spec.partition(":")
    options: dict[str, Any] = {}
    for part in map(str.strip, split_parts(rest, spec, noun)):
        option, equals, value = map(str.strip, part.partition("="))
        if unnamed is not None and part.startswith('"'):
            unnamed.append(str(read_value(part, noun)))
        elif unnamed is not None and not equals:
            unnamed.append(part)
        elif not equals or not option:
            raise OptionError(f"expected option=value, got {echo(part)} in the {noun} {echo(spec)}")
        elif option in options:
            raise OptionError(
                f"the option {option} is given twice in the {noun} {echo(spec)}; keep one"
            )
        else:
            options[option] = read_value(value, option)
    return name.strip(), options


def plain_options(thing: Any, *, changed: bool = False) -> dict[str, Any]:
    """The options of a dataclass instance as JSON values; with `changed`, only non-default ones."""
    options = {}
    for field in fields(thing):
        value, default = getattr(thing, field.name), default_of(field)
        setting = plain_option(field.name, value)
        if changed:
            if default is not MISSING and setting == plain_option(field.name, default):
                continue
            setting = getattr(value, "label", setting)  # a chunker over another one
        options[field.name] = setting
    return options


def plain_option(option: str, value: Any) -> Any:
    """An option's value as JSON. A chunker, counter or model becomes its string."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, tuple | list):
        return [plain_option(option, item) for item in value]
    for attribute in ("spec", "name"):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return name
    raise OptionError(
        f"the option {option} holds a {type(value).__name__}, which has no name to be built from again; "
        "give it a `name` or pass a name instead of the object"
    )


def format_spec(name: str, options: Mapping[str, Any], unnamed: Iterable[Any] = ()) -> str:
    r"""The inverse of `split_spec`, for JSON values.

    >>> format_spec("recursive", {"size": 200, "separators": ["\n", " "], "counter": "words"})
    'recursive:size=200,separators=["\\n", " "],counter=words'
    """
    parts = [json.dumps(value) if "=" in str(value) else _write(value) for value in unnamed]
    parts += [f"{option}={_write(value)}" for option, value in options.items()]
    return f"{name}:{','.join(parts)}" if parts else name


def split_parts(text: str, spec: str, kind: str) -> list[str]:
    """Split `text` at commas outside brackets and double quotes. Raises `OptionError` if one is not closed."""
    parts, start, depth, quoted = [], 0, 0, False
    for match in _SIGNS.finditer(text):
        sign = match[0][-1]
        if match[0] == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif sign == "," and depth == 0:
            parts.append(text[start : match.end() - 1])
            start = match.end()
        else:
            depth += _DEPTHS.get(sign, 0)
    if quoted or depth:
        what = "quote" if quoted else "bracket"
        raise OptionError(f"a {what} is not closed in the {kind} {echo(spec)}")
    return [*parts, text[start:]] if text.strip() else []


_DEPTHS = {"[": 1, "{": 1, "]": -1, "}": -1}


# A backslash takes the next character with it; outside quotes it stands for itself.
_SIGNS = re.compile(r'\\.|[",\[\]{}]', re.DOTALL)


def read_value(value: str, option: str) -> Any:
    """The value as JSON, else a plain string. Raises `OptionError` for malformed JSON after a quote or bracket."""
    try:
        return json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if value[:1] in ('"', "[", "{"):
            raise OptionError(
                f"the option {option} is no JSON: {echo(value)} ({error}); correct its quotes; several values in "
                "braces are for chunkcore tune"
            ) from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number here")  # NaN, Infinity: no option accepts them


def _write(value: Any) -> str:
    is_text = isinstance(value, str) and _BARE.fullmatch(value)
    return value if is_text and read_value(value, "") == value else json.dumps(value)
