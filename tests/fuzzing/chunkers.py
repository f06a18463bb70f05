"""Strategies with generated options: every registered one, and every option that it has."""

from __future__ import annotations

from functools import cache
from typing import Any

from chunkcore.boundaries.code import LANGUAGES
from chunkcore.chunkers import Chunker, get_chunker
from chunkcore.chunkers import chunkers as registry
from chunkcore.chunkers.semantic import SemanticOverlap
from chunkcore.errors import OptionError
from hypothesis import reject
from hypothesis import strategies as st

from tests.fuzzing.models import EMBEDDERS, LLMS, normalising_tokenizer

__all__ = ["NAMES", "chunkers", "counters"]

NAMES = tuple(name for name, cls in registry.items() if cls.__module__.startswith("chunkcore."))

_few, _some = st.integers(0, 6), st.integers(1, 60)
_splitters = st.sampled_from(
    ["default", "default", r"regex:(?<=[.?!])\s+", r"regex:\n", "regex:.", r"regex:\b", "regex:"]
)
_shares = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.5, 0.9, 1.0])
_semantic = st.builds(SemanticOverlap, threshold=_shares, embedder=st.sampled_from(EMBEDDERS))
_separators = st.sampled_from(
    [("\n\n", "\n", " ", ""), ("",), (" ",), ("\n", ""), ("the", ". ", ""), ("aa", "a", ""), ("。", "\r\n", "\r", "")]
)
_patterns = st.sampled_from([(r"(?<=[.!?])\s+", r"\s"), ("(a)|b", ""), (r"\b", ""), ("", "x*"), (r"(?=\n)", r"[^a-z]")])

# By the name of an option, and for some by a strategy's name and the option's.
_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "size": _some,
    "minimum": _few,
    "maximum": st.none() | st.integers(1, 120),
    "overlap": _few,
    "sentence.overlap": _few | _semantic,
    "fixed_sentences.overlap": _few | _semantic,
    "piece_size": _some,
    "buffer": st.integers(0, 3),
    "splitter": _splitters,
    "embedder": st.sampled_from(EMBEDDERS),
    "llm": st.sampled_from(LLMS),
    "retries": st.integers(0, 1),
    "strict": st.just(value=False),  # True raises, as it says
    "window": st.integers(1, 120),
    "separators": _separators,
    "keep": st.sampled_from(["start", "end"]),
    "strip": st.booleans(),
    "regex": st.just(value=False),
    "overlap_sentences": st.integers(0, 3),
    "sentences": st.integers(1, 5),
    "chunks": st.none() | st.integers(1, 6),
    "threshold": st.sampled_from(
        ["percentile", "standard_deviation", "interquartile", "gradient", "distance", "absolute_gradient"]
    ),
    "amount": st.none() | st.sampled_from([0.1, 0.5, 1.0, 1.5, 50.0, 95.0]),
    "empty_end": st.booleans(),
    "goal": st.sampled_from(["maximum", "mean"]),
    "k": _shares | st.just(3.0),
    "d": st.integers(1, 10),
    "deviations": st.sampled_from([-1.0, 0.0, 0.5, 2.0]),
    "max_segment": st.none() | _some,
    "position_weight": st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    "stop": st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]),
    "eps": st.sampled_from([0.01, 0.3, 0.9]),
    "min_samples": st.integers(1, 4),
    "mean": st.none() | st.sampled_from([-0.5, 0.0, 0.3, 0.9]),
    "heading_level": st.integers(0, 6),
    "content": st.sampled_from(["source", "source", "text"]),
    "language": st.sampled_from(["auto", "other", *LANGUAGES]),
    "paragraph_end": st.sampled_from([r"\n\s*\n", r"\n", "", "."]),
    "passage_size": _some,
    "context_size": _some,
    "document_size": st.integers(1, 200),
    "chunker": st.sampled_from(
        ["recursive:size=8", "sentence:size=30,overlap=9,counter=characters", "fixed_sentences:overlap=1,sentences=2"]
    ),
    "recursive.size_of": st.sampled_from(["pieces", "text"]),
    "dual_semantic.size_of": st.sampled_from(["pieces", "text"]),
    "cluster_semantic.size_of": st.sampled_from(["pieces", "text"]),
    "kamradt_modified.piece_size": st.none() | _some,
    "breakpoint.size": st.none() | _some,
    "kamradt.size": st.none() | _some,
    "hierarchical.size": st.none() | _some,
    "single_linkage.size": st.none() | _some,
    "dbscan.size": st.none() | _some,
}
# What a strategy wants in ascending order; of two rows both hold.
_ASCENDING = (("minimum", "size", "maximum"), ("overlap", "size"), ("piece_size", "size"),
              ("minimum", "piece_size"), ("max_segment", "size"), ("passage_size", "size"),
              ("piece_size", "window"), ("piece_size", "size"))  # fmt: skip


def counters() -> st.SearchStrategy[str]:
    """The units that sizes are in."""
    ours = ["characters", "characters", "words", "words", "cl100k_base", "cl100k_base", "o200k_base"]
    other = normalising_tokenizer()
    return st.sampled_from([*ours, other] if other else ours)


@st.composite
def chunkers(
    draw: st.DrawFn, names: tuple[str, ...] = NAMES, *, without: tuple[str, ...] = (), named: bool = False
) -> Chunker:
    """A strategy and its options, most of them small, so that a short text has many chunks.

    Where it is to be `named`, names stand for models, as in a configuration file.
    """
    name = draw(st.sampled_from([each for each in names if each not in without]))
    options = draw(_options(name))
    if named:
        stand_ins = {"embedder": "fake", "llm": "openai:fake@http://localhost:9/v1"}
        options |= {option: stand_in for option, stand_in in stand_ins.items() if option in options}
        if isinstance(options.get("overlap"), SemanticOverlap):
            options["overlap"] = "semantic:0.3"
    if name == "recursive" and draw(st.integers(0, 3)) == 0:
        options |= {"regex": True, "separators": draw(_patterns)}
    for row in _ASCENDING:
        _sort(options, [option for option in row if type(options.get(option)) is int])
    try:
        return get_chunker(name, **options)
    except OptionError:
        reject()


@cache
def _options(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """What a strategy's options are drawn from; for an option that is not known here this fails."""
    own = {option: f"{name}.{option}" for option in registry[name].option_names() if option != "counter"}
    drawn = {option: _OPTIONS[full if full in _OPTIONS else option] for option, full in own.items()}
    return st.fixed_dictionaries({"counter": counters(), **drawn})


def _sort(options: dict[str, Any], names: list[str]) -> None:
    options |= zip(names, sorted(options[each] for each in names), strict=True)
