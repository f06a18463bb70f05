"""`BridgedEmbedder`: a framework's embedding model as an `Embedder`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from chunkadapters._awaiting import at_once, finished
from chunkadapters._models.identity import Identity, secrets_of, without_secrets
from chunkcore.errors import ChunkcoreError, ModelError, OptionError
from chunkcore.models.base import Vectors
from chunkcore.models.batching import encodable
from chunkcore.models.checks import check_vectors

__all__ = ["BridgedEmbedder"]


class BridgedEmbedder(ABC):
    """A framework's embedding model, asked by that framework's own methods.

    Documents go to the model in one call, so that it batches them as it was configured to; questions one by one, as
    the frameworks ask them. Unpaired surrogates, which no service can read, become U+FFFD. What comes back is checked.

    Attributes:
        model: the framework's object.
        name: of the framework, the class and the model.
        fingerprint: of the class and its settings, without keys and passwords.
        max_tokens: how many of its tokens it reads of a text; None where it was not said.
        symmetric: whether questions are embedded as documents are.
    """

    symmetric = False

    def __init__(self, model: Any, identity: Identity, max_tokens: int | None) -> None:
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise OptionError(f"max_tokens is a whole number of at least 1, or None for no limit, got {max_tokens!r}")
        self.model = model
        self.name = identity.name
        self.fingerprint = identity.fingerprint
        self.max_tokens = max_tokens

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions).

        Raises:
            ModelError: the model failed, or answered with something that is no vector a text.
        """
        return finished(self._embed(texts, at_once(self._documents)))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a question: float32, shape (len(texts), dimensions).

        Raises:
            ModelError: the model failed, or answered with something that is no vector a question.
        """
        return finished(self._embed(texts, at_once(self._queries)))

    async def aembed_documents(self, texts: Sequence[str]) -> Vectors:
        """`embed_documents` by the model's asynchronous method."""
        return await self._embed(texts, self._adocuments)

    async def aembed_queries(self, texts: Sequence[str]) -> Vectors:
        """`embed_queries` by the model's asynchronous method."""
        return await self._embed(texts, self._aqueries)

    @abstractmethod
    def _documents(self, texts: list[str]) -> Any:
        """What the model answers for the texts: a vector each."""

    @abstractmethod
    def _queries(self, texts: list[str]) -> Any:
        """What it answers for questions."""

    @abstractmethod
    async def _adocuments(self, texts: list[str]) -> Any:
        """`_documents`, asynchronously."""

    @abstractmethod
    async def _aqueries(self, texts: list[str]) -> Any:
        """`_queries`, asynchronously."""

    async def _embed(self, texts: Sequence[str], ask: Callable[[list[str]], Awaitable[Any]]) -> Vectors:
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        try:
            answer = await ask(encodable(texts))
        except ChunkcoreError:
            raise
        except Exception as error:  # noqa: BLE001  # a model may raise anything
            # The chain of causes is left out: a service's message may repeat the key.
            told = without_secrets(error, secrets_of(self.model))
            raise ModelError(
                f"the model {self.name!r} failed on {len(texts)} texts: {type(error).__name__}: {told}"
            ) from None
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, count: int) -> Vectors:
        if isinstance(answer, list) and any(vector is None for vector in answer):
            raise ModelError(
                f"the model {self.name!r} gave no vector for {answer.count(None)} of {count} texts; expected one a text"
            )
        try:
            return check_vectors(_floats(answer), count, model=self.name)
        except (TypeError, OverflowError) as error:  # what numpy cannot make an array of
            raise ModelError(f"the model {self.name!r} answered with something that is no vectors ({error})") from None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__["fingerprint"] == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def _floats(answer: Any) -> Any:
    """Whole numbers that a model has where its vectors are 0 and 1 are numbers like others."""
    if isinstance(answer, list) and answer and all(isinstance(row, list | tuple) for row in answer):
        return [[float(each) if type(each) is int else each for each in row] for row in answer]
    return answer
