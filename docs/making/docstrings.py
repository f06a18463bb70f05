"""A strategy's docstring in parts, and its options with what they mean, also where they are inherited."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, dataclass, fields
from inspect import cleandoc
from typing import Any, get_type_hints

from chunkcore import Chunker
from chunkcore.registry import described
from docs.making.markup import markdown_line

__all__ = ["Docstring", "Option", "options_of", "read_docstring"]

_SECTIONS = ("Attributes:", "Raises:")
_SEE = re.compile(r"see `(\w+)`(?:[;:,.] *(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Docstring:
    """What a class says of itself.

    Attributes:
        summary: the first line.
        body: the paragraphs after it, as Markdown.
        attributes: by name, what it means.
        raises: by the error's name, when.
        cost: what it says that it costs, if it says so in a paragraph of its own.
        example: the doctest, as it stands there.
    """

    summary: str
    body: str
    attributes: dict[str, str]
    raises: dict[str, str]
    cost: str
    example: str


@dataclass(frozen=True)
class Option:
    """A field of a strategy, as a user has it."""

    name: str
    kind: str
    default: str
    meaning: str


def read_docstring(cls: type) -> Docstring:
    """The parts of a class' own docstring, which is in the style of Google."""
    summary, *blocks = re.split(r"\n{2,}", cleandoc(cls.__dict__.get("__doc__") or ""))
    body, example, cost = [], "", ""
    items: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for block in blocks:
        head, _, rest = block.partition("\n")
        if head in _SECTIONS:
            items[head] = _items(rest)
        elif block.startswith(">>> "):
            example = block
        elif block.startswith("Cost: "):
            cost = _markdown(block.removeprefix("Cost: "))
        else:
            body.append(_markdown(block))
    return Docstring(
        _markdown(summary),
        "\n\n".join(body),
        items["Attributes:"],
        items["Raises:"],
        cost[:1].upper() + cost[1:],
        example,
    )


def options_of(cls: type[Chunker]) -> list[Option]:
    """The options in the order in which they are written, the counter last."""
    hints = get_type_hints(cls)
    found = [
        Option(each.name, described(hints[each.name]), _default(each), _capital(_meaning(cls, each.name)))
        for each in fields(cls)
    ]
    return sorted(found, key=lambda option: option.name == "counter")


def _items(block: str) -> dict[str, str]:
    """``name: what it is`` a line, each with the indented lines that go on."""
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", block, flags=re.MULTILINE)
    return {name: _markdown(" ".join(told.split())) for name, told in found}


def _meaning(cls: type, option: str) -> str:
    """What the nearest class of the family that tells of an option says; "see `Base`" is what that one says."""
    for each in cls.__mro__:
        told = read_docstring(each).attributes.get(option) if each is not object else None
        if told is None:
            continue
        see = _SEE.fullmatch(told)
        base = next((base for base in cls.__mro__ if see and base.__name__ == see[1] and base is not each), None)
        if see is None or base is None:
            return told
        more = see[2] or ""
        return f"{_meaning(base, option)} {_capital(more)}".strip()
    raise LookupError(f"no docstring of {cls.__name__}'s family tells of the option {option}")


def _default(field: Field[Any]) -> str:
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value == "" and field.name == "llm":
        return "to be given"
    return f"`{getattr(value, 'name', value)!r}`"


def _markdown(text: str) -> str:
    """Literals stand between single back quotes in Markdown, and only there "<" is no markup.

    Indented lines, which are formulas, stay as they are.
    """
    return "\n".join(line if line.startswith("    ") else markdown_line(line) for line in text.split("\n"))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
