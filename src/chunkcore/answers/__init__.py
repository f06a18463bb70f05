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
    from chunkcore.evaluation.answer_measures import AnswerModels as AnswerModels
    from chunkcore.evaluation.answer_measures import answer_cosines as answer_cosines
    from chunkcore.evaluation.answer_measures import bert_scores as bert_scores
    from chunkcore.evaluation.answer_measures import bleu as bleu
    from chunkcore.evaluation.answer_measures import exact_match as exact_match
    from chunkcore.evaluation.answer_measures import meteor as meteor
    from chunkcore.evaluation.answer_measures import rouge_l as rouge_l
    from chunkcore.evaluation.answer_measures import squad_f1 as squad_f1
