"""Questions about the user's documents: written by a language model (`generate_benchmark`) or checked
(`validate_benchmark`).
"""

from __future__ import annotations

from chunkcore.questions.filters import FilterThresholds
from chunkcore.questions.generate import (
    CallBudget,
    Generated,
    GenerationOptions,
    Journal,
    Rejection,
    estimate_generation,
    generate_benchmark,
)
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
