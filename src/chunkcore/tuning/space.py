"""`Space`: the strategies to try, and the values of their options.

A branch is a strategy with lists or ranges of values for some options. Values may be shares of another option, so that
an overlap never exceeds its size. A grid such as ``recursive:size={50,100,200}`` runs every combination. Retrievers are
searched as one more option, ``retriever``; a configuration then reads "recursive:size=100 · bm25:words=first5".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import islice, product
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

from chunkcore.chunkers.base import get_chunker, strategies
from chunkcore.chunkers.configuration import opened, read_specs, telling_where
from chunkcore.errors import OptionError, echo
from chunkcore.registry import default_of, format_spec, read_value, split_options, split_parts, split_spec
from chunkcore.retrieval import get_retriever, retrievers

RETRIEVER = "retriever"
_AND = " · "  # between a strategy and its retriever
_CORNERS = 2_000
_CONFIGURATIONS = 1_000  # of one grid: more is a slip, and would take days


@dataclass(frozen=True, kw_only=True)
class Values:
    """A list of values to choose from.

    Attributes:
        values: ascending numbers are searched as neighbours.
        share_of: an option; the values are shares of it, rounded down to whole numbers.

    Raises `OptionError`: no values, a duplicate, or a share that is no number from 0 to 1.

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
        """Whether neighbours in the list have similar effects."""
        numbers = all(_is_number(value) for value in self.values)
        return numbers and len(self.values) > 1 and list(self.values) == sorted(self.values)

    def corners(self) -> tuple[Any, ...]:
        """Indices of the first and last of ordered values; of all others. See `value`."""
        return (0, len(self.values) - 1) if self.ordered else tuple(range(len(self.values)))

    def value(self, drawn: Any) -> Any:
        """The value at an index of the list."""
        return self.values[drawn]

    def drawn(self, value: Any) -> Any:
        return next((place for place, each in enumerate(self.values) if _same(each, value)), None)

    @property
    def size(self) -> float:
        return len(self.values)


