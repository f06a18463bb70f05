"""`JournaledLLM`: a language model in front of which a journal stands."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from chunkcore.errors import NoAnswerError
from chunkcore.generation.budget import CallBudget
from chunkcore.generation.journal import FINISHES, Failure, Journal
from chunkcore.models.llm import LLM, BadAnswerError, Message, Reply, UnreachableError
from chunkcore.models.llm.cache import question_key
from chunkcore.models.llm.metered import awaited
from chunkcore.models.llm.usage import count_message_tokens

__all__ = ["JournaledLLM"]


class JournaledLLM:
    """A language model that is never asked what its journal holds an answer to, good or bad.

    Args:
        llm: the model.
        journal: where calls and answers are written down.
        budget: what may be spent; None for no limit.

    Attributes:
        replayed: how many answers came from the journal.
    """

    def __init__(self, llm: LLM, journal: Journal, budget: CallBudget | None = None) -> None:
        self.llm = llm
        self.journal = journal
        self.budget = budget
        self.name = llm.name
        self.fingerprint = llm.fingerprint
        self.concurrency = max(1, int(getattr(llm, "concurrency", 1)))
        self.replayed = 0
        self._tries: Counter[str] = Counter()  # of each question's failures those that were told
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Any:
        """The answer of the journal, else of the model.

        Raises:
            BudgetError: the model may not be asked any more.
            NoAnswerError: this question cannot be answered.
            ModelError: no question can: it failed again and again.
            DataError: the journal cannot be written.
        """
        key = f"{self.fingerprint}:{question_key(messages, schema).hex()}"
        with self._guard:
            lock = self._locks[key]
        with lock:  # whoever asks the same meanwhile gets this answer
            failures = self.journal.failures(key)
            if self._tries[key] < len(failures):
                self._tries[key] += 1
                raise failures[self._tries[key] - 1].error()
            kept = self.journal.fetch(key)
            if kept is not None:
                with self._guard:
                    self.replayed += 1
                return kept
            self.journal.ask(key, count_message_tokens(messages), self.budget)
            return self._answer(key, messages, schema)

    def _answer(self, key: str, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Any:
        try:
            answer = awaited(self.llm.complete(messages, schema))
        except UnreachableError:
            self.journal.withdraw(key)
            raise
        except (NoAnswerError, BadAnswerError, TimeoutError) as error:
            self._tries[key] += 1
            again = not isinstance(error, NoAnswerError)
            reason = "expected an answer in time, got none" if isinstance(error, TimeoutError) else str(error)
            failure = Failure(reason, again)
            self.journal.fail(key, failure)
            raise failure.error() from error
        reply = Reply(answer) if isinstance(answer, str) else answer
        if isinstance(reply, Reply) and isinstance(reply.text, str) and reply.finish in FINISHES:
            self.journal.answer(key, reply)
        return answer
