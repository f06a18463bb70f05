"""The promises of every registered strategy, over any text."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from chunkcore.chunkers import Chunker, chunkers, get_chunker
from chunkcore.chunkers.semantic import SemanticOverlap
from chunkcore.errors import ModelError
from chunkcore.text import Document
from hypothesis import HealthCheck, given, settings

from tests.fakes import BROKEN, FakeEmbedder, FakeLLM
from tests.promises import check_promises, chunks_of
from tests.strategies import hard_text

SEMANTIC = SemanticOverlap(threshold=0.2, embedder=FakeEmbedder())

# What a property is held for. "semantic" is `SEMANTIC`.
EXAMPLES = r"""
fixed_token:size=7
fixed_token:size=5,overlap=4,counter=o200k_base
fixed_token:size=1,counter=words
fixed_token:size=3,overlap=1,counter=characters
fixed_token:size=6,overlap=4,minimum=6
recursive:size=8
recursive:size=20,overlap=9,keep=end,counter=o200k_base
recursive:size=12,counter=characters,size_of=text,strip=false
recursive:size=40,overlap=15,size_of=text
recursive:size=20,overlap=5,minimum=12
recursive:size=40,minimum=30,size_of=text,counter=characters
recursive:size=9,separators=["\n\n", "\n", ".", "!", " ", ""],size_of=text,overlap=9
recursive:size=6,separators=["(?<=[.!?])\\s+", "\\s"],regex=true,counter=words
recursive:size=30,overlap=10,separators=["\n", " "],keep=drop,counter=characters
recursive:size=1,overlap=1,separators=[""],counter=words,strip=false
breakpoint:threshold=percentile,minimum=4,size=40
breakpoint:threshold=standard_deviation,amount=0.5,buffer=0
breakpoint:threshold=interquartile,amount=0.5,size=30,counter=words
breakpoint:threshold=gradient,buffer=3,empty_end=true
breakpoint:threshold=distance,amount=0.4,minimum=20,counter=characters
breakpoint:threshold=absolute_gradient,splitter="regex:(?<=[.?!])\\s+"
kamradt
kamradt:amount=50.0,size=40,counter=words
kamradt_modified:size=30,minimum=12
kamradt_modified:size=40,goal=mean,piece_size=10,buffer=3
dual_semantic:k=0.0,size=40
dual_semantic:k=-1.0,d=5,minimum=10,size=40,counter=words
dual_semantic:k=-1.0,minimum=5,size=30,size_of=pieces
hierarchical:window=2,deviations=0,k=0.3,max_segment=30,size=40
hierarchical:window=1,deviations=-1,k=-1.0,max_segment=null,size=90,counter=words
hierarchical:size=null
single_linkage:position_weight=0.1,size=40
single_linkage:size=30,chunks=4,stop=0.8,counter=words
single_linkage:size=null,splitter="regex:(?<=[.?!])\\s+"
dbscan:position_weight=0.2,size=40,eps=0.4
dbscan:size=null,min_samples=1,counter=words
sentence:size=12,overlap=5
sentence:size=40,overlap=semantic,minimum=20,counter=characters
sentence:size=9,minimum=4,maximum=120,overlap_sentences=2,counter=words
sentence:size=30,minimum=30,maximum=120,overlap_sentences=1
fixed_sentences:sentences=2,overlap=1
fixed_sentences:sentences=3,minimum=9,overlap=semantic
fixed_sentences:chunks=3,overlap=1,splitter=regex:\n
markdown:size=12
markdown:size=9,minimum=4,maximum=120,counter=words
markdown:size=30,minimum=30,heading_level=2,counter=characters
llm_semantic:piece_size=8,window=60,size=40
llm_semantic:piece_size=4,window=20,size=12,minimum=7,counter=words,retries=0
lumber:window=30,size=40,minimum=40
lumber:window=9,size=12,paragraph_end=\n,counter=words
html:size=12
html:size=9,minimum=4,maximum=120,heading_level=2,counter=words
html:size=30,minimum=30,counter=characters
code:size=12
code:size=9,minimum=4,maximum=120,language=python,counter=words
code:size=30,minimum=30,language=cpp,counter=characters
auto:size=12
auto:size=9,minimum=4,maximum=120,counter=words
agentic:piece_size=8,window=60,size=40
agentic:piece_size=4,window=20,size=12,minimum=5,counter=words,retries=1
propositions:passage_size=20,size=30
propositions:passage_size=5,size=8,counter=words,retries=0
contextual:chunker=recursive:size=8,document_size=40
contextual:chunker="fixed_sentences:sentences=2,overlap=1,counter=words",context_size=9,counter=words
contextual:chunker="sentence:size=30,overlap=9",retries=0
cluster_semantic:size=40,piece_size=10,minimum=9
cluster_semantic:size=6,piece_size=2,counter=words,mean=0.3
"""


def samples() -> Iterator[Chunker]:
    for spec in EXAMPLES.split("\n")[1:-1]:
        models = {"embedder": FakeEmbedder(), "llm": FakeLLM(), "overlap": SEMANTIC}
        names = {"overlap"} if "overlap=semantic" in spec else {"embedder", "llm"}
        names &= {*chunkers[spec.partition(":")[0]].option_names()}
        yield get_chunker(spec.replace(",overlap=semantic", ""), **{name: models[name] for name in names})


every_chunker = pytest.mark.parametrize("chunker", list(samples()), ids=lambda chunker: chunker.spec)
hard = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])

HARD_TEXTS = {
    "nothing": "",
    "a space": " ",
    "white space": " \t\n\n\r\n\u3000\u2028 ",
    "one letter": "a",
    "one emoji": "👍🏽",
    "one surrogate": "\ud83d",
    "surrogates that would pair": "\ud83d\ude00" * 40,
    "NULs": "\x00" * 50 + " a\x00b",
    "special tokens": "<|endoftext|><|fim_prefix|> [CLS]<s></s>" * 10,
    "line ends": "a\r\nb\rc\n\nd\x85e\u2028f\x1cg" * 10,
    "right to left": "مرحبا بالعالم שלום עולם \u202eabc\u202c " * 20,
    "no spaces": "これは日本語の文章です。中文没有空格，但是有标点。ภาษาไทย" * 20,
    "families": "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪" * 30,
    "many marks": ("a" + "\u0301" * 5) * 50,
    "one grapheme": "a" + "\u0301" * 400,
    "rare characters": "𝕏𓀀 \u0301\u0301" * 20,
    "one word": "a" * 1000,
    "one symbol": "=" * 1000,
    "spaces": "a" + " " * 1000 + "b",
    "the same again": "The same sentence, again.\n\n" * 60,
}


@every_chunker
@given(text=hard_text())
@hard
def test_spans_are_exact_nothing_is_lost_and_the_maximum_holds(chunker: Chunker, text: str) -> None:
    check_promises(chunker, text)


@every_chunker
def test_hard_texts_neither_crash_nor_lose(chunker: Chunker) -> None:
    for text in HARD_TEXTS.values():
        check_promises(chunker, text)


def test_every_strategy_is_held_to_the_promises() -> None:
    ours = {name for name, cls in chunkers.items() if cls.__module__.startswith("chunkcore.")}
    assert {chunker.name for chunker in samples()} == ours


_SIZES = "size piece_size passage_size max_segment maximum window context_size document_size"
SMALLEST: dict[str, Any] = {**dict.fromkeys(_SIZES.split(), 1), "size_of": "text"}
ONE_OVER = (
    *("😀", "One. 😀 Two. 😀😀 Three."),
    "| a | 😀 |\n|---|---|\n| 😀 | b |\n",
    "# 😀\n\n- 😀\n\n> 😀\n\n    😀\n",
    "<h1>😀</h1><table><tr><td>😀</td></tr></table><p>😀",
    "def 😀():\n    return '😀'\n",
    "𓀀",
)


@pytest.mark.parametrize("name", [name for name in chunkers if chunkers[name].__module__.startswith("chunkcore.")])
@pytest.mark.timeout(60)
def test_one_code_point_over_every_size_ends_each_strategy(name: str) -> None:
    models = {"embedder": FakeEmbedder(), "llm": FakeLLM(), "chunker": "recursive:size=1,size_of=text"}
    options = {
        option: value for option, value in (SMALLEST | models).items() if option in chunkers[name].option_names()
    }
    for text in ONE_OVER:
        check_promises(get_chunker(name, **options), text)
        if name in ("single_linkage", "dbscan"):
            check_promises(get_chunker(name, position_weight=0.0, **options), text + " A. A. " + text)


@every_chunker
@given(text=hard_text(max_parts=30))
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_text_gives_the_same_chunks_everywhere(chunker: Chunker, text: str) -> None:
    chunks = chunks_of(chunker, text)
    assert chunks == chunks_of(chunker, text)
    assert chunker.split_text(text) == [chunk.text for chunk in chunks]
    assert chunker.spans(text) == [chunk.spans for chunk in chunks]
    documents = [Document("a", text), Document("b", ""), Document("c", text)]
    expected = [chunk for document in documents for chunk in chunker.chunk(document)]
    assert list(chunker.chunk_many(documents)) == expected
    assert list(chunker.chunk_many(iter(documents), workers=2)) == expected


def named(chunker: Chunker) -> Chunker:
    """The chunker with names in place of models, as a configuration file has it."""
    names = {"embedder": "fake", "llm": "openai:fake@http://localhost:9/v1"}
    if isinstance(overlap := getattr(chunker, "overlap", 0), SemanticOverlap):
        names["overlap"] = overlap.name
    return replace(chunker, **{option: name for option, name in names.items() if option in chunker.option_names()})


@every_chunker
def test_configuration_comes_back_the_same_from_every_form(chunker: Chunker) -> None:
    chunker = named(chunker)
    data = chunker.to_dict()
    assert get_chunker(json.loads(json.dumps(data))) == chunker
    assert get_chunker(data) == chunker
    assert get_chunker(chunker.spec) == chunker
    assert pickle.loads(pickle.dumps(chunker)) == chunker
    assert hash(pickle.loads(pickle.dumps(chunker))) == hash(chunker)


EMBEDDING = [name for name in chunkers if "embedder" in chunkers[name].option_names()]


@pytest.mark.parametrize("name", EMBEDDING)
def test_a_model_is_asked_once_for_distinct_texts_and_not_for_one(name: str) -> None:
    model = FakeEmbedder()
    chunker = get_chunker(name, embedder=model)
    assert chunker.split_text("Only one sentence.") == ["Only one sentence."]
    assert model.calls == 0
    chunker.split_text("Cats sat. Dogs ran. Cats sat. Shares fell. " * 20)
    if name != "hierarchical":  # which asks for sentences, then for segments
        assert len(model.texts) == len({*model.texts})


@pytest.mark.parametrize("name", EMBEDDING)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_model_that_answers_nonsense_is_an_error(name: str, broken: Any) -> None:
    with pytest.raises(ModelError, match="the model 'fake'"):
        get_chunker(name, embedder=broken()).split_text("Cats sat on the mat for long. Dogs ran. Shares fell. " * 9)


@pytest.mark.parametrize(
    ("spec", "other"),
    [
        ("recursive:size=8", "recursive:size=9"),
        ("recursive", "recursive:keep=end"),
        ("recursive", "recursive:counter=words"),
        ("recursive", 'recursive:separators=["a", ""]'),
        ("markdown", "markdown:heading_level=5"),
        ("markdown", "html"),
        ("breakpoint", "breakpoint:amount=1.25"),
    ],
)
def test_the_fingerprint_changes_with_each_option(spec: str, other: str) -> None:
    one, two = (get_chunker(name, **_models(name)) for name in (spec, other))
    assert one.fingerprint == get_chunker(spec, **_models(spec)).fingerprint != two.fingerprint


def _models(spec: str) -> dict[str, Any]:
    return {"embedder": FakeEmbedder()} if spec.startswith("breakpoint") else {}


def test_the_fingerprint_changes_with_each_model() -> None:
    for option, model in (("embedder", FakeEmbedder), ("llm", FakeLLM)):
        for name in chunkers:
            if option in chunkers[name].option_names():
                one, two = (get_chunker(name, **{option: model(name=made)}).fingerprint for made in ("one", "two"))
                assert one != two, name