@dataclass(frozen=True, kw_only=True)
class Range:
    """A range of numbers, both ends included; whole numbers if both ends are whole.

    Attributes:
        log: sample evenly by order of magnitude; suits sizes.
        share_of: an option; the number is a share of it, rounded down to a whole number.

    Raises `OptionError`: the ends are not finite, not in order, or out of range for `log` or a share.

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
            raise OptionError(f"a range goes from a number to a greater one, got {echo(self.low)} to {echo(self.high)}")
        if any(abs(end) > 10**9 for end in ends):
            raise OptionError(f"a range lies within a thousand million, got {echo(self.low)} to {echo(self.high)}")
        if self.log and self.low <= 0:
            raise OptionError(f"a range that is drawn by order of magnitude begins over 0, got {echo(self.low)}")
        if self.share_of and not 0 <= self.low < self.high <= 1:
            raise OptionError(f"shares of {self.share_of} are from 0 to 1, got {echo(self.low)} to {echo(self.high)}")

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int) and not self.share_of

    @property
    def size(self) -> float:
        """How many numbers; infinite for fractions."""
        return self.high - self.low + 1 if self.whole else math.inf

    def corners(self) -> tuple[Any, ...]:
        return (self.low, self.high)

    def value(self, drawn: Any) -> Any:
        """The number, fractions rounded to three digits."""
        return drawn if self.whole else min(max(float(f"{drawn:.3g}"), self.low), self.high)

    def drawn(self, value: Any) -> Any:
        inside = _is_number(value) and self.low <= value <= self.high
        return value if inside and not (self.whole and not isinstance(value, int)) else None


Parameter = Values | Range


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A strategy with the options to search.

    Attributes:
        parameters: by option; other options keep their defaults.
        number: index from 1 among the branches of one strategy.

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
        """The strategy's name, with the branch's number from the second branch on."""
        return self.strategy if self.number == 1 else f"{self.strategy}#{self.number}"

    @property
    def size(self) -> float:
        """The number of configurations at most; infinite with a range of fractions."""
        return math.prod(each.size for each in self.parameters.values())

    @property
    def varied(self) -> Mapping[str, Values]:
        """The options with several values."""
        return {option: each for option, each in self.parameters.items() if isinstance(each, Values) and each.size > 1}

    def written(self, option: str, place: int) -> str:
        """An option's value at an index of its list, as written in a spec string."""
        parameter = self.parameters[option]
        return format_spec("", {option: parameter.value(place)}).partition("=")[2]

    @property
    def grid(self) -> str:
        """The branch as `parse_grid` reads it; all parameters must be lists.

        >>> parse_grid("recursive:size={100,50},overlap=0").grid
        'recursive:size={50,100},overlap=0'
        """
        parts = []
        for option, parameter in self.parameters.items():
            values = ",".join(self.written(option, place) for place in range(int(parameter.size)))
            parts.append(f"{option}={{{values}}}" if parameter.size > 1 else f"{option}={values}")
        return f"{self.strategy}:{','.join(parts)}" if parts else self.strategy

    def combinations(self) -> Iterator[dict[str, int]]:
        """All combinations of indices for `options`, the last option changing first."""
        for places in product(*(range(int(each.size)) for each in self.parameters.values())):
            yield dict(zip(self.parameters, places, strict=True))

    def options(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The strategy's options from the drawn index or number of each parameter."""
        found = {
            option: parameter.value(drawn[option])
            for option, parameter in self.parameters.items()
            if not parameter.share_of
        }
        for option, parameter in self.parameters.items():
            if parameter.share_of:
                base = found.get(parameter.share_of, option_default(self.strategy, parameter.share_of))
                found[option] = int(parameter.value(drawn[option]) * base)
        return {option: found[option] for option in self.parameters if option != RETRIEVER}

    def spec(self, drawn: Mapping[str, Any]) -> str:
        """The strategy as a string with every searched option, and its retriever if retrievers are searched."""
        asked = self.parameters.get(RETRIEVER)
        written = format_spec(self.strategy, self.options(drawn))
        return f"{written}{_AND}{asked.value(drawn[RETRIEVER])}" if asked else written

    def default(self) -> dict[str, Any] | None:
        """What `options` needs to give the defaults; None if the space lacks a default."""
        found = {}
        for option, parameter in self.parameters.items():
            value = parameter.value(0) if option == RETRIEVER else option_default(self.strategy, option)
            if parameter.share_of:
                base = option_default(self.strategy, parameter.share_of)
                value = value / base if _is_number(value) and _is_number(base) and base else None
            found[option] = parameter.drawn(value)
        return None if any(value is None for value in found.values()) else found

    def corners(self) -> Iterator[dict[str, Any]]:
        """All combinations of the parameters' extremes."""
        for drawn in product(*(each.corners() for each in self.parameters.values())):
            yield dict(zip(self.parameters, drawn, strict=True))

    def check(self) -> None:
        """Build the strategy at the corners, where options that bound each other would fail."""
        strategies.get(self.strategy)  # which knows the name, or raises
        for option, parameter in self.parameters.items():
            self._check_parameter(option, parameter)
        for drawn in islice(self.corners(), _CORNERS):
            options = self.options(drawn)
            try:
                get_chunker(self.strategy, **options)
            except OptionError as error:
                hint = "" if len(self.parameters) < 2 else "; narrow it, or write one option as a share of the other"
                raise OptionError(
                    f"the space of {self.strategy} holds {format_spec(self.strategy, options)}, "
                    f"which cannot be built: {error}{hint}"
                ) from error

    def _check_parameter(self, option: str, parameter: Parameter) -> None:
        base = parameter.share_of
        if option == RETRIEVER:
            if not isinstance(parameter, Values) or base:
                raise OptionError(f"{self.strategy}: retriever is a retriever or a list of them, not a range")
            for each in parameter.values:
                get_retriever(each)
        if not base:
            return
        if base not in strategies[self.strategy].option_names() or base == option:
            raise OptionError(f"{self.strategy}: {option} is a share of {echo(base)}, which is no other option of it")
        of = self.parameters.get(base)
        if of is not None and of.share_of:
            raise OptionError(f"{self.strategy}: {option} is a share of {base}, which is a share itself")
        values = [option_default(self.strategy, base)] if of is None else [of.value(each) for each in of.corners()]
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise OptionError(f"{self.strategy}: {option} is a share of {base}, which is not always a whole number")

    def to_dict(self) -> dict[str, Any]:
        parameters = {
            option: (
                {"values": list(each.values), "share_of": each.share_of}
                if isinstance(each, Values)
                else {"from": each.low, "to": each.high, "log": each.log, "share_of": each.share_of}
            )
            for option, each in self.parameters.items()
        }
        return {"strategy": self.strategy, "number": self.number, "parameters": parameters}


@dataclass(frozen=True, kw_only=True)
class Space:
    """The strategies and values to search.

    Attributes:
        branches: one or more.
        exhaustive: run every combination, as for grids; else configurations are drawn and proposed.

    Raises `OptionError`: no branch, a branch that cannot be built (`Branch.check`), or an exhaustive space with a
    range.

    >>> space = Space(branches=(Branch(strategy="sentence", parameters={"size": Range(low=50, high=400)}),))
    >>> space.branch("sentence").options({"size": 70})
    {'size': 70}
    """

    branches: tuple[Branch, ...]
    exhaustive: bool = False

    def __post_init__(self) -> None:
        if not self.branches:
            raise OptionError("there is nothing to search: expected one strategy at least")
        if self.exhaustive and math.isinf(self.size):
            raise OptionError("a grid has lists of values alone: write a list for each range")
        seen: dict[str, int] = {}
        numbered = []
        for each in self.branches:
            seen[each.strategy] = seen.get(each.strategy, 0) + 1
            numbered.append(replace(each, number=seen[each.strategy]))
        object.__setattr__(self, "branches", tuple(numbered))
        for branch in self.branches:
            branch.check()

    @property
    def size(self) -> float:
        return sum(branch.size for branch in self.branches)

    @property
    def specs(self) -> list[str]:
        """All configurations of an exhaustive space in run order, without duplicates."""
        found = (branch.spec(drawn) for branch in self.branches for drawn in branch.combinations())
        return list(dict.fromkeys(found)) if self.exhaustive else []

    def with_retrievers(self, searched: Values) -> Space:
        """The space with these retrievers for each branch that names none. One retriever is no choice: no change."""
        if searched.size < 2:
            return self
        branches = (replace(each, parameters={RETRIEVER: searched, **each.parameters}) for each in self.branches)
        return replace(self, branches=tuple(branches))

    def branch(self, name: str) -> Branch:
        return {each.name: each for each in self.branches}[name]

    def digest(self) -> str:
        """16 hexadecimal digits that change with the space."""
        plain: list[Any] = [branch.to_dict() for branch in self.branches]
        text = json.dumps([*plain, "exhaustive"] if self.exhaustive else plain, ensure_ascii=True)
        return blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def parse_grid(spec: str) -> Branch:
    """The grid of a string: a strategy as `get_chunker` reads it, with ``{a,b}`` for values that vary, numbers sorted.

    A JSON object in braces is one value. Without braces the grid has one configuration.

    Raises `OptionError`: malformed strategy, braces that are empty or repeat a value, or over a thousand combinations.

    >>> grid = parse_grid("recursive:size={100,50},overlap=0")
    >>> [grid.spec(drawn) for drawn in grid.combinations()]
    ['recursive:size=50,overlap=0', 'recursive:size=100,overlap=0']
    """
    if not isinstance(spec, str):
        raise OptionError(f"a grid is given as name:option={{value,value}},...; got {echo(spec)}")
    name, given = _grid(spec)
    branch = Branch(strategy=name, parameters=given)
    for drawn in branch.combinations():
        get_chunker(branch.strategy, **branch.options(drawn))
    return branch


def configuration(spec: str) -> tuple[str, str]:
    """The strategy and the retriever of a configuration; "" where the retriever is not searched.

    >>> configuration("recursive:size=100 · bm25:words=first5"), configuration("sentence")
    (('recursive:size=100', 'bm25:words=first5'), ('sentence', ''))
    """
    before, _, after = spec.rpartition(_AND)
    return (before, after) if before and after.partition(":")[0].partition("+")[0] in retrievers else (spec, "")


def retriever_values(specs: Sequence[str]) -> Values:
    """The retrievers of some strings, options with several values in braces.

    Raises `OptionError`: a malformed string, a retriever that is given twice, or over a thousand of them.

    >>> retriever_values(["dense", "bm25:words={whole,first5}"]).values
    ('dense', 'bm25:words=whole', 'bm25:words=first5')
    """
    found: list[str] = []
    for spec in specs:
        if not _has_braces(spec):
            found.append(spec)
            continue
        name, given = _grid(spec)
        combined = product(*(each.values for each in given.values()))
        found += (format_spec(name, dict(zip(given, values, strict=True))) for values in combined)
    for each in found:
        get_retriever(each)
    return Values(values=tuple(found))


def _grid(spec: str) -> tuple[str, dict[str, Values]]:
    name, _, rest = spec.partition(":")
    values = split_options(rest, spec, "grid", read=lambda text, option: _grid_values(option, text, spec))
    given = {option: Values(values=tuple(each)) for option, each in values.items()}
    size = math.prod(each.size for each in given.values())
    if size > _CONFIGURATIONS:
        raise OptionError(f"the grid {echo(spec)} is {size:,} configurations: narrow it to {_CONFIGURATIONS:,} at most")
    return name.strip(), given


def _grid_values(option: str, text: str, spec: str) -> list[Any]:
    if not (text.startswith("{") and text.endswith("}")) or _is_object(text):
        return [read_value(text, option)]
    written = [each.strip() for each in split_parts(text[1:-1], spec, "grid")]
    if not written or not all(written):
        raise OptionError(
            f"the option {option} has an empty value in the grid {echo(spec)}: expected {{value,value,...}}"
        )
    repeated = next((each for each, count in Counter(written).items() if count > 1), None)
    if repeated is not None:
        raise OptionError(f"the option {option} has the value {echo(repeated)} twice in {echo(spec)}; keep one")
    values = [read_value(each, option) for each in written]
    return sorted(values) if all(_is_number(each) for each in values) else values


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict) and text.strip("{} ") != ""
    except (ValueError, RecursionError):
        return False


