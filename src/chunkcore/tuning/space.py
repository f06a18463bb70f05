"""`Space`: which strategies are tried, with which values of their options.

A space has branches; each is a strategy with some of its options. What an option may be is a list of values or a
range of numbers, either of them also as a share of another option, so that an overlap is never over its size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from hashlib import blake2b
from itertools import islice, product
from typing import Any

from chunkcore.chunkers.base import Chunker, build_chunker, find_strategy, strategies
from chunkcore.chunkers.spec import format_spec
from chunkcore.errors import OptionError

__all__ = ["Branch", "Parameter", "Range", "Space", "Values", "option_default"]

_MOST_CORNERS = 2_000


@dataclass(frozen=True, kw_only=True)
class Values:
    """One of some values.

    Attributes:
        values: what may be chosen; numbers in ascending order are searched as neighbours of each other.
        share_of: an option; the values are then shares of it, each rounded down to a whole number.

    Raises:
        OptionError: no value, one twice, or a share that is no number from 0 to 1.

    >>> Values(values=(50, 100, 200)).ordered, Values(values=("start", "end")).ordered
    (True, False)
    """

    values: tuple[Any, ...]
    share_of: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        written = [json.dumps(value) for value in self.values]
        if not written or len(set(written)) < len(written):
            raise OptionError(f"values are one or more, each once; got {list(self.values)}")
        if self.share_of and not all(_is_number(value) and 0 <= value <= 1 for value in self.values):
            raise OptionError(f"shares of {self.share_of} are numbers from 0 to 1, got {list(self.values)}")

    @property
    def ordered(self) -> bool:
        """Whether neighbours in the list are neighbours in effect."""
        numbers = all(_is_number(value) for value in self.values)
        return numbers and len(self.values) > 1 and list(self.values) == sorted(self.values)

    def corners(self) -> tuple[Any, ...]:
        """The first and the last of ordered values, all of others: drawn numbers, as `value` takes them."""
        return (0, len(self.values) - 1) if self.ordered else tuple(range(len(self.values)))

    def value(self, drawn: Any) -> Any:
        """What the drawn place in the list stands for."""
        return self.values[drawn]

    def drawn(self, value: Any) -> Any:
        """The place of a value in the list; None where it is not there."""
        return next((place for place, each in enumerate(self.values) if _same(each, value)), None)

    @property
    def size(self) -> float:
        """How many values."""
        return len(self.values)


@dataclass(frozen=True, kw_only=True)
class Range:
    """A number from a range, both ends included: a whole one where both ends are whole.

    Attributes:
        low: the least.
        high: the greatest.
        log: draw evenly by order of magnitude, as suits sizes.
        share_of: an option; the number is then a share of it, rounded down to a whole number.

    Raises:
        OptionError: the ends are no finite numbers, not in order, or out of range for `log` or a share.

    >>> Range(low=50, high=800).whole, Range(low=0.0, high=1.0).whole
    (True, False)
    """

    low: float
    high: float
    log: bool = False
    share_of: str = ""

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if not all(_is_number(end) and math.isfinite(end) for end in ends) or self.low >= self.high:
            raise OptionError(f"a range goes from a number to a greater one, got {self.low!r} to {self.high!r}")
        if any(abs(end) > 10**9 for end in ends):
            raise OptionError(f"a range lies within a thousand million, got {self.low!r} to {self.high!r}")
        if self.log and self.low <= 0:
            raise OptionError(f"a range that is drawn by order of magnitude begins over 0, got {self.low!r}")
        if self.share_of and not 0 <= self.low < self.high <= 1:
            raise OptionError(f"shares of {self.share_of} are from 0 to 1, got {self.low!r} to {self.high!r}")

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int) and not self.share_of

    @property
    def size(self) -> float:
        """How many numbers; infinite where they are not whole."""
        return self.high - self.low + 1 if self.whole else math.inf

    def corners(self) -> tuple[Any, ...]:
        """The ends."""
        return (self.low, self.high)

    def value(self, drawn: Any) -> Any:
        """The drawn number, to three digits where it is not whole."""
        return drawn if self.whole else min(max(float(f"{drawn:.3g}"), self.low), self.high)

    def drawn(self, value: Any) -> Any:
        """The number, if it lies in the range; else None."""
        inside = _is_number(value) and self.low <= value <= self.high
        return value if inside and not (self.whole and not isinstance(value, int)) else None


Parameter = Values | Range


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A strategy with the options that are searched.

    Attributes:
        strategy: its name.
        parameters: by option; an option that is not here has its default.
        number: tells branches of one strategy apart.

    >>> branch = Branch(strategy="recursive", parameters={
    ...     "size": Values(values=(50, 100)), "overlap": Values(values=(0, 0.25), share_of="size")})
    >>> branch.options({"size": 1, "overlap": 1})
    {'size': 100, 'overlap': 25}
    """

    strategy: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    number: int = 1

    @property
    def name(self) -> str:
        """The strategy's, with the number of a second branch and of those after it."""
        return self.strategy if self.number == 1 else f"{self.strategy}#{self.number}"

    @property
    def size(self) -> float:
        """How many configurations it holds at most; infinite with a range that is not of whole numbers."""
        return math.prod(each.size for each in self.parameters.values())

    def options(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The strategy's options from what was drawn for each parameter."""
        found = {
            option: parameter.value(drawn[option])
            for option, parameter in self.parameters.items()
            if not parameter.share_of
        }
        for option, parameter in self.parameters.items():
            if parameter.share_of:
                base = found.get(parameter.share_of, option_default(self.strategy, parameter.share_of))
                found[option] = int(parameter.value(drawn[option]) * base)
        return {option: found[option] for option in self.parameters}

    def spec(self, drawn: Mapping[str, Any]) -> str:
        """The strategy as a string, with every searched option in it."""
        return format_spec(self.strategy, self.options(drawn))

    def default(self) -> dict[str, Any] | None:
        """What is drawn where every option has its default; None where the space does not hold that."""
        found = {}
        for option, parameter in self.parameters.items():
            value = option_default(self.strategy, option)
            if parameter.share_of:
                base = option_default(self.strategy, parameter.share_of)
                value = value / base if _is_number(value) and _is_number(base) and base else None
            found[option] = parameter.drawn(value)
        return None if any(value is None for value in found.values()) else found

    def corners(self) -> Iterator[dict[str, Any]]:
        """All combinations of the parameters' extremes."""
        names = list(self.parameters)
        for drawn in product(*(self.parameters[name].corners() for name in names)):
            yield dict(zip(names, drawn, strict=True))

    def check(self) -> None:
        """Build the strategy at the corners of the space: where one option bounds another, it fails there if anywhere.

        Raises:
            OptionError: no such strategy or option, or options that do not fit together.
        """
        cls = find_strategy(self.strategy)
        if cls is None:
            raise OptionError(f"unknown strategy {self.strategy!r}: expected one of {', '.join(strategies())}")
        for option, parameter in self.parameters.items():
            self._check_share(cls, option, parameter)
        for drawn in islice(self.corners(), _MOST_CORNERS):
            options = self.options(drawn)
            try:
                build_chunker(self.strategy, options)
            except OptionError as error:
                hint = "" if len(self.parameters) < 2 else "; narrow it, or write one option as a share of the other"
                raise OptionError(
                    f"the space of {self.strategy} holds {format_spec(self.strategy, options)}, "
                    f"which cannot be built: {error}{hint}"
                ) from error

    def _check_share(self, cls: type[Chunker], option: str, parameter: Parameter) -> None:
        base = parameter.share_of
        if not base:
            return
        if base not in cls.option_names() or base == option:
            raise OptionError(f"{self.strategy}: {option} is a share of {base!r}, which is no other option of it")
        of = self.parameters.get(base)
        if of is not None and of.share_of:
            raise OptionError(f"{self.strategy}: {option} is a share of {base}, which is a share itself")
        values = [option_default(self.strategy, base)] if of is None else [of.value(each) for each in of.corners()]
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise OptionError(f"{self.strategy}: {option} is a share of {base}, which is not always a whole number")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values that tell this branch apart from others."""
        told = {
            option: (
                {"values": list(each.values), "share_of": each.share_of}
                if isinstance(each, Values)
                else {"from": each.low, "to": each.high, "log": each.log, "share_of": each.share_of}
            )
            for option, each in self.parameters.items()
        }
        return {"strategy": self.strategy, "number": self.number, "parameters": told}


@dataclass(frozen=True, kw_only=True)
class Space:
    """The strategies and values that are searched.

    Raises:
        OptionError: no branch, or one that cannot be built (see `Branch.check`).

    >>> space = Space(branches=(Branch(strategy="sentence", parameters={"size": Range(low=50, high=400)}),))
    >>> space.branch("sentence").options({"size": 70})
    {'size': 70}
    """

    branches: tuple[Branch, ...]

    def __post_init__(self) -> None:
        if not self.branches:
            raise OptionError("there is nothing to search: expected one strategy at least")
        seen: dict[str, int] = {}
        numbered = []
        for each in self.branches:
            seen[each.strategy] = seen.get(each.strategy, 0) + 1
            numbered.append(replace(each, number=seen[each.strategy]))
        object.__setattr__(self, "branches", tuple(numbered))
        for branch in self.branches:
            branch.check()

    def branch(self, name: str) -> Branch:
        """The branch of this name.

        Raises:
            KeyError: there is none.
        """
        for each in self.branches:
            if each.name == name:
                return each
        raise KeyError(name)

    def digest(self) -> str:
        """16 hexadecimal digits that change with whatever changes what is searched."""
        text = json.dumps([branch.to_dict() for branch in self.branches], ensure_ascii=True)
        return blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def option_default(strategy: str, option: str) -> Any:
    """An option's default; None where it has none, or there is no such option."""
    for each in fields(strategies()[strategy]):
        if each.name == option:
            if each.default is not MISSING:
                return each.default
            return each.default_factory() if each.default_factory is not MISSING else None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and (type(one) is type(other) or (_is_number(one) and _is_number(other)))
