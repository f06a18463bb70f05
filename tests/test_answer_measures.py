"""How good an answer is: published examples, hand-computed cases, and what must hold for any text."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import pytest
from chunkcore.answers import answer_cosines, bert_scores, bleu, exact_match, meteor, rouge_l, squad_f1
from chunkcore.evaluation.answer_measures import squad_normalised, words
from chunkcore.models.base import TextTokens, Vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder
from tests.strategies import hard_text

needs_packages = pytest.mark.skipif(
    not all(map(find_spec, ("nltk", "rouge_score", "sacrebleu"))), reason="the extra `answers` is not installed"
)

# --- Words ------------------------------------------------------------------------------------------------------


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_words_are_those_of_rouge_score(text):
    tokenizers = pytest.importorskip("rouge_score.tokenizers", reason="rouge-score is not installed")
    assert words(text) == tokenizers.DefaultTokenizer(use_stemmer=False).tokenize(text)


def test_normalisation_is_the_squad_scripts():
    """The script lowers, strips punctuation, then articles, then white space: so "a.n." is an article."""
    assert squad_normalised("  The An\tANSWER, (a test) ") == "answer test"
    assert squad_normalised("a.n. other") == "other"
    assert squad_normalised("the-rapist") == "therapist"
    assert squad_normalised("“Quoted” – 5 %") == "“quoted” – 5"  # not ASCII: it stays, as in the script
    assert squad_normalised("「東京」。") == "東 京"


def test_squad_f1_by_hand():
    assert squad_f1("Denver Broncos", ["Denver Broncos", "The Broncos"]) == 1
    assert squad_f1("the Denver team", ["Denver Broncos"]) == 1 / 2  # one of two words on each side
    assert squad_f1("Broncos Broncos", ["Broncos"]) == pytest.approx(2 / 3)  # a word counts as often as both have it
    assert squad_f1("Paris", ["London"]) == 0
    assert squad_f1("19 76", ["1976"]) == 0


def test_the_best_reference_counts():
    assert squad_f1("gold confetti", ["gold", "confetti of gold paper"]) == pytest.approx(2 / 3)
    assert exact_match("gold!", ["silver", "Gold"]) == 1
    assert exact_match("golden", ["silver", "Gold"]) == 0


def test_nothing_is_right_where_no_reference_says_anything():
    """SQuAD 2.0: a question without an answer has F1 1 for an empty answer."""
    for measure in (squad_f1, exact_match):
        assert measure("", [""]) == measure("the", [""]) == measure("", ["the"]) == 1
        assert measure("Paris", [""]) == measure("", ["Paris"]) == measure("", ["the", "Paris"]) == 0


@needs_packages
@pytest.mark.parametrize(
    ("answer", "score"),
    [("police kill the gunman", 3 / 4), ("the gunman kill police", 2 / 4), ("the gunman police killed", 2 / 4)],
)
def test_rouge_l_of_lins_example(answer, score):
    """Lin (2004), section 3: against "police killed the gunman", with beta = 1."""
    assert rouge_l(answer, ["police killed the gunman"]) == pytest.approx(score)


@needs_packages
def test_bleu_clips_what_is_repeated():
    """Papineni et al. (2002), section 2.1: two of the seven are in the first reference."""
    references = ["The cat is on the mat", "There is a cat on the mat"]
    assert bleu("the the the the the the the", references, 1) == pytest.approx(2 / 7)


GUIDE = "It is a guide to action which ensures that the military always obeys the commands of the party"
GUIDES = [
    "It is a guide to action that ensures that the military will forever heed Party commands",
    "It is the guiding principle which guarantees the military forces always being under the command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
]


@needs_packages
def test_the_guide_to_action():
    """Papineni's first candidate, as nltk's documentation scores it: no length is without a match, so that BLEU smooths
    nothing, and METEOR has no use for a synonym.
    """
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    theirs = bleu_score.sentence_bleu([each.lower().split() for each in GUIDES], GUIDE.lower().split())
    assert bleu(GUIDE, GUIDES) == pytest.approx(theirs)
    assert bleu(GUIDE, GUIDES) == pytest.approx(0.5046, abs=5e-5)
    assert meteor(GUIDE, GUIDES) == pytest.approx(0.6944, abs=5e-5)


@needs_packages
def test_bleu_by_hand():
    brevity = np.exp(1 - 3 / 2)
    assert bleu("green ring", ["the green ring"], 1) == pytest.approx(brevity)
    assert bleu("green ring", ["the green ring"], 4) == pytest.approx(brevity)  # up to two words: it has no more
    assert bleu("Paris", ["Paris"], 4) == pytest.approx(1)
    # Of two words one matches, of one pair none: a half is taken for it.
    assert bleu("green lid", ["green ring"], 4) == pytest.approx(np.sqrt(1 / 2 * 1 / 2))
    assert bleu("緑の輪", ["緑の輪"], 4) == pytest.approx(1)


@needs_packages
def test_meteor_by_hand():
    """Banerjee and Lavie (2005): F-mean 10PR / (R + 9P), and a penalty of (chunks / matches)³ / 2."""
    assert meteor("the cat sat", ["the cat sat"]) == pytest.approx(1 - 0.5 * (1 / 3) ** 3)
    precision, recall = 2 / 2, 2 / 4
    mean = 10 * precision * recall / (recall + 9 * precision)
    assert meteor("cat mat", ["cat sat on mat"]) == pytest.approx(mean * (1 - 0.5 * (2 / 2) ** 3))
    assert meteor("cats", ["cat"]) == pytest.approx(1 / 2)  # by the stem; one chunk of one match
    assert meteor("dog", ["cat"]) == 0
    assert meteor("the cat", ["a dog", "The cat."]) == pytest.approx(1 - 0.5 * (1 / 2) ** 3)


@needs_packages
@pytest.mark.parametrize("measure", [rouge_l, bleu, meteor])
def test_where_a_side_says_nothing(measure):
    assert measure("", [""]) == measure("...", ["", "?"]) == 1
    assert measure("Paris", [""]) == measure("", ["Paris"]) == 0


MEASURES = [squad_f1, exact_match, rouge_l, bleu, meteor]


@needs_packages
@settings(max_examples=40)
@given(st.sampled_from(MEASURES), hard_text(max_parts=12), st.lists(hard_text(max_parts=12), min_size=1, max_size=3))
def test_any_texts_score_from_0_to_1_and_the_references_order_is_nothing(measure, answer, references):
    found = measure(answer, references)
    assert 0 <= found <= 1 + 1e-9
    assert measure(answer, references[::-1]) == pytest.approx(found)


class WordModel:
    """A token is a word; its vector stands on its own, and so do those of the two tokens around a text."""

    name = fingerprint = "words"

    def __init__(self, vectors: dict[str, Sequence[float]], max_tokens: int | None = None) -> None:
        self.vocabulary = ["[CLS]", "[SEP]", *vectors]
        self.table = np.array([[0, 0, 1], [0, 0, 1], *vectors.values()], dtype=np.float32)
        self.max_tokens = max_tokens
        self.windows: list[int] = []

    def tokenize(self, text: str) -> TextTokens:
        ids = [0, *(self.vocabulary.index(word) for word in text.split()), 1]
        places = np.zeros(len(ids), dtype=np.int64)
        return TextTokens(np.array(ids, dtype=np.int64), places, places, 1, 1)

    def embed_tokens(self, windows: Sequence[np.ndarray]) -> list[Vectors]:
        self.windows += [len(each) for each in windows]
        return [self.table[each] for each in windows]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError

    embed_queries = embed_documents


HALF = np.sqrt(0.5)
MODEL = {"fox": (1, 0, 0), "vixen": (0.8, 0.6, 0), "naps": (0, 1, 0), "both": (3, 3, 0), "odd": (0, -1, 0)}


def test_bert_score_by_hand():
    """Fox is nearest to vixen (0.8), naps to naps (1); the other way round the same."""
    (found,) = bert_scores(WordModel(MODEL), ["fox naps"], ["vixen naps"])
    assert found == pytest.approx(0.9)
    (found,) = bert_scores(WordModel(MODEL), ["both"], ["fox naps"])  # longer vectors point the same way
    assert found == pytest.approx(HALF)
    (found,) = bert_scores(WordModel(MODEL), ["fox"], ["fox naps"])
    assert found == pytest.approx(2 / 3)


def test_what_is_around_a_text_can_be_nearest_and_is_not_scored():
    (found,) = bert_scores(WordModel(MODEL), ["odd"], ["naps"])
    assert found == pytest.approx(0)  # -1 to the word, 0 to the tokens around it


def test_a_long_text_is_read_in_parts_and_no_token_is_lost():
    model = WordModel(MODEL, max_tokens=4)
    (found,) = bert_scores(model, ["fox fox fox fox naps"], ["fox naps"])
    assert max(model.windows) <= 4
    assert sum(model.windows) == 7 + 2 + 2 + 4  # two more windows have two more tokens each
    assert found == pytest.approx(1)


def test_empty_texts_and_texts_asked_twice():
    model = WordModel(MODEL)
    found = bert_scores(model, ["", "", "fox", "fox"], ["", "fox", "", "fox"])
    assert found == [1, 0, 0, 1]
    assert len(model.windows) == 2  # of the two distinct texts
    assert bert_scores(model, [], []) == []


def test_the_cosine_of_question_and_answer():
    embedder = FakeEmbedder()
    same, none, other = answer_cosines(embedder, ["the fox naps"] * 3, ["the fox naps", " ", "blue boats"])
    assert same == pytest.approx(1)
    assert none == 0
    assert other < 0.7
    assert answer_cosines(embedder, [], []) == []
