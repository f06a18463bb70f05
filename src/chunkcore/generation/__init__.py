"""Questions of one's own: written by a language model over one's own documents, or by hand and checked.

samples.py   which passage is asked about        prompts.py   what the model is asked
excerpts.py  from its answer to places           journal.py   every call written down, none paid twice
generate.py  all of it                           filters.py   duplicates and excerpts that do not belong
page.py      the distributions, as plots         files.py     what is written
validate.py  what is wrong with questions, whoever wrote them
"""

from chunkcore.generation.filters import FilterThresholds
from chunkcore.generation.generate import (
    Generated,
    GenerationOptions,
    Rejection,
    estimate_generation,
    generate_benchmark,
)
from chunkcore.generation.journal import CallBudget, Journal
from chunkcore.generation.validate import Finding, ValidationOptions, validate_benchmark

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
