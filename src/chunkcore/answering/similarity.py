"""How near an answer is in meaning, by an embedding model: BERTScore, and the cosine of question and answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chunkcore.models.base import Embedder, TokenEmbedder, Vectors
from chunkcore.models.checks import embed, embed_tokens

__all__ = ["BertScore", "answer_cosines", "bert_scores"]

_AT_ONCE = 32  # texts that the model is given in one call


class BertScore(NamedTuple):
    """Of one answer and one reference, each -1 to 1, and mostly far above 0."""

    precision: float
    recall: float
    f1: float


def bert_scores(model: TokenEmbedder, answers: Sequence[str], references: Sequence[str]) -> list[BertScore]:
    """BERTScore (Zhang et al., 2020, section 3) of answers, each with the reference at its place.

    Precision is the mean, over the answer's tokens, of the cosine with the reference's nearest token; recall the same
    the other way round. Vectors are those of the model's last layer; without weights by rarity and without rescaling.
    The tokens that the model puts around a text can be the nearest one, and are not among those that the mean is over,
    as in the package bert-score. A text that is longer than the model reads is read in parts.

    Raises:
        ModelError: the model failed, or answered with something that is no answer, twice.

    Two empty texts score 1, one empty text 0.
    """
    distinct = list(dict.fromkeys([*answers, *references]))
    tokens = dict(zip(distinct, _tokens(model, distinct), strict=True))
    return [_greedy(tokens[answer], tokens[reference]) for answer, reference in zip(answers, references, strict=True)]


def answer_cosines(embedder: Embedder, questions: Sequence[str], answers: Sequence[str]) -> list[float]:
    """The cosine of each question, as a query, and its answer, as a document; 0 for an empty answer.

    Source: Qu et al. (2024), "Answer generation". It needs no right answer, and says only that the answer is about what
    was asked: a wrong one can score as high as a right one.

    Raises:
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    if not answers:
        return []
    asked = _unit(embed(embedder, questions, queries=True))
    told = _unit(embed(embedder, [answer or " " for answer in answers]))
    products = np.einsum("ij,ij->i", asked, told).tolist()
    return [value if answer.strip() else 0.0 for value, answer in zip(products, answers, strict=True)]


class _Tokens(NamedTuple):
    """A text's token vectors, of length 1: its own, and those with what the model puts around it."""

    own: Vectors
    all: Vectors


def _tokens(model: TokenEmbedder, texts: Sequence[str]) -> list[_Tokens]:
    found: list[_Tokens] = []
    for first in range(0, len(texts), _AT_ONCE):
        found += _read(model, texts[first : first + _AT_ONCE])
    return found


def _read(model: TokenEmbedder, texts: Sequence[str]) -> list[_Tokens]:
    """One call of the model; a text that it cannot read at once comes in several windows."""
    read = [model.tokenize(text) for text in texts]
    windows, owners = [], []
    for number, tokens in enumerate(read):
        stop = len(tokens.ids) - tokens.after
        room = max(1, (model.max_tokens or len(tokens.ids)) - tokens.before - tokens.after)
        for start in range(tokens.before, max(stop, tokens.before + 1), room):
            part = tokens.ids[start : min(stop, start + room)]
            windows.append(np.concatenate((tokens.ids[: tokens.before], part, tokens.ids[stop:])))
            owners.append(number)
    rows: list[list[Vectors]] = [[] for _ in texts]
    own: list[list[Vectors]] = [[] for _ in texts]
    for number, vectors in zip(owners, embed_tokens(model, windows), strict=True):
        vectors = _unit(vectors)
        rows[number].append(vectors)
        own[number].append(vectors[read[number].before : len(vectors) - read[number].after])
    return [_Tokens(np.concatenate(mine), np.concatenate(every)) for mine, every in zip(own, rows, strict=True)]


def _greedy(answer: _Tokens, reference: _Tokens) -> BertScore:
    if not len(answer.own) or not len(reference.own):
        same = float(len(answer.own) == len(reference.own))
        return BertScore(same, same, same)
    precision = float((answer.own @ reference.all.T).max(axis=1).mean())
    recall = float((reference.own @ answer.all.T).max(axis=1).mean())
    both = precision + recall
    return BertScore(precision, recall, 2 * precision * recall / both if both > 0 else 0.0)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(lengths < 1e-12, 1, lengths)).astype(np.float32)
    return unit
