"""`Measure`: what is scored, as a value that has a name.

    Recall          relevant units retrieved / relevant units
    Precision       relevant units retrieved / retrieved units, repeats included
    IoU             relevant units retrieved / (relevant + retrieved - relevant retrieved)
    F1              2 · relevant units retrieved / (relevant + retrieved)
    PrecisionOmega  the same where exactly the chunks that hold evidence are retrieved; see `evaluate` on repeats

Source: the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from chunkcore.errors import OptionError

__all__ = ["Depth", "Measure", "MeasureName", "Unit", "as_measure", "measures_at", "parse_measure"]

MeasureName = Literal["Recall", "Precision", "IoU", "F1", "PrecisionOmega"]
Depth = int | Literal["min"]
Unit = Literal["token", "character"]

_WRITTEN = re.compile(r"(?P<name>\w+)(?:@(?P<k>\w+))?(?:\[(?P<unit>\w+)\])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, how many retrieved pieces it looks at, and what it counts.

    Attributes:
        name: Recall, Precision, IoU, F1 or PrecisionOmega.
        k: the best k pieces; "min" for as many as the chunks that hold the query's evidence; None for
            PrecisionOmega, which needs no ranking.
        unit: tokens or characters.

    Raises:
        OptionError: an unknown name or unit, or a k that does not go with the name.

    >>> str(Measure("Recall", 5)), str(Measure("Recall", "min", "character"))
    ('Recall@5', 'Recall@min[character]')
    """

    name: MeasureName
    k: Depth | None = None
    unit: Unit = "token"

    def __post_init__(self) -> None:
        if self.name not in get_args(MeasureName):
            raise OptionError(f"unknown measure {self.name!r}: expected one of {', '.join(get_args(MeasureName))}")
        if self.unit not in get_args(Unit):
            raise OptionError(f"unknown unit {self.unit!r} of {self.name}: expected token or character")
        if self.name == "PrecisionOmega":
            if self.k is not None:
                raise OptionError(f"PrecisionOmega looks at no ranking and takes no k, got k={self.k!r}")
        elif self.k != "min" and (type(self.k) is not int or self.k < 1):
            raise OptionError(f'{self.name} needs k, a whole number from 1 or "min", got k={self.k!r}')

    def __str__(self) -> str:
        depth = "" if self.k is None else f"@{self.k}"
        unit = "" if self.unit == "token" else f"[{self.unit}]"
        return f"{self.name}{depth}{unit}"


def parse_measure(text: str) -> Measure:
    """The measure that ``str(measure)`` wrote.

    Raises:
        OptionError: the text names no measure.

    >>> parse_measure("IoU@10[character]")
    Measure(name='IoU', k=10, unit='character')
    """
    found = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise OptionError(f"{text!r} is no measure: expected something like Recall@5, IoU@min or Recall@5[character]")
    k = found["k"]
    # Python refuses to read numbers of thousands of digits; so long a k stays text, and is refused by name.
    depth = int(k) if k is not None and k.isdecimal() and len(k) < 10 else k
    return Measure(found["name"], depth, found["unit"] or "token")  # type: ignore[arg-type]


def as_measure(measure: Measure | str) -> Measure:
    """A measure, or the one that a string names."""
    return measure if isinstance(measure, Measure) else parse_measure(measure)


def measures_at(ks: Iterable[Depth] = (5, 10, "min"), units: Iterable[Unit] = ("token", "character")) -> list[Measure]:
    """Every measure at every k, then PrecisionOmega, for each unit.

    >>> [str(measure) for measure in measures_at([5], ["token"])]
    ['Recall@5', 'Precision@5', 'IoU@5', 'F1@5', 'PrecisionOmega']
    """
    ranked = [name for name in get_args(MeasureName) if name != "PrecisionOmega"]
    depths = list(ks)
    return [
        measure
        for unit in units
        for measure in [
            *(Measure(name, k, unit) for k in depths for name in ranked),
            Measure("PrecisionOmega", None, unit),
        ]
    ]
