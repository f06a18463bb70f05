"""Answers that a language model writes from retrieved passages (`answer_questions`), their scores (`score_answers`),
and the places that support them (`cite`).
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.answers.answering import (
        Answer as Answer,
        AnswerRun as AnswerRun,
        answer_questions as answer_questions,
        score_answers as score_answers,
    )
    from chunkcore.answers.citing import (
        Citation as Citation,
        CitedAnswer as CitedAnswer,
        cite as cite,
    )

on_first_use(
    __name__,
    {
        "chunkcore.answers.answering": "Answer AnswerRun answer_questions score_answers",
        "chunkcore.answers.citing": "Citation CitedAnswer cite",
    },
)
