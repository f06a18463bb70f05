"""Answers that a language model writes from retrieved passages (`answer_questions`), their scores (`score_answers`),
and the places that support them (`cite`).
"""

from __future__ import annotations

from chunkcore.answers.answering import Answer, AnswerRun, answer_questions, score_answers
from chunkcore.answers.citing import Citation, CitedAnswer, cite
from chunkcore.evaluation.measures.answers import (
    BertScore,
    answer_cosines,
    bert_scores,
    bleu,
    exact_match,
    meteor,
    rouge_l,
    squad_f1,
)

__all__ = [
    "Answer",
    "AnswerRun",
    "BertScore",
    "Citation",
    "CitedAnswer",
    "answer_cosines",
    "answer_questions",
    "bert_scores",
    "bleu",
    "cite",
    "exact_match",
    "meteor",
    "rouge_l",
    "score_answers",
    "squad_f1",
]
