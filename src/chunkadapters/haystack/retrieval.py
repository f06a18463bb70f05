"""Haystack's retrievers and pipelines, run and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from haystack import Document, Pipeline
from haystack.core.component import Component

from chunkadapters.haystack.documents import (
    Socket,
    Sockets,
    Values,
    find_documents,
    find_queries,
    hit_of,
    is_component,
    sockets_of,
    warm_up,
)
from chunkadapters.places import MetadataLike
from chunkadapters.scores import DeployedRetriever, RetrieverHooks
from chunkcore.errors import DataError, OptionError, kind_of


def _system(
    retriever: Component | Pipeline,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, object] | None = None,
) -> DeployedRetriever:
    """A retriever component, or a `Pipeline`; see `RetrieverHooks.run_retriever`."""
    constant: Values = dict(inputs or {})
    if isinstance(retriever, Pipeline):
        parts = {name: retriever.get_component(name) for name in retriever.graph.nodes}
    elif is_component(retriever):
        parts, constant = {"": retriever}, {"": constant}
    else:
        raise DataError(
            f"expected a Haystack component or Pipeline, got {kind_of(retriever)}; a store is asked through its "
            "retriever"
        )
    taken: Sockets = []
    given: Sockets = []
    for name, part in parts.items():
        inside = sockets_of(part, name)
        taken += inside[0]
        given += inside[1]
    queries = find_queries(taken, query_socket)
    _check_inputs(constant, queries, taken)
    documents = find_documents(given, documents_socket)
    warm_up(retriever)
    return _Asked(retriever, parts, constant, queries, documents).deployed()


def _check_inputs(constant: Mapping[str, Values], queries: Sockets, inputs: Sockets) -> None:
    """Raise `OptionError` unless every mandatory input has a value, and every constant one is there."""
    stated = {
        str(Socket(component, key, None))
        for component, values in constant.items()
        for key in values
    }
    names = {str(socket) for socket in inputs}
    unknown = sorted(stated - names)
    if unknown:
        raise OptionError(
            f"inputs: there is no {', '.join(unknown)}; expected some of {', '.join(sorted(names))}"
        )
    needed = {str(socket) for socket in inputs if socket.mandatory}
    missing = sorted(needed - stated - set(map(str, queries)))
    if missing:
        raise OptionError(
            f"nothing is given for the mandatory {', '.join(missing)}: say what, as inputs={{...}}, "
            "or name it among query_socket if it takes the question too"
        )


@dataclass(frozen=True)
class _Asked:
    """A component or a pipeline, and how it is asked.

    Attributes:
        parts: the components by name; "" is that of one on its own.
        constant: the inputs of every question, by component.
        queries, documents: the inputs that take the question, and the output that counts.
    """

    retriever: Component | Pipeline
    parts: Mapping[str, Any]
    constant: Mapping[str, Values]
    queries: Sockets
    documents: Socket

    def deployed(self) -> DeployedRetriever:
        parts = [self.retriever, self.constant, *self.parts.values()]
        name = type(self.retriever).__name__
        return DeployedRetriever(name, self.ask, self.aask, parts, self._filtered)

    def ask(self, question: str) -> object:
        return self._documents_of(self.retriever.run(**self._values(question)))

    async def aask(self, question: str) -> object:
        asked: Any = self.retriever
        if isinstance(asked, Pipeline) or getattr(asked, "__haystack_supports_async__", False):
            return self._documents_of(await asked.run_async(**self._values(question)))
        return await asyncio.to_thread(self.ask, question)

    def _values(self, question: str) -> Values:
        """The inputs of a question."""
        data = {component: dict(values) for component, values in self.constant.items()}
        for socket in self.queries:
            takes_list = socket.holds(list[str]) and not socket.holds(str)
            value = [question] if takes_list else question
            data.setdefault(socket.component, {})[socket.name] = value
        if isinstance(self.retriever, Pipeline):
            return {"data": data, "include_outputs_from": {self.documents.component}}
        return data[""]

    def _documents_of(self, outputs: Mapping[str, Any]) -> object:
        component, name = self.documents.component, self.documents.name
        # Nothing, if a router led the question elsewhere.
        return outputs.get(component, {}).get(name, []) if component else outputs[name]

    def _filtered(self, where: MetadataLike) -> DeployedRetriever:
        """With the filter of one question, beside the filters that the app has of its own.

        Raises `OptionError`: a retriever inside has no input for it.
        """
        conditions = [
            {"field": f"meta.{key}", "operator": "==", "value": value}
            for key, value in where.items()
        ]
        constant = dict(self.constant)
        for name in self._sources():
            part, values = self.parts[name], constant.get(name, {})
            inputs, _ = sockets_of(part, name)
            if not any(socket.name == "filters" and socket.free for socket in inputs):
                called = name or type(part).__name__
                raise OptionError(
                    f"a question has a filter (where), and {called} has no free input called filters"
                )
            filters = values.get("filters")
            for attribute in ("filters", "_filters"):
                filters = filters or getattr(part, attribute, None)
            chosen, *others = [filters, *conditions] if filters else conditions
            if others:  # some stores refuse a lone condition under AND
                chosen = {"operator": "AND", "conditions": [chosen, *others]}
            constant[name] = {**values, "filters": chosen}
        return replace(self, constant=constant).deployed()

    def _sources(self) -> list[str]:
        """The components that bring documents into a pipeline: from outside, or from a store."""
        pipeline = self.retriever
        if not isinstance(pipeline, Pipeline):
            return [""]
        fed = _fed_with_documents(pipeline)
        names = []
        for name, part in self.parts.items():
            _, outputs = sockets_of(part)
            gives = any(socket.holds(list[Document]) for socket in outputs)
            if hasattr(part, "show") and hasattr(part, "local_index"):  # a ranker of passages
                part.behind().check_call(["the filter of a question (where)"])
            if gives and (name not in fed or hasattr(part, "document_store")):
                names.append(name)
        return names


def _fed_with_documents(pipeline: Pipeline) -> set[str]:
    fed = set()
    for sender, receiver, edge in pipeline.graph.edges(data=True):
        sent = Socket(sender, "", edge["from_socket"].type)
        if sent.type is Any or sent.holds(list[Document]):
            fed.add(receiver)
    return fed


_hooks: RetrieverHooks[Component | Pipeline] = RetrieverHooks(
    _system, hit_of, Document, "Haystack documents"
)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
