"""The tests of the frameworks that our drop-ins fail, and why; docs/peers.md says more."""

from __future__ import annotations

__all__ = ["ADDED", "KNOWN"]

# The reason is checked: without the additions the test must pass.
ADDED = "on purpose: the documents have an id, and metadata that say where they stand"

_UNIT = "tests/unit_tests/test_text_splitters.py"

KNOWN: dict[str, dict[str, str]] = {
    "langchain": {
        f"{_UNIT}::test_create_documents": ADDED,
        f"{_UNIT}::test_create_documents_with_metadata": ADDED,
        f"{_UNIT}::test_create_documents_with_start_index[splitter0-foo bar baz 123-expected_docs0]": ADDED,
        f"{_UNIT}::test_create_documents_with_start_index[splitter1-w1 w1 w1 w1 w1 w1 w1 w1 w1-expected_docs1]": ADDED,
        f"{_UNIT}::test_metadata_not_shallow": ADDED,
        f"{_UNIT}::test_split_documents": ADDED,
    },
    "llamaindex": {},  # its source distribution ships no tests
    "haystack": {},  # neither does Haystack's
}
