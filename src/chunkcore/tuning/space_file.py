"""A search space in a YAML file. PyYAML is imported with this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

from chunkcore.chunkers.configuration import read_small, root_node, telling_where
from chunkcore.errors import OptionError
from chunkcore.tuning.space import Branch, Parameter, Range, Space, Values

__all__ = ["load_space"]

_FORM = "size: [100, 200, 400], size: {from: 50, to: 800, log: true} or overlap: {share_of: size, values: [0, 0.25]}"


def load_space(path: Path | str) -> Space:
    """The space that a YAML file describes: strategies, and for each what its options may be.

        recursive:
          size: [100, 200, 400]
          overlap: {share_of: size, values: [0, 0.1, 0.25]}
          keep: end
        breakpoint:
          - {threshold: percentile, amount: {from: 50, to: 98}}
          - {threshold: distance, amount: {from: 0.1, to: 0.7}}
        sentence:

    A value alone is fixed; a list is chosen from; ``from`` and ``to`` are a range, drawn by order of magnitude with
    ``log: true``. A list of such mappings searches each of them apart. A strategy with nothing after it is tried as it
    is. Only plain values are read (PyYAML's safe loader): no tag in a file can run anything.

    Raises:
        OptionError: not YAML, no such strategy or option, or values that it cannot have; with the line.
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    path = Path(path)
    text = read_small(path)
    with telling_where(path, expected="strategies with their options"):
        loader = yaml.SafeLoader(text)
    try:
        with telling_where(path, expected="strategies with their options"):
            root = root_node(loader)
        if not isinstance(root, yaml.MappingNode) or not root.value:
            raise OptionError(f"{path} names no strategy: write one a line with its options below, as in {_FORM}")
        _refuse_twins(path, root)
        branches: list[Branch] = []
        for key, node in root.value:
            with telling_where(path, key.start_mark.line + 1, expected="strategies with their options"):
                branches += _strategy(path, str(key.value), node, loader)
        return Space(branches=tuple(branches))
    finally:
        loader.dispose()


def _strategy(path: Path, name: str, node: yaml.Node, loader: yaml.SafeLoader) -> list[Branch]:
    """A strategy's branches, each checked on its own so that an error has its line."""
    if isinstance(node, yaml.ScalarNode) and loader.construct_object(node) is None:
        parts = [yaml.MappingNode(node.tag, [])]
    else:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    branches = []
    for part in parts:
        if not isinstance(part, yaml.MappingNode):
            raise OptionError(f"{name} is followed by its options, as in {_FORM}")
        _refuse_twins(path, part)
        loader.flatten_mapping(part)  # YAML's merge keys
        parameters = {}
        for key, value in part.value:
            with telling_where(path, key.start_mark.line + 1, expected="strategies with their options"):
                parameters[str(key.value)] = _parameter(str(key.value), loader.construct_object(value, deep=True))
        branch = Branch(strategy=name, parameters=parameters)
        branch.check()
        branches.append(branch)
    return branches


def _refuse_twins(path: Path, node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        with telling_where(path, key.start_mark.line + 1, expected="strategies with their options"):
            if not isinstance(key, yaml.ScalarNode):
                raise OptionError("a strategy or an option has a plain name")
            if key.value in seen:
                raise OptionError(f"{key.value} is given twice; keep one, or write a list of its branches")
            seen.add(key.value)


def _parameter(option: str, value: Any) -> Parameter:
    if isinstance(value, list):
        return Values(values=tuple(_plain(option, each) for each in value))
    if not isinstance(value, dict):
        return Values(values=(_plain(option, value),))
    share_of = value.get("share_of", "")
    if not isinstance(share_of, str) or set(value) - {"from", "to", "log", "values", "share_of"}:
        raise OptionError(f"{option} is one of {_FORM}; got {value!r}")
    if set(value) <= {"values", "share_of"} and isinstance(value.get("values"), list):
        return Values(values=tuple(_plain(option, each) for each in value["values"]), share_of=share_of)
    log = value.get("log", False)
    if {"from", "to"} <= set(value) and "values" not in value and isinstance(log, bool):
        return Range(low=value["from"], high=value["to"], log=log, share_of=share_of)
    raise OptionError(f"{option} is one of {_FORM}; got {value!r}")


def _plain(option: str, value: Any) -> Any:
    """A value that a strategy's string can hold; a list of such is one value, as for separators."""
    if isinstance(value, list):
        return [_plain(option, each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{option} may be strings, numbers, true, false, null or lists of these, got {value!r}")
