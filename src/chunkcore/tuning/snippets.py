"""A configuration as its user can paste it: the command line, YAML, and the three frameworks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.spec import format_spec, split_spec
from chunkcore.models.loading import DEFAULT_MODEL

__all__ = ["portable_spec", "snippets"]

_ADAPTERS = {
    "LangChain": ("chunkadapters.langchain", "ChunkcoreTextSplitter", "splitter"),
    "LlamaIndex": ("chunkadapters.llamaindex", "ChunkcoreNodeParser", "parser"),
    "Haystack": ("chunkadapters.haystack", "ChunkcoreDocumentSplitter", "splitter"),
}


def portable_spec(spec: str, embedder: str = DEFAULT_MODEL) -> str:
    """The string with the embedder in it, where the strategy embeds and would take another one by itself.

    >>> portable_spec("cluster_semantic:max_size=200", "openvino:models/mine")
    'cluster_semantic:max_size=200,embedder=openvino:models/mine'
    >>> portable_spec("recursive:size=200", "openvino:models/mine")
    'recursive:size=200'
    """
    name, options = split_spec(spec)
    if embedder == DEFAULT_MODEL or "embedder" not in strategies()[name].option_names() or "embedder" in options:
        return spec
    return format_spec(name, {**options, "embedder": embedder})


def snippets(spec: str, embedder: str = DEFAULT_MODEL) -> Mapping[str, str]:
    """By title, what to paste; each makes the same chunks.

    Args:
        spec: the configuration, as `parse_chunker` reads it.
        embedder: the name of the model that it was found with, as `get_embedder` knows it.

    >>> print(snippets("sentence:size=100")["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    spec = portable_spec(spec, embedder)
    name, options = split_spec(spec)
    # Where sizes are in the embedder's own tokens, it has to be known to the adapter.
    fitted = f', fit_to="{_escaped(embedder)}"' if options.get("counter") == "embedder" else ""
    found = {
        "Command line": f"chunkcore chunk docs/ --strategy {shlex.quote(spec)}",
        "YAML, for compare --config": _yaml(name, options),
    }
    for framework, (module, cls, variable) in _ADAPTERS.items():
        found[framework] = f'from {module} import {cls}\n\n{variable} = {cls}("{_escaped(spec)}"{fitted})'
    return found


def _escaped(text: str) -> str:
    """Text between double quotes in Python: nothing in it ends the string, steers a terminal or is not ASCII."""
    return ascii(text + '"')[1:-1].removesuffix('"').replace("\\'", "'").replace('"', '\\"')


def _yaml(name: str, options: Mapping[str, Any]) -> str:
    import yaml  # type: ignore[import-untyped,unused-ignore]

    text: str = yaml.safe_dump([{"strategy": name, **options}], sort_keys=False, width=1_000)
    return text.rstrip("\n")
