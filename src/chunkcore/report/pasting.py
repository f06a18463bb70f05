"""Code to paste: the measured system in each framework."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from chunkcore.chunkers.base import chunkers
from chunkcore.evaluation.results import System
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.options import format_spec, split_spec
from chunkcore.study.behind import HITS, UNITS, WORDS

DEFAULT_COUNTER = "cl100k_base"
DEFAULT_FOLDER = "docs/"


@dataclass(frozen=True)
class _Adapter:
    package: str
    module: str
    splitter: str
    variable: str
    retriever: str  # of a saved index


_ADAPTERS = {
    "LangChain": _Adapter(
        "langchain_core",
        "chunkadapters.langchain",
        "ChunkcoreTextSplitter",
        "splitter",
        "IndexRetriever",
    ),
    "LlamaIndex": _Adapter(
        "llama_index",
        "chunkadapters.llamaindex",
        "ChunkcoreNodeParser",
        "parser",
        "IndexRetriever",
    ),
    "Haystack": _Adapter(
        "haystack",
        "chunkadapters.haystack",
        "ChunkcoreDocumentSplitter",
        "splitter",
        "ChunkcoreIndexRetriever",
    ),
}
# The measured system: the same chunks, retriever, model and budget.
_SYSTEM = """from chunkcore import load_documents
from chunkcore.retrieval import chunk_corpus, get_retriever

documents = load_documents("{folder}")
corpus = chunk_corpus(documents, "{spec}")
index = get_retriever("{retriever}").index(corpus{vectors})"""
_DEPLOYED = """
index.save("index")  # once; later the folder is enough

from {module} import {retriever}

retriever = {retriever}("index", max_tokens=1000{counting})"""
_WORDS = """
index.save("index")  # once; later the folder is enough
units = chunk_corpus(documents, "{units}")
get_retriever("{words}").index(units).save("words")
"""
_RANKED = """
from {module} import IndexRetriever, PassageRetriever

yours = IndexRetriever("index", k={hits}, max_tokens=100_000)  # or yours
retriever = PassageRetriever(yours, index="words", max_tokens=1000{showing}{counting})"""
_PIPELINE = """
from haystack import Pipeline

from chunkadapters.haystack import ChunkcoreIndexRetriever, ChunkcorePassageRanker

yours = ChunkcoreIndexRetriever("index", k={hits}, max_tokens=100_000)  # or yours
retriever = Pipeline()
retriever.add_component("yours", yours)
retriever.add_component("passages", ChunkcorePassageRanker(index="words"{showing}{counting}))
retriever.connect("yours.documents", "passages.documents")"""
_PLAIN = """
for passage in index.retrieve("your question", max_tokens=1000):
    print(passage.document_id, passage.text)"""


def snippets(
    system: System | str, counter: str = DEFAULT_COUNTER, folder: str = DEFAULT_FOLDER
) -> Mapping[str, str]:
    """Code to paste, by title: the chunker in each framework; with a retriever, the whole system as it was measured.

    The frameworks that are installed come first, then plain Python. A string is a chunker's spec.

    Args:
        system: its embedder is a name for `get_embedder`; "" for the default.
        counter: of the budget's tokens, for `get_counter`.
        folder: of the user's documents.

    >>> print(snippets("sentence:size=100")["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    if isinstance(system, str):
        system = System(system)
    spec = _spec(system)
    blocks = dict(_blocks(system, spec, counter, folder))
    installed = {title: find_spec(adapter.package) for title, adapter in _ADAPTERS.items()}
    ordered = sorted(blocks, key=lambda title: title in installed and installed[title] is None)
    command = f"chunkcore chunk {shlex.quote(folder)} --chunker {shlex.quote(spec)}"
    return {title: blocks[title] for title in ordered} | {"Command line": command}


def _spec(system: System) -> str:
    """The chunker's spec, with the system's embedder where the chunker would default to another one."""
    name, options = split_spec(system.chunker)
    embeds = "embedder" in chunkers[name].option_names() and "embedder" not in options
    if not embeds or system.embedder in ("", DEFAULT_MODEL):
        return system.chunker
    return format_spec(name, {**options, "embedder": system.embedder})


def _blocks(system: System, spec: str, counter: str, folder: str) -> Iterator[tuple[str, str]]:
    usual = counter == DEFAULT_COUNTER
    values = {
        "hits": HITS,
        "words": WORDS,
        "units": _escaped(UNITS if usual else f"{UNITS},counter={counter}"),
        "counting": "" if usual else f', counter="{_escaped(counter)}"',
        "showing": "" if system.behind == "hits" else f', show="{system.behind}"',
    }
    built = _built(system, spec, folder) if system.retriever else ""
    for title, adapter in _ADAPTERS.items():
        ending = _DEPLOYED
        if system.behind:
            ranked = _PIPELINE if title == "Haystack" else _RANKED
            ending = _WORDS + ranked
        if system.retriever:
            names = {"module": adapter.module, "retriever": adapter.retriever}
            yield title, built + ending.format(**values, **names)
        else:
            yield title, _splitter(adapter, system, spec)
    if system.retriever and not system.behind and usual:  # an index counts in its own tokens
        yield "Python", f"{built}\n{_PLAIN}"


def _splitter(adapter: _Adapter, system: System, spec: str) -> str:
    # For sizes in the embedder's own tokens, the adapter needs the embedder.
    fitted = ""
    if split_spec(system.chunker)[1].get("counter") == "embedder":
        fitted = f', fit_to="{_escaped(system.embedder or DEFAULT_MODEL)}"'
    call = f'{adapter.splitter}("{_escaped(spec)}"{fitted})'
    return f"from {adapter.module} import {adapter.splitter}\n\n{adapter.variable} = {call}"


def _built(system: System, spec: str, folder: str) -> str:
    from chunkcore.retrieval import get_retriever

    vectors = ""
    if get_retriever(system.retriever).embeds:
        vectors = f', "{_escaped(system.embedder or DEFAULT_MODEL)}"'
    return _SYSTEM.format(
        folder=_escaped(folder),
        spec=_escaped(spec),
        retriever=_escaped(system.retriever),
        vectors=vectors,
    )


def _escaped(text: str) -> str:
    """Text for a Python string in double quotes: ASCII, without quotes or terminal controls."""
    return ascii(text + '"')[1:-1].removesuffix('"').replace("\\'", "'").replace('"', '\\"')
