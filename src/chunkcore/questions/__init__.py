"""Questions of one's own: written by a language model over one's own documents, or by hand and checked.

samples.py   which passage is asked about           prompts.py   what the model is asked
excerpts.py  from its answer to places              budget.py    what it may cost
journal.py   every call written down                journaled.py a model with the journal in front
making.py    question after question                filters.py   duplicates, and excerpts that do not belong
generate.py  all of it, as one function             options.py   how
files.py     what is written                        page.py      the filters' distributions, as plots
validate.py  what is wrong with questions, whoever wrote them
"""

from __future__ import annotations

from chunkcore.questions.filters import FilterThresholds
from chunkcore.questions.generate import (
    Generated,
    GenerationOptions,
    Rejection,
    estimate_generation,
    generate_benchmark,
)
from chunkcore.questions.journal import CallBudget, Journal
from chunkcore.questions.validate import Finding, ValidationOptions, validate_benchmark

__all__ = [
    "CallBudget",
    "FilterThresholds",
    "Finding",
    "Generated",
    "GenerationOptions",
    "Journal",
    "Rejection",
    "ValidationOptions",
    "estimate_generation",
    "generate_benchmark",
    "validate_benchmark",
]
