"""Code to paste: the measured system in each framework."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.util import find_spec

from chunkcore.chunkers.base import chunkers
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.options import format_spec, split_spec

DEFAULT_COUNTER = "cl100k_base"
_ADAPTERS = {  # package, module, splitter, its variable, and the retriever of a saved index
    "LangChain": (
        "langchain_core",
        "chunkadapters.langchain",
        "ChunkcoreTextSplitter",
        "splitter",
        "IndexRetriever",
    ),
    "LlamaIndex": (
        "llama_index",
        "chunkadapters.llamaindex",
        "ChunkcoreNodeParser",
        "parser",
        "IndexRetriever",
    ),
    "Haystack": (
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

corpus = chunk_corpus(load_documents("docs/"), "{spec}")
index = get_retriever("{retriever}").index(corpus{vectors})"""
_DEPLOYED = """
index.save("index")  # once; later the folder is enough

from {module} import {cls}

retriever = {cls}("index", max_tokens=1000{counting})"""

BEHIND = "passages behind"  # of a retriever: its row in a comparison
UNITS = "sentence:size=50"  # of the words behind a retriever
_WORDS = """
index.save("index")  # once; later the folder is enough
units = chunk_corpus(load_documents("docs/"), "{units}")
get_retriever("passages:lexical").index(units).save("words")
"""
_RANKED = """
from {module} import IndexRetriever, PassageRetriever

yours = IndexRetriever("index", k=10, max_tokens=100_000)  # or yours
retriever = PassageRetriever(yours, index="words", max_tokens=1000{counting})"""
_PIPELINE = """
from haystack import Pipeline

from chunkadapters.haystack import ChunkcoreIndexRetriever, ChunkcorePassageRanker

yours = ChunkcoreIndexRetriever("index", k=10, max_tokens=100_000)  # or yours
retriever = Pipeline()
retriever.add_component("yours", yours)
retriever.add_component("passages", ChunkcorePassageRanker(index="words", filters=None{counting}))
retriever.connect("yours.documents", "passages.documents")"""
_PLAIN = """
for passage in index.retrieve("your question", max_tokens=1000):
    print(passage.document_id, passage.text)"""


def snippets(
    spec: str, retriever: str = "", embedder: str = DEFAULT_MODEL, counter: str = DEFAULT_COUNTER
) -> Mapping[str, str]:
    """Code to paste, by title: the chunker in each framework; with a retriever, the whole system as it was measured.

    The frameworks that are installed come first, then plain Python. `embedder` is a name for `get_embedder`, `counter`
    one for `get_counter`.

    >>> print(snippets("sentence:size=100")["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    name, options = split_spec(spec)
    if (
        embedder != DEFAULT_MODEL
        and "embedder" in chunkers[name].option_names()
        and "embedder" not in options
    ):
        spec = format_spec(
            name, {**options, "embedder": embedder}
        )  # the chunker would default to another one
    # For sizes in the embedder's own tokens, the adapter needs the embedder.
    fitted = f', fit_to="{_escaped(embedder)}"' if options.get("counter") == "embedder" else ""
    inner = retriever.removesuffix(f" · {BEHIND}")
    system = _system(spec, inner, embedder) if retriever else ""
    counting = "" if counter == DEFAULT_COUNTER else f', counter="{_escaped(counter)}"'
    units = f"{UNITS},counter={counter}" if counting else UNITS
    blocks = {}
    for framework, (package, module, splitter, variable, retriever_class) in _ADAPTERS.items():
        block = f'from {module} import {splitter}\n\n{variable} = {splitter}("{_escaped(spec)}"{fitted})'
        if inner != retriever:
            behind = (_PIPELINE if framework == "Haystack" else _RANKED).format(
                module=module, counting=counting
            )
            block = system + _WORDS.format(units=_escaped(units)) + behind
        elif retriever:
            block = system + _DEPLOYED.format(module=module, cls=retriever_class, counting=counting)
        blocks[framework] = (find_spec(package) is None, block)
    if retriever and inner == retriever and not counting:  # an index counts in its own tokens
        blocks["Python"] = (False, f"{system}\n{_PLAIN}")
    ordered = {
        title: block for title, (_, block) in sorted(blocks.items(), key=lambda item: item[1][0])
    }
    return ordered | {"Command line": f"chunkcore chunk docs/ --chunker {shlex.quote(spec)}"}


def _system(spec: str, retriever: str, embedder: str) -> str:
    from chunkcore.retrieval import get_retriever

    vectors = f', "{_escaped(embedder)}"' if get_retriever(retriever).embeds else ""
    return _SYSTEM.format(spec=_escaped(spec), retriever=_escaped(retriever), vectors=vectors)


def _escaped(text: str) -> str:
    """Text for a Python string in double quotes: ASCII, without quotes or terminal controls."""
    return ascii(text + '"')[1:-1].removesuffix('"').replace("\\'", "'").replace('"', '\\"')
