"""Tuning: which strategy, with which options, and what the choice is worth on questions that had no part in it.

space.py          what is searched      default_space.py, space_file.py   where it comes from
options.py        how                   proposal.py                       what is tried next, by Optuna
trial.py          one configuration     study_file.py                     the trials that are kept
folds.py          who is held out       held_out.py                       choosing, and scoring the choice
tuner.py          the search            result.py                         what it found
snippets.py       what to paste
"""

from chunkcore.tuning.result import Fold, Tuning, snippets
from chunkcore.tuning.space import Branch, Range, Space, Values, default_space, known_space
from chunkcore.tuning.trial import Trial, TuneOptions
from chunkcore.tuning.tuner import tune

__all__ = [
    "Branch",
    "Fold",
    "Range",
    "Space",
    "Trial",
    "TuneOptions",
    "Tuning",
    "Values",
    "default_space",
    "known_space",
    "snippets",
    "tune",
]
