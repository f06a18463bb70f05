"""The documentation; `docs.making` makes the pages that come from the code."""
