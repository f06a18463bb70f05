"""A strategy's docstring in parts, and its options with what they mean, also where they are inherited."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc

from chunkcore import Chunker, registry
from docs.making.markup import markdown_line

__all__ = ["Docstring", "Option", "options_of", "read_docstring"]

_SECTIONS = ("Attributes:", "Raises:")


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
    found = []
    for each in registry.options_of(cls):
        if not each.meaning:
            raise LookupError(f"no docstring of {cls.__name__}'s family tells of the option {each.name}")
        default = "to be given" if (each.name, each.default) == ("llm", "") else f"`{each.shown_default}`"
        found.append(Option(each.name, each.kind, default, _capital(_markdown(each.meaning))))
    return sorted(found, key=lambda option: option.name == "counter")


def _items(block: str) -> dict[str, str]:
    """``name: what it is`` a line, each with the indented lines that go on."""
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", block, flags=re.MULTILINE)
    return {name: _markdown(" ".join(told.split())) for name, told in found}


def _markdown(text: str) -> str:
    """Literals stand between single back quotes in Markdown, and only there "<" is no markup.

    Indented lines, which are formulas, stay as they are.
    """
    return "\n".join(line if line.startswith("    ") else markdown_line(line) for line in text.split("\n"))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
