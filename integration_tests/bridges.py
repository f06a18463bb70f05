"""What the tests of the three frameworks' models share: documents, and a server that fails in many ways."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from chunkcore import LLM, Document, ModelError, get_chunker
from tests.fake_llm_server import FATAL, LASTING

from integration_tests.toys import lost

KEY = "sk-very-secret-0123456789"
DOCUMENT = Document("tea.md", "\n\n".join(f"Paragraph {i} is about tea. It says {i} times so." for i in range(12)))
NUMBER = {"type": "integer", "minimum": 1, "maximum": 9}
SCHEMA = {"type": "object", "properties": {"first_changed": NUMBER}, "required": ["first_changed"]}
SCHEMA["additionalProperties"] = False
QUESTION = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Where?"}]

# Of the server's ways to fail those that clients tell in ways of their own, and three that harm nothing.
FAULTS = (
    *("refusal", "filtered", "prose", "null", "truncated", "http_429", "http_503", "filter_400", "html", "no_choices"),
    *("quota", "http_401", "http_404", "close"),
    *("without_schema", "no_usage", "ok"),
)


def assert_chunked_through(fault: str, llm: LLM) -> None:
    """A strategy that asks the model loses nothing, whatever the server does, or tells that it cannot be asked."""
    chunker = get_chunker("lumber", llm=llm, window=40, size=80, retries=1)
    if fault in FATAL:
        with pytest.raises(ModelError) as caught:
            chunker.chunk(DOCUMENT)
        assert KEY not in "".join(traceback.format_exception(caught.value))
        return
    chunks = chunker.chunk(DOCUMENT)
    assert not lost(DOCUMENT.text, [[(span.start, span.end) for span in chunk.spans] for chunk in chunks])
    assert any("fallback" in chunk.metadata for chunk in chunks) == (fault in LASTING)
    assert KEY not in str([chunk.metadata for chunk in chunks])


def bodies(log: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """What the server was sent for a model."""
    return [each["body"] for each in log if each["body"]["model"] == model]


def told_nowhere(key: str, *shown: Callable[[], Any]) -> None:
    """A key stands in nothing that is shown, written down or kept."""
    for each in shown:
        assert key not in str(each())
