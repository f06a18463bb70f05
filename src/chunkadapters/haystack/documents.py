"""Haystack's documents as hits and as chunkcore's, and what its components share.

The components are in Haystack's own namespace, `haystack_integrations`, because `Pipeline.loads` trusts only that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from types import UnionType
from typing import Any, TypeAlias, TypeGuard, Union, get_args, get_origin

from haystack import Document, default_from_dict, default_to_dict, logging
from haystack.core.component import Component
from typing_extensions import Self

from chunkadapters.places import (
    NOWHERE,
    SPANS,
    WHOLE,
    Origin,
    PlaceKeys,
    with_page_marks,
)
from chunkcore.errors import OptionError
from chunkcore.locating import Hit, names_of
from chunkcore.text import Document as CoreDocument

logger = logging.getLogger(__name__)

# A chunk's place in the document it was cut from, and in the document at the root of a chain of splitters.
KEYS = PlaceKeys("split_idx_start", "split_idx_end", SPANS)
ROOT = PlaceKeys("root_idx_start", "root_idx_end", "root_spans")
# What a chunk states of its own place and neighbours: neither its parts nor passages inherit it.
OF_ONE_CHUNK = (
    "_split_overlap",
    "split_id",
    "root_source_id",
    ROOT.start,
    ROOT.end,
    ROOT.spans,
)
# Where Haystack's converters and fetchers, and users, write a document's name.
_NAMING_KEYS = ("file_path", "file_name", "name", "source", "path", "url", "title", "id")


def hit_of(document: Document) -> Hit:
    """A document as a hit."""
    meta, text = document.meta, document.content or ""
    sources = names_of(meta.get("root_source_id"), meta.get("source_id"))
    keys = ROOT if isinstance(meta.get("root_source_id"), str) else KEYS
    root = next(iter(sources), "")
    candidates = [*sources, document.id, *map(meta.get, _NAMING_KEYS)]
    return keys.hit(text, meta, candidates, document.score, document=root, id=document.id)


def core_document(document: Document) -> CoreDocument:
    """A document as chunkcore's."""
    return CoreDocument(document.id, document.content or "", document.meta)


def from_document(document: CoreDocument) -> Document:
    """A chunkcore document, as from `join_pages` or `load_documents`, as Haystack's; its chunks say their pages.

    The metadata have ``page_marks``, which chunks of `ChunkcoreDocumentSplitter` do not inherit.
    """
    return Document(id=document.id, content=document.text, meta=with_page_marks(document))


def root_of(document: CoreDocument) -> tuple[str, Origin]:
    """The first document of a chain of splitters, and this document's place in it: `WHOLE` if it is no chunk.

    The place is unknown if the metadata do not fit the text: another splitter wrote them, or the text was altered.
    """
    meta, text = document.metadata, document.text
    if "root_source_id" in meta:
        return meta["root_source_id"], ROOT.origin(meta, text)
    if "source_id" not in meta or KEYS.start not in meta:
        return document.id, WHOLE
    # `spans` without a root are inherited from a chunk of several places whose root is not known.
    origin = NOWHERE if SPANS in meta else KEYS.origin(meta, text)
    return meta["source_id"], origin


def check_documents(component: object, documents: object) -> None:
    """Raise `TypeError` for anything but a list of `Document`, as Haystack's own components do."""
    expected = f"{type(component).__name__} expects a list of Documents as input"
    if not isinstance(documents, list):
        raise TypeError(f"{expected}, got {type(documents).__name__}")
    for place, document in enumerate(documents):
        if not isinstance(document, Document):
            how = "; from_document makes one" if isinstance(document, CoreDocument) else ""
            raise TypeError(f"{expected}, got {type(document)} at place {place}{how}")


def has_text(document: Document) -> bool:
    """Whether a document has content; if not, a warning says that it is skipped."""
    if document.content:
        return True
    logger.warning(
        "Document ID {doc_id} has an empty content. Skipping this document.", doc_id=document.id
    )
    return False


Values: TypeAlias = dict[str, Any]
DocumentLists: TypeAlias = dict[str, list[Document]]


