"""Strategies from a YAML file; each entry becomes a spec string. Importing this imports PyYAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

from chunkcore.chunkers.base import Chunker, get_chunker, strategies
from chunkcore.errors import ChunkcoreError, DataError, OptionError, check_type
from chunkcore.files import read_text
from chunkcore.models.base import Embedder
from chunkcore.models.loading import tokenizing
from chunkcore.specs import format_spec

_LARGEST = 1_000_000  # bytes
_MOST = 100_000  # values
_PLAIN = (str, bool, int, float, type(None))


def get_chunkers(path: Path | str) -> list[Chunker]:
    """The strategies of a YAML file, in order.

    The file is one entry or a list. An entry is a string for `get_chunker`, or a mapping with the key ``strategy`` and
    options. Anchors and merge keys can share options. PyYAML's safe loader reads the file; no model is loaded.

        - recursive:size=200
        - strategy: cluster_semantic
          size: 200

    Raises:
        OptionError: not YAML, or a wrong entry; with the line.
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    return [get_chunker(spec) for spec in read_specs(path)]


def read_specs(path: Path | str, check: Callable[[str], object] = get_chunker) -> list[str]:
    """The entries of a file for `get_chunkers`, as strings; `check` is called with each."""
    check_type("a file of strategies", path, str | Path, "a path")
    path = Path(path)
    with opened(path) as (loader, root):
        entries = root.value if isinstance(root, yaml.SequenceNode) else [root] if root else []
        if not entries:
            raise OptionError(f"{path} names no strategy: write one a line, as in - recursive:size=200")
        specs = []
        for entry in entries:
            with telling_where(path, entry.start_mark.line + 1):
                specs.append(_spec(entry, loader, check))
        return specs


@contextmanager
def opened(path: Path) -> Iterator[tuple[yaml.SafeLoader, yaml.Node | None]]:
    """The loader of a YAML file, and its root node. Raises `DataError` over 1 MB, which YAML would read for minutes."""
    if path.is_file() and (size := path.stat().st_size) > _LARGEST:
        raise DataError(f"{path} has {size:,} bytes, and a file of settings {_LARGEST:,} at most: is it another file?")
    text = read_text(path)
    with telling_where(path):
        loader = yaml.SafeLoader(text)
    try:
        with telling_where(path):
            root = loader.get_single_node()
            if root is not None:
                _unfolded(root, {})
        yield loader, root
    finally:
        loader.dispose()


def _unfolded(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node has. Raises `yaml.YAMLError` if aliases expand it too far or recursively."""
    if id(node) not in known:
        known[id(node)] = 0  # until it is counted
        inside = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            inside = [child for pair in node.value for child in pair]
        known[id(node)] = 1 + sum(_unfolded(child, known) for child in inside)
    if not 0 < known[id(node)] < _MOST:
        wrong = f"aliases (*name) make {_MOST:,} values or more" if known[id(node)] else "a recursive node"
        raise yaml.MarkedYAMLError(problem=wrong, problem_mark=node.start_mark)
    return known[id(node)]


@contextmanager
def telling_where(path: Path, line: int = 0) -> Iterator[None]:
    """Turn errors inside into an `OptionError` with the file and line."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else line
        raise OptionError(f"{path}, line {line}: {error.problem or 'not YAML'}; correct it") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise OptionError(f"{path}: {' '.join(str(error).split())}; take it out") from error
    except RecursionError as error:
        raise OptionError(f"{path}: nested too deeply; expected strategies with their options") from error
    except ChunkcoreError as error:
        place = "" if str(error).startswith(f"{path}, line ") else f"{path}, line {line}: "
        raise OptionError(f"{place}{error}") from error
    except ValueError as error:  # a date that is none
        raise OptionError(f"{path}, line {line}: {error}; correct it") from error


def _spec(entry: yaml.Node, loader: yaml.SafeLoader, check: Callable[[str], object]) -> str:
    keys = [key.value for key, _ in entry.value] if isinstance(entry, yaml.MappingNode) else []
    for key in keys:
        if not isinstance(key, str):
            raise OptionError(f"an option's name is a string, got {_shown(key)}")
        if keys.count(key) > 1:
            raise OptionError(f"{key} is given twice; keep one")
    spec = loader.construct_object(entry, deep=True)
    if isinstance(spec, dict):
        name = spec.pop("strategy", None)
        if not isinstance(name, str):
            raise OptionError(
                f"an entry says which strategy it is, as in {{strategy: recursive, size: 200}}, got {_shown(name)}"
            )
        for option, value in spec.items():
            if not all(isinstance(item, _PLAIN) for item in (value if isinstance(value, list) else [value])):
                raise OptionError(
                    f"{option} is a string, a number, true, false, null or a list of these, got {_shown(value)}"
                )
        spec = format_spec(name, spec)
    if not isinstance(spec, str):
        raise OptionError(f"expected recursive:size=200 or {{strategy: recursive, size: 200}}, got {_shown(spec)}")
    check(spec)
    return spec


def _shown(value: Any) -> str:
    return type(value).__name__ if isinstance(value, dict | list) else repr(value)


# The chunking survey, "Embedding Model Token Limits": 50 to 75 % of the limit.
SHARE = 0.6
# Units in a token; the chunking survey, "Token Counting", has four characters.
_PER_TOKEN = {"characters": 4.0, "words": 0.75}


def sized_options(name: str, options: Mapping[str, Any], embedder: Embedder) -> dict[str, Any]:
    """Options with a default size that suits the model: 60 % of its token limit.

    The size is in the model's own tokens with ``counter="embedder"``, unless a counter is given or the model has no
    tokenizer. Other counters count a token as one of the model's, as four characters, or as 3/4 of a word. Nothing is
    added for a model without a limit or a strategy without a size.

    >>> from types import SimpleNamespace
    >>> sized_options("recursive", {"counter": "characters"}, SimpleNamespace(max_tokens=256))
    {'counter': 'characters', 'size': 614}
    """
    sized = dict(options)
    cls = strategies.find(name)
    defaults = {field.name: field.default for field in fields(cls)} if cls else {}
    if type(defaults.get("size")) is not int or "size" in sized or embedder.max_tokens is None:
        return sized
    counter = getattr(sized.get("counter"), "name", sized.get("counter"))
    size = int(SHARE * embedder.max_tokens * _PER_TOKEN.get(str(counter), 1.0))
    # For short models: a chunk is at least one piece.
    piece = {**defaults, **sized}.get("piece_size")
    sized["size"] = max(1, size, piece if isinstance(piece, int) else 1)
    if counter is None and tokenizing(embedder) is not None:
        sized["counter"] = "embedder"
    return sized
