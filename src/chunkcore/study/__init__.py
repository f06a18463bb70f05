"""Studies: which systems are run and scored, and what is compared with what.

experiment.py   `run_experiment`: systems to reports; `run_retriever`: any retriever to a run
behind.py       passages behind a retriever, as a stage of an experiment
enough.py       `calibrate`: how many tokens hold the evidence, and whether it is there, with a promise
tuning.py       `tune`: the choice among many, scored on questions that did not choose it
comparing.py    `compare_systems`: what ``chunkcore compare`` does
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.evaluation.results import System as System
    from chunkcore.study.comparing import (
        StudySettings as StudySettings,
        compare_systems as compare_systems,
    )
    from chunkcore.study.enough import calibrate as calibrate
    from chunkcore.study.experiment import (
        run_experiment as run_experiment,
        run_retriever as run_retriever,
    )
    from chunkcore.study.tuning import TuneOptions as TuneOptions, Tuning as Tuning, tune as tune

on_first_use(
    __name__,
    {
        "chunkcore.evaluation.results": "System",
        "chunkcore.study.comparing": "StudySettings compare_systems",
        "chunkcore.study.enough": "calibrate",
        "chunkcore.study.experiment": "run_experiment run_retriever",
        "chunkcore.study.tuning": "TuneOptions Tuning tune",
    },
)
