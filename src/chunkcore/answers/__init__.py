"""Answers that a language model writes from retrieved passages (`answer_questions`), their scores (`score_answers`),
and the places that support them (`cite`).
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.answers.answering import Answer as Answer
    from chunkcore.answers.answering import AnswerRun as AnswerRun
    from chunkcore.answers.answering import answer_questions as answer_questions
    from chunkcore.answers.answering import score_answers as score_answers
    from chunkcore.answers.citing import Citation as Citation
    from chunkcore.answers.citing import CitedAnswer as CitedAnswer
    from chunkcore.answers.citing import cite as cite
    from chunkcore.evaluation.measures.answers import AnswerModels as AnswerModels
    from chunkcore.evaluation.measures.answers import BertScore as BertScore
    from chunkcore.evaluation.measures.answers import answer_cosines as answer_cosines
    from chunkcore.evaluation.measures.answers import bert_scores as bert_scores
    from chunkcore.evaluation.measures.answers import bleu as bleu
    from chunkcore.evaluation.measures.answers import exact_match as exact_match
    from chunkcore.evaluation.measures.answers import meteor as meteor
    from chunkcore.evaluation.measures.answers import rouge_l as rouge_l
    from chunkcore.evaluation.measures.answers import squad_f1 as squad_f1
