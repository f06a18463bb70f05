"""What holds for any text, any options and any file, checked on as many generated ones as there is time for.

`targets.py` says what a target is, `of_*.py` are the targets by what they are of, `texts.py` and `chunkers.py` make
what they are tried on. `tests/test_fuzzing.py` tries some of each; ``make fuzz`` a million (docs/evidence/fuzzing.md).
"""
