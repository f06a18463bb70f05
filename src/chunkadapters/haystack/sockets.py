"""Haystack's components and pipelines by their inputs and outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, NamedTuple, TypeAlias, TypeGuard, Union, cast, get_args, get_origin

from haystack import Document, Pipeline
from haystack.core.component import Component

from chunkcore.errors import OptionError


def is_component(candidate: object) -> TypeGuard[Component]:
    """Whether it is an object of a class that Haystack's ``component`` decorated."""
    return hasattr(candidate, "__haystack_input__") and hasattr(candidate, "__haystack_output__")


def warm_up(component: object) -> None:
    """Load what a component loads, if it loads anything."""
    warm = getattr(component, "warm_up", None)
    if warm is not None:
        warm()


Outputs: TypeAlias = Mapping[str, Any]


def run(component: Component, values: Mapping[str, object]) -> Outputs:
    """The outputs of a component."""
    return component.run(**values)


async def run_async(component: Component, values: Mapping[str, object]) -> Outputs:
    """The outputs of a component, by its asynchronous method if it has one."""
    if getattr(component, "__haystack_supports_async__", False):
        return cast("Outputs", await cast(Any, component).run_async(**values))
    return await asyncio.to_thread(run, component, values)


@dataclass(frozen=True, slots=True)
class Socket:
    """An input or an output; `component` is "" for a component on its own, `free` false if it is connected inside."""

    component: str
    name: str
    type: Any
    mandatory: bool = False
    free: bool = True

    def __str__(self) -> str:
        return f"{self.component}.{self.name}" if self.component else self.name

    def holds(self, kind: object) -> bool:
        """Whether its type is `kind`, or a union with it. `typing.List` is `list`."""
        types = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        shape = get_origin(kind), get_args(kind)
        return any(
            item == kind or (get_args(item) and (get_origin(item), get_args(item)) == shape)
            for item in types
        )


class Sockets(NamedTuple):
    """The inputs and the outputs."""

    inputs: Sequence[Socket]
    outputs: Sequence[Socket]


def sockets_of(component: object) -> Sockets:
    """The sockets of a component; none of anything else."""
    if not is_component(component):
        return Sockets((), ())
    # Haystack has public sockets only for components in a pipeline, and a component can be in only one.
    held: Any = component
    inputs = held.__haystack_input__._sockets_dict
    outputs = held.__haystack_output__._sockets_dict
    return Sockets(
        [Socket("", name, socket.type, socket.is_mandatory) for name, socket in inputs.items()],
        [Socket("", name, socket.type) for name, socket in outputs.items()],
    )


def pipeline_sockets(pipeline: Pipeline) -> Sockets:
    """The sockets of all components of a pipeline."""
    inputs = pipeline.inputs(include_components_with_connected_inputs=True)
    outputs = pipeline.outputs(include_components_with_connected_outputs=True)
    return Sockets(_flat(inputs, pipeline.inputs()), _flat(outputs, pipeline.outputs()))


Described: TypeAlias = Mapping[str, Mapping[str, Any]]  # of each component, its sockets


def _flat(described: Described, free: Described) -> list[Socket]:
    rows = []
    for component, sockets in described.items():
        for name, socket in sockets.items():
            is_free = name in free.get(component, {})
            mandatory = socket.get("is_mandatory", False)
            rows.append(Socket(component, name, socket["type"], mandatory, is_free))
    return rows


def find_queries(
    inputs: Sequence[Socket], query_socket: str | Sequence[str] | None
) -> list[Socket]:
    """The inputs that take the question: the named ones, else the only mandatory string. Raises `OptionError`."""
    if query_socket is not None:
        names = [query_socket] if isinstance(query_socket, str) else query_socket
        is_list = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not is_list or not names:
            raise OptionError(
                f"query_socket is an input's name or a list of names, got {query_socket!r}"
            )
        return [_named(name, inputs, "query_socket") for name in names]
    free = [socket for socket in inputs if socket.free and socket.mandatory]
    texts = [socket for socket in free if socket.holds(str)]
    if len(texts) > 1:
        raise OptionError(
            f"several inputs take a string: {_listed(texts)}; say which take the question, as query_socket="
            f"{[str(socket) for socket in texts]!r} or one of them, and what the others take as inputs={{...}}"
        )
    if not texts:
        raise OptionError(
            f"no mandatory input takes a string: name one of {_listed(inputs)} as query_socket"
        )
    return texts


def find_documents(outputs: Sequence[Socket], documents_socket: str | None) -> Socket:
    """The output of documents: the named one, else the only one.

    If no output gives documents, connected ones are searched: the retriever of a pipeline that ends in a generator.
    Raises `OptionError`: no such output, no output of documents, or several.
    """
    if documents_socket is not None:
        return _named(documents_socket, outputs, "documents_socket")
    matches = [socket for socket in outputs if socket.holds(list[Document])]
    matches = [socket for socket in matches if socket.free] or matches
    if not matches:
        raise OptionError(
            f"no output gives a list of documents: name one of {_listed(outputs)} as documents_socket"
        )
    if len(matches) > 1:
        raise OptionError(
            f"several outputs give documents: {_listed(matches)}; "
            f'say which counts, as documents_socket="{matches[0]}" for instance'
        )
    return matches[0]


def _named(name: str, candidates: Sequence[Socket], option: str) -> Socket:
    for socket in candidates:
        if str(socket) == name:
            return socket
    raise OptionError(f"{option}: there is no {name!r}; expected one of {_listed(candidates)}")


def _listed(sockets: Iterable[Socket]) -> str:
    return ", ".join(map(str, sockets)) or "none"


def _has(sockets: Sequence[Socket], name: str) -> bool:
    return any(socket.name == name for socket in sockets)


def embeds_documents(component: object) -> bool:
    """Whether it is a document embedder."""
    inputs, outputs = sockets_of(component)
    return [socket.name for socket in inputs if socket.mandatory] == ["documents"] and _has(
        outputs, "documents"
    )


def embeds_text(component: object) -> bool:
    """Whether it is a text embedder."""
    return any(
        socket.name == "embedding" and socket.holds(list[float])
        for socket in sockets_of(component).outputs
    )


def generates(component: object) -> bool:
    """Whether it is a chat generator."""
    inputs, outputs = sockets_of(component)
    return _has(inputs, "messages") and _has(outputs, "replies")


def takes_and_gives_documents(component: object) -> bool:
    """Whether it is a component with an input and an output named ``documents``."""
    return all(_has(side, "documents") for side in sockets_of(component))
