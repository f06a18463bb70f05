"""`Measure`: what is scored, as a value that has a name.

How much was retrieved, whatever its order:

    Recall          relevant units retrieved / relevant units
    Precision       relevant units retrieved / retrieved units, repeats included
    IoU             relevant units retrieved / (relevant + retrieved - relevant retrieved)
    F1              2 · relevant units retrieved / (relevant + retrieved)
    PrecisionOmega  Precision where exactly the chunks that hold evidence are retrieved; see `score` on repeats
    HitRate         1 where a relevant unit was retrieved, else 0

How early; what a piece brings is the relevant units in it that no better piece held:

    MRR             1 / the rank of the first piece that brings something
    MAP             precision down to the piece that brings a relevant unit, the mean over all relevant units
    nDCG            what each piece brings, over log2(rank + 1), summed; over the most that any pieces could reach
    DCG             the share of each piece that is what it brings, over log2(rank + 1), summed; at most 2.95 at 5
    ChunkPrecision  the share of each piece that is what it brings, the mean over the pieces

A unit is a token, a character, a sentence, a whole document, or a part: one of the short documents that a long one was
stitched from. docs/measures.md works an example of each.

How good an answer is that was written from the best k pieces, whose unit is the answer (`chunkcore.answers`,
docs/answers.md): ExactMatch, SquadF1, RougeL, Bleu1, Bleu4, Meteor, BertScore, Accuracy, AnswerCosine, Faithfulness
and Relevancy.

Sources: the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics", for the first five;
the paper on the Dual Semantic Chunker, Table 2, for DCG, whose gain it leaves open and is read so here. MRR, MAP
and nDCG of documents are those of trec_eval; of smaller units they are the same definitions, counted in those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from chunkcore.errors import OptionError

__all__ = [
    "ANSWER_MEASURES",
    "Depth",
    "Measure",
    "MeasureName",
    "Unit",
    "as_measure",
    "budget_of",
    "describe_depth",
    "measures_at",
    "parse_depth",
    "parse_measure",
    "retrieval_measures",
]

MeasureName = Literal[
    "Recall",
    "Precision",
    "IoU",
    "F1",
    "PrecisionOmega",
    "HitRate",
    "MRR",
    "MAP",
    "nDCG",
    "DCG",
    "ChunkPrecision",
    "ExactMatch",
    "SquadF1",
    "RougeL",
    "Bleu1",
    "Bleu4",
    "Meteor",
    "BertScore",
    "Accuracy",
    "AnswerCosine",
    "Faithfulness",
    "Relevancy",
]
Depth = int | str
Unit = Literal["token", "character", "sentence", "document", "part", "answer"]

_USUAL: tuple[MeasureName, ...] = ("Recall", "Precision", "IoU", "F1")
_WHOLE_RANKING = ("MRR", "MAP", "nDCG")
ANSWER_MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)[get_args(MeasureName).index("ExactMatch") :]
_OF_PARTS = ("PrecisionOmega", "ChunkPrecision")  # a document has no share of itself that is relevant
_WRITTEN = re.compile(r"(?P<name>\w+)(?:@(?P<k>\w+))?(?:\[(?P<unit>\w+)\])?", re.ASCII)
_BUDGET = re.compile(r"([1-9][0-9]{0,8})tok")
_EXPECTED = 'a whole number from 1 to 999,999,999, "min", or a budget of tokens like "4096tok"'


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, how much of the ranking it looks at, and what it counts.

    Attributes:
        name: one of the names above.
        k: the best k pieces; "min" for as many as the chunks that hold the query's evidence; "4096tok" for
            the best pieces up to 4,096 retrieved tokens, the last one cut there. None for PrecisionOmega,
            which needs no ranking, and for MRR, MAP and nDCG of all that was retrieved.
        unit: tokens, characters, sentences, documents, or the parts of stitched documents; "answer" of those of
            answers, whatever was left out.

    Raises:
        OptionError: an unknown name or unit, or a k or a unit that does not go with the name.

    >>> str(Measure("Recall", 5)), str(Measure("Recall", "min", "character")), str(Measure("IoU", "4096tok"))
    ('Recall@5', 'Recall@min[character]', 'IoU@4096tok')
    """

    name: MeasureName
    k: Depth | None = None
    unit: Unit = "token"

    def __post_init__(self) -> None:
        if self.name not in get_args(MeasureName):
            raise OptionError(f"unknown measure {self.name!r}: expected one of {', '.join(get_args(MeasureName))}")
        if self.name in ANSWER_MEASURES and self.unit == "token":
            object.__setattr__(self, "unit", "answer")
        if self.unit not in get_args(Unit):
            raise OptionError(f"unknown unit {self.unit!r} of {self.name}: expected one of {', '.join(get_args(Unit))}")
        if self.unit == "document" and self.name in _OF_PARTS:
            raise OptionError(f"{self.name} is of parts of documents: expected a smaller unit than document")
        if (self.unit == "answer") != (self.name in ANSWER_MEASURES):
            raise OptionError(f"{self.name} is not of the unit {self.unit}: leave the unit out")
        if self.unit == "answer" and self.k == "min":
            raise OptionError(f"{self.name} needs k, a number of pieces or a budget of tokens, got k='min'")
        if self.name == "PrecisionOmega":
            if self.k is not None:
                raise OptionError(f"PrecisionOmega looks at no ranking and takes no k, got k={self.k!r}")
        elif not (_is_depth(self.k) or (self.k is None and self.name in _WHOLE_RANKING)):
            raise OptionError(f"{self.name} needs k, {_EXPECTED}, got k={self.k!r}")

    @property
    def is_share(self) -> bool:
        """Whether scores are from 0 to 1, so that percent can be told of them. Those of DCG can be more."""
        return self.name != "DCG"

    def __str__(self) -> str:
        depth = "" if self.k is None else f"@{self.k}"
        unit = "" if self.unit in ("token", "answer") else f"[{self.unit}]"
        return f"{self.name}{depth}{unit}"


