"""Strategies as strings and dictionaries: what parses, what comes back, and what the errors say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field, fields

import pytest
from chunkcore.chunkers import Chunker, Draft, FixedToken, Recursive, chunkers, get_chunker
from chunkcore.errors import DataError, OptionError
from chunkcore.retrieval import chunk_corpus
from chunkcore.study.comparing import build_chunkers
from chunkcore.text import Document, Mark, Span
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.strategies import hard_text


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("fixed_token", FixedToken()),
        ("fixed_token:", FixedToken()),
        (" fixed_token : size = 50 , overlap = 5 ", FixedToken(size=50, overlap=5)),
        ("recursive:counter=words,keep=end", Recursive(counter="words", keep="end")),
        ("recursive:strip=false,regex=true", Recursive(strip=False, regex=True)),
        (r'recursive:separators=["\n\n",", ","]"]', Recursive(separators=("\n\n", ", ", "]"))),
        (r'recursive:separators=["\"", "\\"],size=9', Recursive(separators=('"', "\\"), size=9)),
        ('recursive:keep="drop"', Recursive(keep="drop")),
        ("fixed_token:counter=hf:some/model=1", None),
    ],
)
def test_specs(spec: str, expected: Chunker | None) -> None:
    chunker = get_chunker(spec)
    if expected is None:
        assert chunker.token_counter.name == "hf:some/model=1"
    else:
        assert chunker == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "unknown chunker '': chunkcore list chunkers shows all 2"),
        ("recursive:sise=3", "recursive has no option 'sise': expected some of counter, size"),
        ("semantic", "did you mean 'cluster_semantic', or 'breakpoint', which is"),
        ("token:size=3", "did you mean 'fixed_token'"),
        ("recursive:chunk_size=3,chunk_overlap=1", "did you mean 'overlap' and 'size'?"),
        ("recursive:is_separator_regex=true", "did you mean 'regex'"),
        ("recursive:size", "expected option=value, got 'size'"),
        ("recursive:size=3,size=4", "the option size is given twice"),
        ("recursive:size=three", "recursive: size is a whole number; got 'three'"),
        ("recursive:size=NaN", "size is a whole number; got 'NaN'"),
        ("recursive:strip=False", "strip is true or false; got 'False'"),
        ("recursive:separators=[1]", r"separators is a list of: a string; got \[1\]"),
        ('recursive:separators=["a",', "a bracket is not closed"),
        ('recursive:keep="end', "a quote is not closed"),
    ],
)
def test_errors_name_the_option_the_value_and_what_was_expected(spec: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        get_chunker(spec)


LLM = "llm=openai:m@http://127.0.0.1:9/v1"
# A chunker with a wrong option, and what the error says.
WRONG = {
    "fixed_token:size=0": "size is at least 1, got 0",
    "fixed_token:size=5,overlap=5": r"overlap is at least 0 and less than size \(5\).*got 5",
    "fixed_token:counter=cl200k": "unknown token counter 'cl200k'",
    "sentence:overlap=topical": 'overlap is a whole number, "semantic"',
    "sentence:overlap=semantic:2": "the threshold of a semantic overlap is -1 to 1",
    "recursive:size=9,overlap=10": r"overlap is at least 0 and at most size \(9\), got 10",
    "recursive:separators=[]": "separators holds at least one string",
    "recursive:keep=middle": "keep is one of 'start', 'end', 'drop'; got 'middle'",
    'recursive:separators=["(b"],regex=true': r"'\(b' is no regular expression .*; correct it, or set regex=false",
    "sentence:size=5,maximum=4": "maximum is at least size",
    "sentence:splitter=none": "unknown sentence splitter",
    "fixed_sentences:sentences=0": "sentences is at least 1",
    "markdown:heading_level=7": "heading_level is at least 0 and at most 6",
    "breakpoint:threshold=mean": "threshold is one of 'percentile'",
    "breakpoint:amount=101": "amount is at least 0 and at most 100, or null for none, got 101",
    "breakpoint:threshold=distance,amount=2.1": "amount is at least 0 and at most 2, or null for none, got 2.1",
    "breakpoint:minimum=9,size=8": r"minimum is at least 0 and at most size \(8\), got 9",
    "breakpoint:splitter=regex:(": "is no regular expression",
    'kamradt:embedder=" "': "the embedder ' ' names no model",
    "kamradt_modified:piece_size=301": r"at most size \(200\), or null for none, got 301",
    "kamradt_modified:goal=median": "goal is one of 'maximum', 'mean'",
    "dual_semantic:d=0": "d is at least 1, got 0",
    "cluster_semantic:size=5": r"at most size \(5\), got 50",
    "cluster_semantic:mean=1.01": "mean is .*1",
    "single_linkage:position_weight=1.5": "position_weight is at least 0 and at most 1, got 1.5",
    "dbscan:eps=0": "eps is over 0",
    "dbscan:size=0": "size is at least 1, or null for none, got 0",
    "hierarchical:window=0": "window is at least 1, got 0",
    f"lumber:minimum=900,{LLM}": r"minimum is at least 0 and at most size \(800\), got 900",
    f"lumber:paragraph_end=(,{LLM}": "paragraph_end '\\(' is no regular expression",
    f"contextual:chunker=recursiv,{LLM}": "unknown chunker 'recursiv'",
}


@pytest.mark.parametrize("spec", WRONG)
def test_a_wrong_option_is_named_with_what_was_expected(spec: str) -> None:
    with pytest.raises(OptionError, match=WRONG[spec]):
        get_chunker(spec)


recursives = st.builds(
    Recursive,
    size=st.integers(5, 10**6),
    overlap=st.integers(0, 5),
    separators=st.lists(st.text(max_size=6), min_size=1, max_size=5).map(tuple),
    keep=st.sampled_from(["start", "end", "drop"]),
    strip=st.booleans(),
    size_of=st.sampled_from(["pieces", "text"]),
    counter=st.sampled_from(["words", "characters", "cl100k_base", "hf:a b,c=[d", 'hf:"', "hf:true"]),
)


@given(recursives)
def test_every_form_comes_back_equal(chunker: Recursive) -> None:
    assert get_chunker(chunker.spec) == chunker
    assert get_chunker(chunker.label) == chunker
    assert get_chunker(json.loads(json.dumps(chunker.to_dict()))) == chunker
    assert get_chunker(chunker.spec).fingerprint == chunker.fingerprint


def test_a_label_holds_what_differs_from_the_defaults() -> None:
    assert Recursive().label == "recursive:size=200"
    assert Recursive(overlap=20, separators=("\n",)).label == r'recursive:size=200,overlap=20,separators=["\n"]'
    assert FixedToken(counter="words", size=200).label == "fixed_token:counter=words,size=200"


def test_a_name_serves_one_strategy() -> None:
    with pytest.raises(OptionError, match="the chunker name 'recursive' is taken by Recursive"):
        chunkers.register("recursive")(FixedToken)
    assert FixedToken.name == "fixed_token"
    assert list(chunkers) == sorted(chunkers)
    assert {"cluster_semantic", "fixed_token", "recursive"} <= set(chunkers)


def test_dictionaries() -> None:
    assert get_chunker("fixed_token", size=5) == FixedToken(size=5)
    with pytest.raises(OptionError, match="unknown chunker 'x'"):
        get_chunker({"name": "x"})
    with pytest.raises(OptionError, match="unknown chunker None"):
        get_chunker({})


def test_an_option_without_a_name_cannot_be_written() -> None:
    class Anonymous(type(FixedToken().token_counter)):  # type: ignore[misc]
        def __init__(self) -> None:
            self.name = None

    with pytest.raises(OptionError, match="the option counter holds a Anonymous, which has no name"):
        FixedToken(counter=Anonymous()).to_dict()


@pytest.mark.parametrize("workers", [1, 3])
def test_many_documents_are_read_only_as_far_ahead_as_needed(workers: int) -> None:
    read = []

    def stream():
        for number in range(1000):
            read.append(number)
            yield Document(str(number), "word " * 45_000)

    chunks = FixedToken(size=15_000, counter="words").chunk_many(stream(), workers=workers)
    assert [next(chunks).document_id for _ in range(4)] == ["0", "0", "0", "1"]
    assert len(read) <= 5 * workers + 2
    chunks.close()


@given(st.lists(hard_text(max_parts=8), max_size=12), st.sampled_from([1, 2]))
def test_documents_that_are_split_together_do_not_touch_each_other(texts: list[str], workers: int) -> None:
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    for chunker in (
        Recursive(size=6, overlap=3),
        Recursive(size=5, counter="words", separators=("\n", "."), keep="drop"),
        Recursive(size=9, counter="o200k_base", size_of="text", separators=(r"(?<=\.)", r"$"), regex=True),
        FixedToken(size=4, overlap=1, counter="words"),
        FixedToken(size=3),
    ):
        expected = [chunk for document in documents for chunk in chunker.chunk(document)]
        assert list(chunker.chunk_many(documents, workers=workers)) == expected


def test_an_error_in_a_worker_reaches_the_caller() -> None:
    chunks = FixedToken().chunk_many([Document("a", "b"), "c"], workers=2)  # type: ignore[list-item]
    with pytest.raises(DataError, match="is a chunkcore Document"):
        list(chunks)


@dataclass(frozen=True, kw_only=True)
class Ends(Chunker):
    """One chunk: the first and the last word."""

    name = "test-ends"
    tokens_only = True
    words: list[str] = field(default_factory=list)

    def cut(self, source):
        found = []
        for start, end in source.parts.tolist():
            words = [match.span() for match in re.finditer(r"\S+", source.text[start:end])]
            found.append(Draft(tuple(Span(start + a, start + b) for a, b in (words[0], words[-1]))))
        return found


def test_a_strategy_with_a_list_as_an_option_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(chunkers.entries, "test-ends", Ends)
    assert list(build_chunkers(["test-ends"])) == ["test-ends"]


def test_documents_that_are_split_together_have_chunks_in_their_own_places():
    documents = [Document(str(number), f"one {number} and last{number}") for number in range(4)]
    for workers in (1, 2):
        found = list(Ends(counter="words").chunks_per_document(documents, workers=workers))
        assert found == [Ends(counter="words").chunk(document) for document in documents]
    (chunk,) = found[3]
    assert (chunk.spans, chunk.text, chunk.token_count) == ((Span(0, 3), Span(10, 15)), "one last3", 2)


@dataclass(frozen=True, kw_only=True)
class Whole(Chunker):
    embedder: FakeEmbedder | None = None

    def cut(self, source):
        return [] if threading.current_thread() is threading.main_thread() else source.parts


def test_a_chunker_cuts_in_threads_by_default_where_it_asks_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    documents = [Document("a", "x"), Document("b", "y")]
    assert len(chunk_corpus(documents, Whole(embedder=FakeEmbedder()))) == 2
    monkeypatch.setattr(Whole, "option_names", staticmethod(lambda: ("counter",)))
    assert len(chunk_corpus(documents, Whole(embedder=FakeEmbedder()))) == 0, "in the thread that asked"


def test_documents_are_chunked_alike_in_threads_where_a_model_is_asked():
    documents = [Document(str(number), f"It is {number}. Or is it? So it is.") for number in range(5)]
    chunker = get_chunker("breakpoint", embedder=FakeEmbedder(), size=20)
    expected = list(map(chunker.chunk, documents))
    assert list(chunker.chunks_per_document(documents, workers=3)) == expected


def test_a_fingerprint_is_of_the_model_and_not_of_its_name():
    first, second = FakeEmbedder(name="one"), FakeEmbedder(name="one")
    second.fingerprint = "other weights"
    assert len({get_chunker("breakpoint", embedder=model).fingerprint for model in (first, second)}) == 2


def test_a_chunk_on_no_page_names_none():
    document = Document("d", "One two. Three four.", marks=(Mark("page", Span(0, 8), {"number": 1}),))
    first, second = get_chunker("sentence:size=2,counter=words").chunk(document)
    assert (first.metadata, second.metadata) == ({"pages": [1]}, {})


def test_threads_that_are_the_first_to_name_strategies_find_them() -> None:
    program = """
from concurrent.futures import ThreadPoolExecutor
from chunkcore import get_chunker
with ThreadPoolExecutor(4) as pool:
    specs = ["kamradt_modified:size=300", "dbscan", "kamradt_modified:size=200", "recursive:size=200", "sentence"]
    print(len(list(pool.map(get_chunker, specs))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "5\n", done.stderr


def test_options_of_one_meaning_have_one_default_in_every_strategy() -> None:
    """A size that only limits what meaning decides has its own: the papers have none there."""
    limits = {"breakpoint": None, "kamradt": None, "hierarchical": 1024}
    limits |= {"lumber": 800, "agentic": 800, "llm_semantic": 800}
    expected = {"minimum": 0, "maximum": None, "size_of": "pieces", "overlap": 0, "counter": "cl100k_base"}
    for name, cls in chunkers.items():
        if not cls.__module__.startswith("chunkcore."):
            continue
        defaults = {field.name: field.default for field in fields(cls)}
        assert defaults.get("size", 200) == limits.get(name, 200), name
        assert {option: defaults.get(option, value) for option, value in expected.items()} == expected, name