class Serialized:
    """A component that Haystack can write as YAML. Its `run_async` is `run` in a thread."""

    run_async: Callable[..., Coroutine[object, object, Values]]

    def __init_subclass__(cls) -> None:
        run: Callable[..., Values] | None = vars(cls).get("run")
        if run is not None and "run_async" not in vars(cls):

            @wraps(run)  # Haystack compares signatures and output types
            async def run_async(*values: object, **more: object) -> Values:
                return await asyncio.to_thread(run, *values, **more)

            cls.run_async = run_async

    def _arguments(self) -> Values:
        """The constructor's arguments as plain values or as objects with a `to_dict`: by default its attributes."""
        names = list(signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> Values:
        """The component as plain values. Raises `OptionError`: an argument has no name to be built from again."""
        return default_to_dict(self, **self._arguments())

    @classmethod
    def from_dict(cls, data: Values) -> Self:
        """The component that `to_dict` described. Raises `DeserializationError` for modules that Haystack distrusts."""
        return default_from_dict(cls, data)


def is_component(candidate: object) -> TypeGuard[Component]:
    """Whether it is an object of a class that Haystack's ``component`` decorated."""
    return hasattr(candidate, "__haystack_input__") and hasattr(candidate, "__haystack_output__")


def warm_up(component: object) -> None:
    """Load what a component loads, if it loads anything."""
    warm = getattr(component, "warm_up", None)
    if warm is not None:
        warm()


@dataclass(frozen=True, slots=True)
class Socket:
    """An input or an output; `component` is "" for a component on its own, `free` false if it is connected inside.

    What is mandatory is free.
    """

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
        shapes = [(get_origin(item) or item, get_args(item)) for item in types]
        return (get_origin(kind) or kind, get_args(kind)) in shapes


Sockets: TypeAlias = list[Socket]


def sockets_of(component: object, name: str = "") -> tuple[Sockets, Sockets]:
    """The inputs and the outputs of a component; none of anything else. `name` is its name in a pipeline."""
    held: Any = component
    if not is_component(component):
        return [], []
    inputs = []
    for row in held.__haystack_input__._sockets_dict.values():
        is_connected = bool(name and row.senders)
        is_mandatory = row.is_mandatory and not is_connected
        is_free = row.is_variadic or not is_connected
        inputs.append(Socket(name, row.name, row.type, is_mandatory, is_free))
    outputs = []
    for row in held.__haystack_output__._sockets_dict.values():
        is_free = not (name and row.receivers)
        outputs.append(Socket(name, row.name, row.type, free=is_free))
    return inputs, outputs


def find_queries(inputs: Sockets, query_socket: str | Sequence[str] | None) -> Sockets:
    """The inputs that take the question: the named ones, else the only mandatory string. Raises `OptionError`."""
    if query_socket is not None:
        names = [query_socket] if isinstance(query_socket, str) else query_socket
        return [_named(name, inputs, "query_socket") for name in names]
    texts = [row for row in inputs if row.mandatory and row.holds(str)]
    if len(texts) > 1:
        raise OptionError(
            f"several inputs take a string: {_listed(texts)}; say which take the question, as query_socket="
            f"{[str(socket) for socket in texts]!r} or one of them, and what the others take as inputs={{...}}"
        )
    if not texts:
        raise OptionError(
            f"no mandatory input takes a string: name one of {_listed(inputs)} as query_socket; a retriever that takes "
            "an embedding is scored in a pipeline with its text embedder"
        )
    return texts


def find_documents(outputs: Sockets, documents_socket: str | None) -> Socket:
    """The output of documents: the named one, else the only one.

    If no output gives documents, connected ones are searched: the retriever of a pipeline that ends in a generator.
    Raises `OptionError`: no such output, no output of documents, or several.
    """
    if documents_socket is not None:
        return _named(documents_socket, outputs, "documents_socket")
    every = [socket for socket in outputs if socket.holds(list[Document])]
    matches = [socket for socket in every if socket.free] or every
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


def _named(name: str, candidates: Sockets, option: str) -> Socket:
    for socket in candidates:
        if str(socket) == name:
            return socket
    raise OptionError(f"{option}: there is no {name!r}; expected one of {_listed(candidates)}")


def _listed(sockets: Sockets) -> str:
    return ", ".join(map(str, sockets)) or "none"


def _has(sockets: Sockets, name: str) -> bool:
    return any(socket.name == name for socket in sockets)


def embeds_documents(component: object) -> bool:
    """Whether it is a document embedder."""
    inputs, outputs = sockets_of(component)
    needed = [socket.name for socket in inputs if socket.mandatory]
    return needed == ["documents"] and _has(outputs, "documents")


def embeds_text(component: object) -> bool:
    """Whether it is a text embedder."""
    _, outputs = sockets_of(component)
    return any(socket.name == "embedding" and socket.holds(list[float]) for socket in outputs)


def generates(component: object) -> bool:
    """Whether it is a chat generator."""
    inputs, outputs = sockets_of(component)
    return _has(inputs, "messages") and _has(outputs, "replies")


def takes_and_gives_documents(component: object) -> bool:
    """Whether it is a component with an input and an output named ``documents``."""
    return all(_has(side, "documents") for side in sockets_of(component))
