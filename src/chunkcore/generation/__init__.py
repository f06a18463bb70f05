"""Questions of one's own: written by a language model over one's own documents, or by hand and checked.

samples.py   which passage is asked about           prompts.py   what the model is asked
excerpts.py  from its answer to places              budget.py    what it may cost
journal.py   every call written down                journaled.py a model with the journal in front
making.py    question after question                filters.py   duplicates, and excerpts that do not belong
generate.py  all of it, as one function             options.py   how
files.py     what is written                        page.py      the filters' distributions, as plots
validate.py  what is wrong with questions, whoever wrote them
"""

from chunkcore.generation.budget import CallBudget
from chunkcore.generation.filters import FilterThresholds
from chunkcore.generation.generate import Generated, estimate_generation, generate_benchmark
from chunkcore.generation.journal import Journal
from chunkcore.generation.making import Rejection
from chunkcore.generation.options import GenerationOptions
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
