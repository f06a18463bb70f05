"""Grids of options: ``recursive:size={50,100,200}`` is three strategies."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from chunkcore.chunkers.spec import parse_chunker, split_parts
from chunkcore.errors import OptionError

__all__ = ["Configuration", "Grid", "parse_grid"]

_MOST = 1000  # configurations of one grid: more is a slip, and would take days


@dataclass(frozen=True, slots=True)
class Configuration:
    """One strategy of a grid: its string, and the value of each option that the grid varies, as it was written."""

    spec: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grid:
    """A strategy with several values for some of its options.

    Attributes:
        spec: as it was written.
        strategy: the strategy's name.
        options: by the name of each option that is varied, its values; numbers in their order, others as written.
        configurations: one for each combination, those of the last option together.
    """

    spec: str
    strategy: str
    options: Mapping[str, tuple[str, ...]]
    configurations: tuple[Configuration, ...]


def parse_grid(spec: str) -> Grid:
    """The grid that a string describes: a strategy as `parse_chunker` reads it, with ``{a,b}`` where values vary.

    A value in braces that is a JSON object is one value. A string without any braces is a grid of one.

    Raises:
        OptionError: a strategy is malformed, braces are empty or hold a value twice, or the combinations are more than
            a thousand.

    >>> grid = parse_grid("recursive:size={100,50},overlap=0")
    >>> [each.spec for each in grid.configurations]
    ['recursive:size=50,overlap=0', 'recursive:size=100,overlap=0']
    """
    if not isinstance(spec, str):
        raise OptionError(f"a grid is given as name:option={{value,value}},...; got {spec!r}")
    name, _, rest = spec.partition(":")
    given: dict[str, list[str]] = {}
    for part in split_parts(rest, spec, "grid"):
        option, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not option:
            raise OptionError(f"expected option=value, got {part.strip()!r} in the grid {spec!r}")
        if option in given:
            raise OptionError(f"the option {option} is given twice in the grid {spec!r}; keep one")
        given[option] = _values(option, value, spec)
    if (total := math.prod(map(len, given.values()))) > _MOST:
        raise OptionError(f"the grid {spec!r} is {total:,} configurations: expected {_MOST:,} at most")
    varied = {option: tuple(values) for option, values in given.items() if len(values) > 1}
    found = []
    for chosen in product(*given.values()):
        pairs = dict(zip(given, chosen, strict=True))
        written = ",".join(f"{option}={value}" for option, value in pairs.items())
        one = f"{name.strip()}:{written}" if written else name.strip()
        parse_chunker(one)
        found.append(Configuration(one, {option: pairs[option] for option in varied}))
    return Grid(spec, name.strip(), varied, tuple(found))


def _values(option: str, value: str, spec: str) -> list[str]:
    if not (value.startswith("{") and value.endswith("}")) or _is_object(value):
        return [value]
    values = [each.strip() for each in split_parts(value[1:-1], spec, "grid")]
    if not values or not all(values):
        raise OptionError(f"the option {option} has an empty value in the grid {spec!r}: expected {{value,value,...}}")
    repeated = next((each for number, each in enumerate(values) if each in values[:number]), None)
    if repeated is not None:
        raise OptionError(f"the option {option} has the value {repeated} twice in the grid {spec!r}; keep one")
    numbers = [_number(each) for each in values]
    return values if None in numbers else sorted(values, key=float)


def _is_object(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict) and value.strip("{} ") != ""
    except (ValueError, RecursionError):
        return False


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
