"""What is searched of each strategy unless the user says otherwise: the table, and how it is read.

Sizes go from a quarter of the strategy's default to four times it. What would have to be paid for, needs a format
of its own or another package is searched only where it is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chunkcore.chunkers.spec import split_spec
from chunkcore.errors import OptionError
from chunkcore.tuning.space import Branch, Parameter, Space, Values, option_default

__all__ = ["USUAL", "default_space", "known_space"]


@dataclass(frozen=True)
class _Times:
    """Values that are so many times the option's default, as whole numbers."""

    factors: tuple[float, ...]

    def of(self, strategy: str, option: str) -> Values:
        default = option_default(strategy, option)
        return Values(values=tuple(dict.fromkeys(max(1, round(default * each)) for each in self.factors)))


_SIZES = _Times((1 / 4, 3 / 8, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3, 4))
_FEW_SIZES = _Times((1 / 2, 1, 2))


def _share(of: str, *values: float) -> Values:
    return Values(values=values, share_of=of)


def _either(*values: object) -> Values:
    return Values(values=values)


_Row = Mapping[str, Parameter | _Times]
_PACKED: _Row = {"size": _SIZES, "minimum": _share("size", 0, 0.25, 0.5)}
_PERCENTILE = _either(50, 60, 70, 80, 85, 90, 95, 98)
_BOUNDED: _Row = {
    "buffer": _either(0, 1, 2),
    "max_size": _either(100, 200, 300, 400, 600, 800),
    "min_size": _share("max_size", 0, 0.25),
}
_CLUSTERED: _Row = {
    "position_weight": _either(0, 0.25, 0.5, 0.75, 1),
    "max_size": _SIZES,
}

_TABLE: dict[str, list[_Row]] = {
    "agentic": [{"window": _FEW_SIZES, "max_size": _SIZES, "piece_size": _FEW_SIZES}],
    "auto": [_PACKED],
    "breakpoint": [
        {"threshold": _either("percentile"), "amount": _PERCENTILE, **_BOUNDED},
        {"threshold": _either("distance"), "amount": _either(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), **_BOUNDED},
    ],
    "cluster_semantic": [
        {
            "max_size": _SIZES,
            "piece_size": _share("max_size", 0.125, 0.25, 0.5),
            "min_size": _share("max_size", 0, 0.25),
        }
    ],
    "code": [_PACKED],
    "contextual": [
        {"chunker": _either("recursive:size=100", "recursive:size=200", "recursive:size=400", "sentence:size=200")}
    ],
    "dbscan": [{"eps": _either(0.1, 0.2, 0.3, 0.4, 0.5), "min_samples": _either(1, 2, 3, 4, 5), **_CLUSTERED}],
    "dual_semantic": [
        {
            "k": _either(0, 0.5, 1, 1.5, 2, 2.5, 3),
            "d": _either(5, 10, 20),
            "max_size": _SIZES,
            "min_size": _share("max_size", 0, 0.25, 0.5),
        }
    ],
    "fixed_sentences": [
        {"sentences": _either(1, 2, 3, 4, 5, 7, 10, 14, 20), "overlap": _share("sentences", 0, 0.2, 0.34, 0.5)}
    ],
    "fixed_token": [{"size": _SIZES, "overlap": _share("size", 0, 0.1, 0.25, 0.5)}],
    "hierarchical": [
        {"k": _either(0.4, 0.7, 1.2), "max_segment": _either(100, 200, 400), "max_size": _either(256, 512, 1024, 2048)}
    ],
    "html": [_PACKED],
    "kamradt": [{"amount": _PERCENTILE, **_BOUNDED}],
    "kamradt_modified": [{"size": _SIZES, "minimum": _share("size", 0, 0.25), "buffer": _either(1, 2, 3)}],
    "llm_semantic": [{"window": _FEW_SIZES, "max_size": _SIZES, "piece_size": _FEW_SIZES}],
    "lumber": [{"window": _FEW_SIZES, "max_size": _SIZES}],
    "markdown": [{**_PACKED, "heading_level": _either(0, 2, 6)}],
    "propositions": [{"passage_size": _FEW_SIZES, "max_size": _FEW_SIZES}],
    "recursive": [
        {"size": _SIZES, "overlap": _share("size", 0, 0.1, 0.25, 0.5), "keep": _either("start", "end")},
    ],
    "sentence": [
        {"size": _SIZES, "overlap": _share("size", 0, 0.25, 0.5), "minimum": _share("size", 0, 0.25, 0.5)},
    ],
    "single_linkage": [{"stop": _either(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), **_CLUSTERED}],
}

# Those that need no more than the embedder, and cut any text. (`hierarchical` runs a model of its own each time.)
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
    """What is searched where nothing is asked for: the strategies of `USUAL`.

    >>> default_space().branch("recursive").parameters["size"].values
    (50, 75, 100, 150, 200, 300, 400, 600, 800)
    """
    return Space(branches=tuple(branch for name in USUAL for branch in _branches(name)))


def known_space(spec: str) -> Space:
    """What is searched of the strategy that a string names; the options that it states are not searched.

    Raises:
        OptionError: no such strategy, or none with a row in the table, or options that do not go together.

    >>> known_space("sentence:minimum=0").branch("sentence").parameters["minimum"].values
    (0,)
    """
    name, options = split_spec(spec)
    if name not in _TABLE:
        raise OptionError(
            f"no space is known for the strategy {name!r}: expected one of {', '.join(_TABLE)}, "
            "or a file that says what to search of it"
        )
    given = {option: Values(values=(value,)) for option, value in options.items()}
    fitting = [branch for branch in _branches(name) if not _contradicts(branch, given)]
    if not fitting:
        raise OptionError(f"no space is known for {spec!r}: write a file that says what to search of its other options")
    return Space(branches=tuple(replace(each, parameters={**each.parameters, **given}) for each in fitting))


def _contradicts(branch: Branch, given: Mapping[str, Values]) -> bool:
    """Whether the branch is for another value of an option that is given, as each threshold has amounts of its own."""
    return any(
        isinstance(own := branch.parameters.get(option), Values) and len(own.values) == 1 and own.values != each.values
        for option, each in given.items()
    )


def _branches(strategy: str) -> list[Branch]:
    return [
        Branch(
            strategy=strategy,
            parameters={
                option: each.of(strategy, option) if isinstance(each, _Times) else each for option, each in row.items()
            },
        )
        for row in _TABLE[strategy]
    ]
