"""Code to paste: the measured system in each framework."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import yaml  # type: ignore[import-untyped,unused-ignore]

from chunkcore.chunkers.base import strategies
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.registry import format_spec, split_spec

_ADAPTERS = {
    "LangChain": ("chunkadapters.langchain", "ChunkcoreTextSplitter", "splitter"),
    "LlamaIndex": ("chunkadapters.llamaindex", "ChunkcoreNodeParser", "parser"),
    "Haystack": ("chunkadapters.haystack", "ChunkcoreDocumentSplitter", "splitter"),
}


def portable_spec(spec: str, embedder: str = DEFAULT_MODEL) -> str:
    """The spec with the embedder added, if the strategy embeds and would default to another one.

    >>> portable_spec("cluster_semantic:size=200", "openvino:models/mine")
    'cluster_semantic:size=200,embedder=openvino:models/mine'
    >>> portable_spec("recursive:size=200", "openvino:models/mine")
    'recursive:size=200'
    """
    name, options = split_spec(spec)
    if embedder == DEFAULT_MODEL or "embedder" not in strategies[name].option_names() or "embedder" in options:
        return spec
    return format_spec(name, {**options, "embedder": embedder})


def snippets(spec: str, retriever: str = "", embedder: str = DEFAULT_MODEL) -> Mapping[str, str]:
    """Code to paste, by title; each makes the same chunks; the first names the retriever, if any.

    `embedder` is a name for `get_embedder`.

    >>> print(snippets("sentence:size=100")["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    spec = portable_spec(spec, embedder)
    name, options = split_spec(spec)
    # For sizes in the embedder's own tokens, the adapter needs the embedder.
    fitted = f', fit_to="{_escaped(embedder)}"' if options.get("counter") == "embedder" else ""
    found = {}
    if retriever:
        made = f'retriever = get_retriever("{_escaped(retriever)}")'
        found["Retriever"] = f"from chunkcore import get_retriever\n\n{made}"
    for framework, (module, cls, variable) in _ADAPTERS.items():
        found[framework] = f'from {module} import {cls}\n\n{variable} = {cls}("{_escaped(spec)}"{fitted})'
        if retriever in ("passages", "passages:lexical"):  # what the adapters' retrievers are, by themselves
            models = {each: f", {each}" if retriever == "passages" else "" for each in _MODELS}
            found[framework] = _PASSAGES[framework].format(spec=_escaped(spec), **models)
    written: str = yaml.safe_dump([{"strategy": name, **options}], sort_keys=False, width=1_000)
    return found | {
        "YAML, for compare --config": written.rstrip("\n"),
        "Command line": f"chunkcore chunk docs/ --strategy {shlex.quote(spec)}",
    }


# In place of, or after, the splitter's lines: what a retriever is made of stays the user's.
_PASSAGES = {
    "LangChain": """from functools import partial

from chunkadapters.langchain import PassageRetriever

passages_of = partial(PassageRetriever.from_documents, units="{spec}", max_tokens=1000)
# retriever = passages_of(documents{embeddings})""",
    "LlamaIndex": """from functools import partial

from chunkadapters.llamaindex import PassageRetriever

passages_of = partial(PassageRetriever.from_documents, units="{spec}", max_tokens=1000)
# retriever = passages_of(documents{embed_model})""",
    "Haystack": """from functools import partial

from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcorePassageRetriever

splitter = ChunkcoreDocumentSplitter("{spec}")
passages_of = partial(ChunkcorePassageRetriever, max_tokens=1000)
# retriever = passages_of(store{text_embedder})""",
}
_MODELS = ("embeddings", "embed_model", "text_embedder")


def _escaped(text: str) -> str:
    """Text for a Python string in double quotes: ASCII, without quotes or terminal controls."""
    return ascii(text + '"')[1:-1].removesuffix('"').replace("\\'", "'").replace('"', '\\"')
