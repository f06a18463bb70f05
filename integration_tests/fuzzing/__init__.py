"""Targets of fuzzing (tests/fuzzing/) that need packages which the core does without."""