def grid_space(grids: Sequence[Branch | str]) -> Space:
    """The exhaustive space of some grids. Grids of one strategy compete with each other.

    Raises `OptionError`: no grid, or an error of `parse_grid`.

    >>> grid_space(["recursive:size={100,50}", "sentence"]).specs
    ['recursive:size=50', 'recursive:size=100', 'sentence']
    """
    branches = tuple(parse_grid(each) if isinstance(each, str) else each for each in grids)
    return Space(branches=branches, exhaustive=True)


def parse_space(specs: Sequence[str]) -> Space:
    """The space of some strings.

    If one string has values in braces, all are grids (`grid_space`), and a strategy without braces is one
    configuration. Otherwise each strategy is searched over the options that its string leaves open (`known_space`).

    Raises `OptionError`: a strategy or an option is wrong, or no space is known for it.

    >>> parse_space(["recursive:size={50,100}", "sentence"]).size, parse_space(["fixed_token:overlap=0"]).size
    (3, 9)
    """
    if any(_has_braces(spec) for spec in specs):
        return grid_space(specs)
    return Space(branches=tuple(branch for spec in specs for branch in known_space(spec).branches))


def _has_braces(spec: str) -> bool:
    values = (part.partition("=")[2].strip() for part in split_parts(spec.partition(":")[2], spec, "grid"))
    return any(value.startswith("{") and value.endswith("}") and not _is_object(value) for value in values)