def _is_depth(k: object) -> bool:
    if type(k) is int:
        return 1 <= k < 10**9
    return k == "min" or budget_of(k) is not None


def budget_of(k: object) -> int | None:
    """The tokens of a depth that is a budget; None of any other.

    >>> budget_of("4096tok"), budget_of(5), budget_of("min")
    (4096, None, None)
    """
    found = _BUDGET.fullmatch(k) if isinstance(k, str) else None
    return int(found[1]) if found else None


def describe_depth(k: Depth) -> str:
    """A depth in words.

    >>> describe_depth(5), describe_depth("4096tok")
    ('k = 5', '4,096 tokens')
    """
    budget = budget_of(k)
    return f"k = {k}" if budget is None else f"{budget:,} tokens"


def parse_depth(text: str) -> Depth:
    """The depth that ``str(depth)`` wrote.

    Raises:
        OptionError: the text is none.

    >>> parse_depth("5"), parse_depth("min"), parse_depth("4096tok")
    (5, 'min', '4096tok')
    """
    k = _number_or_text(text)
    if not _is_depth(k):
        raise OptionError(f"expected {_EXPECTED}, got {text!r}")
    return k


def _number_or_text(text: str) -> Depth:
    # Python refuses to read numbers of thousands of digits; so long a one stays text, and is refused by name.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


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
    k = None if found["k"] is None else _number_or_text(found["k"])
    return Measure(found["name"], k, found["unit"] or "token")  # type: ignore[arg-type]


def as_measure(measure: Measure | str) -> Measure:
    """A measure, or the one that a string names."""
    return measure if isinstance(measure, Measure) else parse_measure(measure)


def retrieval_measures(measures: Iterable[Measure | str]) -> list[Measure]:
    """The measures, each once, all of which a run without answers can be scored by.

    Raises:
        OptionError: one is none, or is of answers.
    """
    found = list(dict.fromkeys(map(as_measure, measures)))
    for measure in found:
        if measure.unit == "answer":
            raise OptionError(
                f"{measure} is of answers, and only retrieval is scored here: see chunkcore answer --help, or "
                "chunkcore.answers"
            )
    return found


def measures_at(ks: Iterable[Depth] = (5, 10, "min"), units: Iterable[Unit] = ("token", "character")) -> list[Measure]:
    """Recall, Precision, IoU and F1 at every k, then PrecisionOmega, for each unit.

    >>> [str(measure) for measure in measures_at([5], ["token"])]
    ['Recall@5', 'Precision@5', 'IoU@5', 'F1@5', 'PrecisionOmega']
    """
    depths = list(ks)
    found = []
    for unit in units:
        found += [Measure(name, k, unit) for k in depths for name in _USUAL]
        if unit != "document":
            found.append(Measure("PrecisionOmega", None, unit))
    return found
