"""Where a Haystack component or pipeline takes a question, and where it gives documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from haystack import Document, Pipeline

from chunkcore.errors import OptionError

__all__ = ["Socket", "Sockets", "component_sockets", "find_documents", "find_queries", "pipeline_sockets"]


@dataclass(frozen=True, slots=True)
class Socket:
    """An input or an output; of a component on its own, `component` is empty."""

    component: str
    name: str
    type: Any
    mandatory: bool = False

    def __str__(self) -> str:
        return f"{self.component}.{self.name}" if self.component else self.name

    def holds(self, kind: Any) -> bool:
        """Whether its type is `kind`, or a union with it."""
        union = get_origin(self.type) in (Union, UnionType)
        return kind in (get_args(self.type) if union else (self.type,))


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets of a component or a pipeline.

    Attributes:
        inputs: those that nothing inside is connected to.
        outputs: those that nothing inside is connected to.
        inner_inputs: every input, the connected ones too.
        inner_outputs: every output, the connected ones too.
    """

    inputs: Sequence[Socket]
    outputs: Sequence[Socket]
    inner_inputs: Sequence[Socket]
    inner_outputs: Sequence[Socket]


def pipeline_sockets(pipeline: Pipeline) -> Sockets:
    """The sockets of a whole pipeline."""
    return Sockets(
        inputs=_flat(pipeline.inputs()),
        outputs=_flat(pipeline.outputs()),
        inner_inputs=_flat(pipeline.inputs(include_components_with_connected_inputs=True)),
        inner_outputs=_flat(pipeline.outputs(include_components_with_connected_outputs=True)),
    )


def _flat(described: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Socket]:
    return [
        Socket(component, name, told["type"], bool(told.get("is_mandatory", False)))
        for component, sockets in described.items()
        for name, told in sockets.items()
    ]


def component_sockets(component: Any) -> Sockets:
    """The sockets of one component."""
    # Public sockets exist only in a pipeline, and a component can be in one only.
    inputs = [
        Socket("", name, socket.type, socket.is_mandatory)
        for name, socket in component.__haystack_input__._sockets_dict.items()
    ]
    outputs = [Socket("", name, socket.type) for name, socket in component.__haystack_output__._sockets_dict.items()]
    return Sockets(inputs, outputs, inputs, outputs)


def find_queries(sockets: Sockets, named: str | Sequence[str] | None) -> list[Socket]:
    """The inputs that take the question: the named ones, else the only mandatory string.

    Raises:
        OptionError: no such input, none that could be meant, or several.
    """
    if named is not None:
        wanted = [named] if isinstance(named, str) else named
        if not isinstance(wanted, list | tuple) or not all(isinstance(each, str) for each in wanted) or not wanted:
            raise OptionError(f"query_socket is an input's name or a list of names, got {named!r}")
        return [_named(each, sockets.inner_inputs, "query_socket", str) for each in wanted]
    texts = [socket for socket in sockets.inputs if socket.holds(str)]
    mandatory = [socket for socket in texts if socket.mandatory]
    if len(mandatory) == 1:
        return mandatory
    if mandatory:
        raise OptionError(
            f"several inputs take a string: {_listed(mandatory)}; say which take the question, "
            f"as query_socket={[str(socket) for socket in mandatory]!r} or one of them, "
            "and what the others take as inputs={...}"
        )
    raise OptionError(
        "no mandatory input takes a string; "
        + (f"name one of {_listed(texts)} as query_socket" if texts else "a retriever needs one for the question")
    )


def find_documents(sockets: Sockets, named: str | None) -> Socket:
    """The output that gives the documents: the named one, else the only one of documents.

    Outputs that something inside takes are looked at where no other gives documents: the retriever of a
    pipeline that ends in a generator.

    Raises:
        OptionError: no such output, none that gives documents, or several.
    """
    if named is not None:
        return _named(named, sockets.inner_outputs, "documents_socket", list[Document])
    for candidates in (sockets.outputs, sockets.inner_outputs):
        found = [socket for socket in candidates if socket.holds(list[Document])]
        if len(found) == 1:
            return found[0]
        if found:
            raise OptionError(
                f"several outputs give documents: {_listed(found)}; "
                f'say which counts, as documents_socket="{found[0]}" for instance'
            )
    raise OptionError(
        f"no output gives a list of documents: expected one, got {_listed(sockets.inner_outputs) or 'no output at all'}"
    )


def _named(name: str, candidates: Sequence[Socket], option: str, kind: Any) -> Socket:
    for socket in candidates:
        if str(socket) == name:
            return socket
    fitting = [socket for socket in candidates if socket.holds(kind)] or candidates
    raise OptionError(f"{option}: there is no {name!r}; expected one of {_listed(fitting)}")


def _listed(sockets: Iterable[Socket]) -> str:
    return ", ".join(map(str, sockets))
