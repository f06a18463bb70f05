"""The filter of one question, for every retriever of a Haystack component or pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from haystack import Document, Pipeline, SuperComponent
from haystack.core.component import Component

from chunkadapters.behind import Behind
from chunkadapters.haystack.sockets import Socket, is_component, pipeline_sockets, sockets_of
from chunkcore.errors import OptionError

Inputs: TypeAlias = dict[str, Any]
_BOOKS = "__haystack"  # attributes in which Haystack notes a component's sockets and its pipeline


def with_filter(
    retriever: Component | Pipeline, constant: Inputs, where: Mapping[str, object]
) -> Inputs:
    """The inputs with the filter of one question, beside the filters that the app has of its own.

    Raises `OptionError`: some retriever inside would not get the filter, or would lose its own for it.
    """
    conditions = []
    for key, value in where.items():
        conditions.append({"field": f"meta.{key}", "operator": "==", "value": value})
    if not isinstance(retriever, Pipeline):
        _check(retriever, type(retriever).__name__, sockets_of(retriever).inputs)
        return {**constant, "filters": _both(constant, retriever, conditions)}
    values = {name: dict(inputs) for name, inputs in constant.items()}
    free = [socket for socket in pipeline_sockets(retriever).inputs if socket.free]
    for name in _sources(retriever):
        part = retriever.get_component(name)
        _check(part, name, [socket for socket in free if socket.component == name])
        inputs = values.setdefault(name, {})
        inputs["filters"] = _both(inputs, part, conditions)
    return values


def _both(
    inputs: Inputs, retriever: object, conditions: list[dict[str, object]]
) -> dict[str, object]:
    filters = inputs.get("filters") or _own_filters(retriever)
    if filters:
        conditions = [filters, *conditions]
    return {"operator": "AND", "conditions": conditions}


def _own_filters(component: object) -> Any:
    return getattr(component, "filters", None) or getattr(component, "_filters", None)


def _sources(pipeline: Pipeline) -> list[str]:
    """The components that bring documents into a pipeline: from outside, or from a store."""
    fed = set()
    for sender, receiver, edge in pipeline.graph.edges(data=True):
        sent = Socket(sender, "", edge["from_socket"].type)
        if sent.type is Any or sent.holds(list[Document]):
            fed.add(receiver)
    names = []
    for name in pipeline.graph.nodes:
        part = pipeline.get_component(name)
        gives = any(socket.holds(list[Document]) for socket in sockets_of(part).outputs)
        if hasattr(part, "show") and hasattr(part, "local_index"):  # a ranker of passages
            options: Any = part
            behind = Behind.of(options, options.local_index)
            behind.check_call(["the filter of a question (where)"])
        if gives and (name not in fed or hasattr(part, "document_store")):
            names.append(name)
    return names


def _check(component: object, name: str, inputs: Iterable[Socket]) -> None:
    """Raise `OptionError`: a filter does not reach the component, or what it holds."""
    if not any(socket.name == "filters" for socket in inputs):
        raise OptionError(
            f"a question has a filter (where), and {name} has no free input called filters"
        )
    if isinstance(component, SuperComponent):
        reached = component.input_mapping["filters"]
        for source in _sources(component.pipeline):
            if f"{source}.filters" not in reached:
                raise OptionError(
                    f"a question has a filter (where), and the filters of {name} do not reach its {source}"
                )
    for part in _held(component):
        if _own_filters(part):
            raise OptionError(
                f"a question has a filter (where), which would replace the filters of a "
                f"{type(part).__name__} inside {name}: give them to {name}"
            )


def _held(value: object) -> Iterator[object]:
    """The components inside a component, at any depth."""
    values: Iterable[object] = ()
    if isinstance(value, Pipeline):
        values = [value.get_component(name) for name in value.graph.nodes]
    elif is_component(value):
        values = [item for name, item in vars(value).items() if not name.startswith(_BOOKS)]
    elif isinstance(value, Mapping):
        values = value.values()
    elif isinstance(value, list | tuple):
        values = value
    for item in values:
        if is_component(item):
            yield item
        yield from _held(item)
