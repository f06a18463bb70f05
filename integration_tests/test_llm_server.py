"""Every strategy against a server, a process of its own, that fails in every way: nothing is lost, all is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest

from chunkcore import Document, ModelError, get_chunker, get_llm, load_dataset
from chunkcore.errors import NoAnswerError
from tests.fake_llm_server import FATAL, HARMLESS, LASTING

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed")

ROOT = Path(__file__).resolve().parents[1]
STRATEGIES = {
    "llm_semantic": "piece_size=20,window=100,size=60",
    "lumber": "window=60,size=60",
    "agentic": "piece_size=20,window=100,size=60",
    "propositions": "passage_size=50,size=60",
    "contextual": 'chunker="recursive:size=60"',
}
NUMBERS = ("out_of_range", "unsorted", "negative")
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fake_llm_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def asked(url: str) -> list[dict]:
    with urlopen(url.removesuffix("/v1") + "/log") as answer:
        return json.load(answer)


def build(strategy: str, url: str, fault: str, options: str = "tries=1", retries: int = 1):
    return get_chunker(f'{strategy}:{STRATEGIES[strategy]},retries={retries},llm="openai:{fault}@{url}#{options}"')


@pytest.fixture(scope="module")
def document() -> Document:
    manual = next(each for each in load_dataset("lochmere").documents if each.id.startswith("manual"))
    return Document("manual", manual.text[:900])


def check(chunker, document: Document) -> list:
    chunks = chunker.chunk(document)
    text = document.text
    covered = {place for chunk in chunks for span in chunk.spans for place in range(span.start, span.end)}
    assert all(character.isspace() or place in covered for place, character in enumerate(text))
    assert all(chunk.derived or chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert all(chunk.token_count <= 60 for chunk in chunks)
    return chunks


@every_strategy
@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_lasts_loses_no_text_and_is_told_in_the_metadata(url, document, strategy, fault):
    chunks = check(build(strategy, url, fault), document)
    told = [chunk.metadata["fallback_reason"] for chunk in chunks if "fallback" in chunk.metadata]
    if fault in NUMBERS and strategy in ("propositions", "contextual"):
        assert told == []  # there is no number in their answers
    else:
        assert len(told) > 0


@every_strategy
@pytest.mark.parametrize("fault", ["ok", *HARMLESS])
def test_what_is_no_fault_falls_back_nowhere(url, document, strategy, fault):
    assert not any("fallback" in chunk.metadata for chunk in check(build(strategy, url, fault), document))


@every_strategy
@pytest.mark.parametrize("fault", ["http_429*2", "http_500*2", "hanging*1", "refusal*1", "truncated*2"])
def test_what_passes_is_waited_for_or_asked_again(url, document, strategy, fault):
    before = len(asked(url))
    patience = 2 if fault == "hanging*1" else 60
    # A model a strategy, so that the server counts their questions apart.
    chunker = build(strategy, url, f"{fault}*{strategy}", f"tries=3&timeout={patience}&concurrency=1", retries=2)
    chunks = check(chunker, document)
    questions = [
        next(message["content"] for message in each["body"]["messages"] if message["role"] == "user")
        for each in asked(url)[before:]
    ]
    assert len(questions) - len(set(questions)) == int(fault[-1])
    assert not any("fallback" in chunk.metadata for chunk in chunks)


@every_strategy
@pytest.mark.parametrize("fault", FATAL)
def test_what_no_question_can_get_past_is_an_error(url, document, strategy, fault):
    with pytest.raises(ModelError) as told:
        build(strategy, url, fault).chunk(document)
    assert not isinstance(told.value, NoAnswerError)


@every_strategy
def test_a_server_that_is_too_slow_loses_no_text(url, document, strategy):
    chunks = check(build(strategy, url, "slow", "tries=1&timeout=0.05&concurrency=16", retries=0), document)
    assert all("gave no answer in 0.05 s" in chunk.metadata["fallback_reason"] for chunk in chunks if chunk.metadata)
    assert any(chunk.metadata for chunk in chunks)


def test_another_process_finds_the_answers_that_this_one_kept(url, document, tmp_path):
    options = f"tries=1&cache={tmp_path / 'answers.sqlite'}"
    chunkers = [build(strategy, url, "ok", options) for strategy in STRATEGIES]
    spans = [
        [[chunk.start, chunk.end, chunk.text, chunk.context] for chunk in check(chunker, document)]
        for chunker in chunkers
    ]
    before = len(asked(url))
    program = (
        "import json, sys; from chunkcore import *\n"
        "data = json.load(sys.stdin)\n"
        "chunkers = [get_chunker(each) for each in data['chunkers']]\n"
        "chunks = [chunker.chunk(Document('manual', data['text'])) for chunker in chunkers]\n"
        "found = [[[c.start, c.end, c.text, c.context] for c in each] for each in chunks]\n"
        "print(json.dumps([found, [get_llm(chunker.llm).usage.calls for chunker in chunkers]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"chunkers": [chunker.to_dict() for chunker in chunkers], "text": document.text}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [spans, [0] * len(chunkers)]
    assert len(asked(url)) == before


def test_a_strategys_usage_is_what_the_server_counted(url, document):
    chunker = build("lumber", url, "ok", "tries=1&max_tokens=77")
    before = len(asked(url))
    check(chunker, document)
    calls = len(asked(url)) - before
    usage = get_llm(chunker.llm).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (calls, 100 * calls, 10 * calls)
    assert usage.cached_tokens == 64 * calls
