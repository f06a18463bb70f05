"""Questions about one's own documents: written by a language model, or by hand and checked.

prompts.py   the passage that is asked about, the prompt, and from the answer's excerpts to spans
journal.py   every call to the model on disk before its answer is used; a cap on calls and cost
generate.py  question after question, then the filters: `generate_benchmark`
filters.py   drops duplicates, and questions whose excerpts do not fit them
page.py      the files, and a page with the distributions that the thresholds come from
validate.py  what is wrong with questions, whoever wrote them: `validate_benchmark`
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
