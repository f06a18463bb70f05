"""How much of a right answer's words an answer has: ROUGE-L, BLEU, METEOR, SQuAD's F1 and exact match.

Each takes the answer and one or more references, any of which is right, and gives 0 to 1. All but the last two come
from the packages in which they are mostly published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from chunkcore.answering.texts import answers_nothing, spaced, squad_normalised, words
from chunkcore.errors import MissingExtraError

__all__ = ["bleu", "exact_match", "meteor", "rouge_l", "squad_f1"]


def squad_f1(answer: str, references: Sequence[str]) -> float:
    """The F1 of the words that an answer shares with the reference that it shares most with.

    Source: the evaluation script of SQuAD 2.0 (Rajpurkar et al., 2018), whose normalisation is `squad_normalised`.
    An empty answer is right where no reference says anything.

    >>> round(squad_f1("the year 1916", ["in 1916", "February 1916"]), 3)
    0.5
    """
    found = squad_normalised(answer).split()
    return max(_word_f1(found, right.split()) for right in _said(references))


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1 where the answer is one of the references but for case, punctuation, articles and spaces, else 0.

    Source: that of `squad_f1`.

    >>> exact_match("The Rhine.", ["rhine", "River Rhine"])
    1.0
    """
    found = squad_normalised(answer)
    return float(any(found == right for right in _said(references)))


def rouge_l(answer: str, references: Sequence[str]) -> float:
    """ROUGE-L (Lin, 2004): the F1 of the longest common subsequence of words, the best over the references.

    By rouge-score, without stemming. Its own words are ASCII; these are `words`, which are the same for ASCII.

    Raises:
        MissingExtraError: rouge-score is not installed.

    >>> round(rouge_l("the cat sat", ["the cat was on the mat"]), 3)  # "the cat": 2 of 3, and 2 of 6
    0.444
    """
    if not words(answer) or answers_nothing(references):
        return _nothing(answer, references)
    return float(_rouge().score_multi(list(references), answer)["rougeL"].fmeasure)


def bleu(answer: str, references: Sequence[str], order: int = 4) -> float:
    """Sentence BLEU (Papineni et al., 2002) of up to `order` words, by sacrebleu.

    Lower case, sacrebleu's tokenizer 13a, and characters for words in scripts without spaces. Matches are clipped
    over all references together, as BLEU defines it. An answer shorter than `order` is scored up to its length, and a
    length without a match counts as a half match, then a quarter (sacrebleu's "effective order" and its smoothing
    "exp"): plain BLEU-4 of most short answers would be 0.

    Raises:
        MissingExtraError: sacrebleu is not installed.

    >>> round(bleu("the cat", ["the cat sat"], 1), 3)  # both words are there; half a reference is missing: exp(-1/2)
    0.607
    """
    if not words(answer) or answers_nothing(references):
        return _nothing(answer, references)
    return float(_bleu(order).sentence_score(spaced(answer), [spaced(each) for each in references]).score) / 100


def meteor(answer: str, references: Sequence[str], *, wordnet: Any = None) -> float:
    """METEOR (Banerjee and Lavie, 2005) by nltk: words matched as they stand, then by their stems; best reference.

    Synonyms are matched only where `wordnet` is given: WordNet is data that no package brings, and a score must not
    depend on what a machine happens to hold. So published scores, which mostly match synonyms, are a little higher.

    Args:
        answer: the answer.
        references: the right ones.
        wordnet: what has nltk's ``synsets(word)``, such as ``nltk.corpus.wordnet``.

    Raises:
        MissingExtraError: nltk is not installed.

    >>> round(meteor("the foxes nap", ["The fox naps"]), 3)  # three matches in order: 1 - 0.5 · (1/3)³
    0.981
    """
    if not words(answer) or answers_nothing(references):
        return _nothing(answer, references)
    score = _module("nltk.translate.meteor_score", "nltk").meteor_score
    return float(score([words(each) for each in references], words(answer), wordnet=wordnet or _NoSynonyms()))


class _NoSynonyms:
    def synsets(self, word: str) -> tuple[()]:
        return ()


def _nothing(answer: str, references: Sequence[str]) -> float:
    """Where a side has no words: 1 where both have none."""
    return float(not words(answer) and answers_nothing(references))


def _said(references: Sequence[str]) -> list[str]:
    """What the references come to, those that come to nothing left out while there is another."""
    return [right for right in map(squad_normalised, references) if right] or [""]


def _word_f1(found: list[str], right: list[str]) -> float:
    if not found or not right:
        return float(found == right)
    shared = (Counter(found) & Counter(right)).total()
    return 2 * shared / (len(found) + len(right))


class _Words:
    """What rouge-score takes for a tokenizer."""

    tokenize: Callable[[str], list[str]] = staticmethod(words)


@lru_cache(maxsize=1)
def _rouge() -> Any:
    return _module("rouge_score.rouge_scorer", "rouge-score").RougeScorer(["rougeL"], tokenizer=_Words())


@lru_cache(maxsize=8)
def _bleu(order: int) -> Any:
    made = _module("sacrebleu.metrics", "sacrebleu").BLEU
    return made(max_ngram_order=order, lowercase=True, tokenize="13a", effective_order=True)


def _module(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError.of(package, "answers", "score answers") from error
