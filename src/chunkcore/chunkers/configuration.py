"""Strategies in a YAML file: each entry becomes the string that says the same. PyYAML is imported with this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

from chunkcore.chunkers.spec import format_spec, parse_chunker
from chunkcore.errors import ChunkcoreError, OptionError
from chunkcore.evaluation.textfiles import read_text

__all__ = ["read_specs", "telling_where"]


def read_specs(path: Path | str, check: Callable[[str], object] = parse_chunker) -> list[str]:
    """The entries of a file as `load_chunkers` reads it, as strings from which `check` builds them.

    Raises:
        OptionError: not YAML, or an entry describes no strategy; with the line.
        DataError: the file cannot be read, is empty, or is not UTF-8.
    """
    path = Path(path)
    text = read_text(path)
    with telling_where(path):
        loader = yaml.SafeLoader(text)
    try:
        with telling_where(path):
            root = loader.get_single_node()
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
