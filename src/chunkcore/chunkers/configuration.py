"""Strategies in a YAML file: each entry becomes the string that says the same. PyYAML is imported with this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

from chunkcore.chunkers.spec import format_spec, parse_chunker
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.evaluation.textfiles import read_text

__all__ = ["read_small", "read_specs", "root_node", "telling_where"]

_LARGEST = 1_000_000  # bytes
_MOST = 100_000  # values


def read_specs(path: Path | str, check: Callable[[str], object] = parse_chunker) -> list[str]:
    """The entries of a file as `load_chunkers` reads it, as strings from which `check` builds them.

    Raises:
        OptionError: not YAML, or an entry describes no strategy; with the line.
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    path = Path(path)
    text = read_small(path)
    with telling_where(path):
        loader = yaml.SafeLoader(text)
    try:
        with telling_where(path):
            root = root_node(loader)
        entries = root.value if isinstance(root, yaml.SequenceNode) else [root] if root else []
        if not entries:
            raise OptionError(f"{path} names no strategy: write one a line, as in - recursive:size=200")
        found = []
        for entry in entries:
            with telling_where(path, entry.start_mark.line + 1):
                found.append(_spec(entry, loader, check))
        return found
    finally:
        loader.dispose()


def read_small(path: Path) -> str:
    """The text of a file that people write by hand.

    Raises:
        DataError: it is larger than any such file, which YAML would take minutes to read; or what `read_text` raises.
    """
    if path.is_file() and (size := path.stat().st_size) > _LARGEST:
        raise DataError(f"{path} has {size:,} bytes, and a file of settings {_LARGEST:,} at most: is it another file?")
    return read_text(path)


def root_node(loader: yaml.SafeLoader) -> yaml.Node | None:
    """What the file holds, once it is known that its aliases do not multiply it.

    Raises:
        yaml.YAMLError: it is no YAML; or written out without aliases it would be very long, or have no end.
    """
    root = loader.get_single_node()
    if root is not None:
        _unfolded(root, {})
    return root


def _unfolded(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values the node is, aliases written out."""
    if id(node) not in known:
        known[id(node)] = 0  # until it is counted
        inside = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            inside = [each for pair in node.value for each in pair]
        known[id(node)] = 1 + sum(_unfolded(each, known) for each in inside)
    if not 0 < known[id(node)] < _MOST:
        wrong = f"aliases (*name) make {_MOST:,} values or more" if known[id(node)] else "a recursive node"
        raise yaml.MarkedYAMLError(problem=wrong, problem_mark=node.start_mark)
    return known[id(node)]


@contextmanager
def telling_where(path: Path, line: int = 0, *, expected: str = "a list of strategies") -> Iterator[None]:
    """Whatever is wrong inside is an `OptionError` that says where: on that line, or on the one that YAML found."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else line
        raise OptionError(f"{path}, line {line}: {error.problem or 'not YAML'}; correct it") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise OptionError(f"{path}: {' '.join(str(error).split())}; take it out") from error
    except RecursionError as error:
        raise OptionError(f"{path}: nested too deeply; expected {expected}") from error
    except ChunkcoreError as error:
        place = "" if str(error).startswith(f"{path}, line ") else f"{path}, line {line}: "
        raise OptionError(f"{place}{error}") from error
    except ValueError as error:  # a date that is none
        raise OptionError(f"{path}, line {line}: {error}; correct it") from error


def _spec(entry: yaml.Node, loader: yaml.SafeLoader, check: Callable[[str], object]) -> str:
    if isinstance(entry, yaml.MappingNode):
        spec = _spec_of_mapping(entry, loader)
    else:
        spec = loader.construct_object(entry, deep=True)
        if not isinstance(spec, str):
            raise OptionError(f"expected recursive:size=200 or {{strategy: recursive, size: 200}}, got {_shown(spec)}")
    check(spec)
    return spec


def _spec_of_mapping(entry: yaml.MappingNode, loader: yaml.SafeLoader) -> str:
    keys = [key.value for key, _ in entry.value]
    for key in keys:
        if not isinstance(key, str):
            raise OptionError(f"an option's name is a string, got {_shown(key)}")
        if keys.count(key) > 1:
            raise OptionError(f"{key} is given twice; keep one")
    options = loader.construct_object(entry, deep=True)
    name = options.pop("strategy", None)
    if not isinstance(name, str):
        raise OptionError(
            f"an entry says which strategy it is, as in {{strategy: recursive, size: 200}}, got {_shown(name)}"
        )
    for option, value in options.items():
        if not all(map(_is_plain, value if isinstance(value, list) else [value])):
            raise OptionError(
                f"{option} is a string, a number, true, false, null or a list of these, got {_shown(value)}"
            )
    return format_spec(name, options)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _shown(value: Any) -> str:
    return type(value).__name__ if isinstance(value, dict | list) else repr(value)
