"""Tuning: find the best strategy and options, and estimate the score on new questions.

space.py: what is searched. trials.py: options, trials and their log. tuner.py: `tune`. choosing.py: choosing and
held-out scores. result.py: `Tuning`, and snippets to paste.
"""

from chunkcore.tuning.choosing import Choice, Gap, StrategyChoices
from chunkcore.tuning.result import Fold, Tuning, snippets
from chunkcore.tuning.space import (
    Branch,
    Range,
    Space,
    Values,
    default_space,
    grid_space,
    known_space,
    load_space,
    parse_grid,
    parse_space,
    retriever_values,
)
from chunkcore.tuning.trials import Goal, Trial, TuneOptions
from chunkcore.tuning.tuner import tune

__all__ = [
    "Branch",
    "Choice",
    "Fold",
    "Gap",
    "Goal",
    "Range",
    "Space",
    "StrategyChoices",
    "Trial",
    "TuneOptions",
    "Tuning",
    "Values",
    "default_space",
    "grid_space",
    "known_space",
    "load_space",
    "parse_grid",
    "parse_space",
    "retriever_values",
    "snippets",
    "tune",
]
