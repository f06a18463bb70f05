"""Tuning: find the best strategy and options, and estimate the score on new questions.

space.py: what is searched. trials.py: options, trials and their log. tuner.py: `tune`. choosing.py: choosing and
held-out scores. result.py: `Tuning`, and snippets to paste.
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.tuning.choosing import Choice as Choice
    from chunkcore.tuning.choosing import Gap as Gap
    from chunkcore.tuning.choosing import StrategyChoices as StrategyChoices
    from chunkcore.tuning.result import Fold as Fold
    from chunkcore.tuning.result import Tuning as Tuning
    from chunkcore.tuning.result import snippets as snippets
    from chunkcore.tuning.space import Branch as Branch
    from chunkcore.tuning.space import Range as Range
    from chunkcore.tuning.space import Space as Space
    from chunkcore.tuning.space import Values as Values
    from chunkcore.tuning.space import default_space as default_space
    from chunkcore.tuning.space import grid_space as grid_space
    from chunkcore.tuning.space import known_space as known_space
    from chunkcore.tuning.space import load_space as load_space
    from chunkcore.tuning.space import parse_grid as parse_grid
    from chunkcore.tuning.space import parse_space as parse_space
    from chunkcore.tuning.space import retriever_values as retriever_values
    from chunkcore.tuning.trials import Goal as Goal
    from chunkcore.tuning.trials import Trial as Trial
    from chunkcore.tuning.trials import TuneOptions as TuneOptions
    from chunkcore.tuning.tuner import tune as tune
