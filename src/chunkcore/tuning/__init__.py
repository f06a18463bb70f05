"""Tuning: which strategy, with which options, and what the choice is worth on questions that had no part in it.

space.py      what is searched: ranges, lists, grids, and the usual values of each strategy
trials.py     one configuration: the options of a search, its trials, and the file that keeps them
tuner.py      `tune`: all combinations of a grid, or what Optuna proposes
choosing.py   choosing, and scoring the choice on other questions
result.py     what a search found, and what to paste
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
    "snippets",
    "tune",
]