def option_default(strategy: str, option: str) -> Any:
    """An option's default; None if it has none or does not exist."""
    found = next((default_of(each) for each in fields(strategies[strategy]) if each.name == option), MISSING)
    return None if found is MISSING else found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and (type(one) is type(other) or (_is_number(one) and _is_number(other)))


_FORM = "size: [100, 200, 400], size: {from: 50, to: 800, log: true} or overlap: {share_of: size, values: [0, 0.25]}"


def load_space(path: Path | str) -> Space:
    """The space of a YAML file of strategies and option values.

        recursive:
          size: [100, 200, 400]
          overlap: {share_of: size, values: [0, 0.1, 0.25]}
          keep: end
        breakpoint:
          - {threshold: percentile, amount: {from: 50, to: 98}}
          - {threshold: distance, amount: {from: 0.1, to: 0.7}}
        sentence:

    A single value is fixed; a list gives choices; ``from`` and ``to`` give a range, sampled by order of magnitude with
    ``log: true``. Each mapping in a list of mappings is a branch. A strategy without options keeps its defaults. A file
    that is a list holds grids for `parse_grid`. PyYAML's safe loader reads plain values only: no tag can run code.

    Raises:
        OptionError: not YAML, unknown strategy or option, or invalid values; names the line.
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    path = Path(path)
    with opened(path) as (loader, root):
        if isinstance(root, yaml.SequenceNode):
            return grid_space(read_specs(path, parse_grid))
        if not isinstance(root, yaml.MappingNode) or not root.value:
            raise OptionError(f"{path} names no strategy: write one a line with its options below, as in {_FORM}")
        _refuse_twins(path, root)
        branches: list[Branch] = []
        for key, node in root.value:
            with telling_where(path, key.start_mark.line + 1):
                branches += _strategy(path, str(key.value), node, loader)
        return Space(branches=tuple(branches))


def _strategy(path: Path, name: str, node: yaml.Node, loader: yaml.SafeLoader) -> list[Branch]:
    if isinstance(node, yaml.ScalarNode) and loader.construct_object(node) is None:
        parts = [yaml.MappingNode(node.tag, [])]
    else:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    branches = []
    for part in parts:
        if not isinstance(part, yaml.MappingNode):
            raise OptionError(f"{name} is followed by its options, as in {_FORM}")
        _refuse_twins(path, part)
        loader.flatten_mapping(part)  # YAML's merge keys
        parameters = {}
        for key, value in part.value:
            with telling_where(path, key.start_mark.line + 1):
                parameters[str(key.value)] = _parameter(str(key.value), loader.construct_object(value, deep=True))
        branch = Branch(strategy=name, parameters=parameters)
        branch.check()
        branches.append(branch)
    return branches


def _refuse_twins(path: Path, node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        with telling_where(path, key.start_mark.line + 1):
            if not isinstance(key, yaml.ScalarNode):
                raise OptionError("a strategy or an option has a plain name")
            if key.value in seen:
                raise OptionError(f"{key.value} is given twice; keep one, or write a list of its branches")
            seen.add(key.value)


def _parameter(option: str, value: Any) -> Parameter:
    if isinstance(value, list):
        return Values(values=tuple(_plain(option, each) for each in value))
    if not isinstance(value, dict):
        return Values(values=(_plain(option, value),))
    share_of = value.get("share_of", "")
    if not isinstance(share_of, str) or set(value) - {"from", "to", "log", "values", "share_of"}:
        raise OptionError(f"{option} is one of {_FORM}; got {echo(value)}")
    if set(value) <= {"values", "share_of"} and isinstance(value.get("values"), list):
        return Values(values=tuple(_plain(option, each) for each in value["values"]), share_of=share_of)
    log = value.get("log", False)
    if {"from", "to"} <= set(value) and "values" not in value and isinstance(log, bool):
        return Range(low=value["from"], high=value["to"], log=log, share_of=share_of)
    raise OptionError(f"{option} is one of {_FORM}; got {echo(value)}")


def _plain(option: str, value: Any) -> Any:
    """A value for a spec string. A list inside a list is one value, as for separators."""
    if isinstance(value, list):
        return [_plain(option, each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{option} may be strings, numbers, true, false, null or lists of these, got {echo(value)}")


@cache
def usual_spaces() -> dict[str, Any]:
    """The usual space of each strategy, as ``spaces.yaml`` has it."""
    found: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("spaces.yaml").read_text("utf-8"))
    return found


# Strategies that need no model but the embedder, and chunk any text. (`hierarchical` has its own model.)
USUAL = (
    "breakpoint",
    "cluster_semantic",
    "dual_semantic",
    "fixed_sentences",
    "fixed_token",
    "kamradt_modified",
    "markdown",
    "recursive",
    "sentence",
    "single_linkage",
)


def default_space() -> Space:
    """The default space: the strategies of `USUAL`.

    >>> default_space().branch("recursive").parameters["size"].values
    (50, 75, 100, 150, 200, 300, 400, 600, 800)
    """
    return Space(branches=tuple(branch for name in USUAL for branch in _branches(name)))


def known_space(spec: str) -> Space:
    """The usual space of the strategy that a string names; the string's options stay fixed.

    Raises `OptionError`: unknown strategy, no usual space for it, or options that do not fit together.

    >>> known_space("sentence:minimum=0").branch("sentence").parameters["minimum"].values
    (0,)
    """
    name, options = split_spec(spec)
    if name not in usual_spaces():
        raise OptionError(
            f"no space is known for the strategy {echo(name)}: expected one of {', '.join(usual_spaces())}, "
            "or a file that says what to search of it"
        )
    given = {option: Values(values=(value,)) for option, value in options.items()}
    fitting = [
        branch
        for branch in _branches(name)
        if all(
            not isinstance(own := branch.parameters.get(option), Values) or own.size > 1 or own.values == each.values
            for option, each in given.items()
        )
    ]
    if not fitting:
        raise OptionError(
            f"no space is known for {echo(spec)}: write a file that says what to search of its other options"
        )
    return Space(branches=tuple(replace(each, parameters={**each.parameters, **given}) for each in fitting))


def _branches(strategy: str) -> list[Branch]:
    found = usual_spaces()[strategy]
    rows = found if isinstance(found, list) else [found]
    return [
        Branch(strategy=strategy, parameters={option: _parameter(option, value) for option, value in row.items()})
        for row in rows
    ]
