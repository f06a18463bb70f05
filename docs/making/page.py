"""The pages and pictures of the chunkers, from their docstrings, their options, and the chunks that they make."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Literal, NamedTuple, get_args, get_origin, get_type_hints

import chunkcore
from chunkcore import Chunk, Chunker, Document, get_chunker
from chunkcore.chunkers import chunkers
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.chunkers.structure import BlockChunker
from chunkcore.models.llm import CallableLLM
from chunkcore.options import default_of, shown_default, split_spec
from docs.making.picture import Strip, draw, draw_overview
from docs.making.shown import SHOWN, Shown
from docs.making.site import ROOMS, markdown_line

__all__ = [
    "ROOT",
    "Option",
    "api_page",
    "index_page",
    "make_index",
    "make_page",
    "options_of",
    "overview",
    "summary",
]

ROOT = Path(__file__).resolve().parents[2]
PAGES = "docs/reference/chunkers"
PICTURES = "docs/images/chunkers"
API = "docs/reference/api.md"
_MADE = "<!-- made by docs/making -->"
_SHARED = 4  # an option of so many chunkers is explained once, on the list of all
_SEE = re.compile(r"see `(\w+)`(?:[;:,.] *(.*))?", re.DOTALL)


class Option(NamedTuple):
    """An option of a chunker, as its page shows it."""

    name: str
    default: str
    meaning: str


def make_page(name: str) -> dict[str, str]:
    """The files of a chunker, by their paths in the repository: its page and its pictures.

    Raises:
        MissingExtraError: a package that the chunker needs is not installed.
    """
    shown = SHOWN[name]
    files = {f"{PICTURES}/{name}.svg": draw(_sample(), chunk_corpus(name), shown.spec)}
    for number, variant in enumerate(shown.variants, start=2):
        text = _sample(variant.text)
        chunks = _chunker(variant.spec).chunk(Document(variant.text or "sample.md", text))
        files[f"{PICTURES}/{name}-{number}.svg"] = draw(text, chunks, variant.spec)
    files[f"{PAGES}/{name}.md"] = _page(chunkers[name], shown)
    return files


@cache
def chunk_corpus(name: str) -> list[Chunk]:
    """The sample's chunks by a chunker's main example; a scripted model gives the answers."""
    shown = SHOWN[name]
    return list(_chunker(shown.spec, shown.answers).chunk(Document("sample.md", _sample())))


def make_index(made: dict[str, str]) -> dict[str, str]:
    """The list of all chunkers, the overview picture and the public names, beside the pages."""
    lists = {f"{PAGES}/index.md": index_page(), API: api_page()}
    return lists | {f"{PICTURES}/overview.svg": overview()} | made


def overview() -> str:
    """All chunkers on the sample, a line each."""
    return draw_overview(_sample(), [Strip(name, chunk_corpus(name)) for name in SHOWN])


def index_page() -> str:
    """The list of all chunkers, and the options that several of them share."""
    families: dict[str, list[str]] = {title: [] for title in _FAMILIES}
    for name in SHOWN:
        row = f"| [`{name}`]({name}.md) | {summary(name)} | {_maximum(name)} |"
        families[_family(chunkers[name])].append(row)
    text = _sample()
    size = f"{len(text):,} characters, {_chunker('recursive').token_counter.count(text)} tokens of `cl100k_base`"
    return f"""{_MADE}

# Chunkers

Every chunker on [one text](sample.md) of {size}, at small sizes.
`chunkcore compare` finds the best chunker for your documents;
[five collections](../../evidence/chunkers.md) were measured.

![A line for each chunker: the sample from left to right, its chunks in colour](../../images/chunkers/overview.svg)

{_BLANK.join(_table(title, rows) for title, rows in families.items())}

Name a chunker by a string (`recursive:size=200,overlap=20`), a mapping with the key `name`, or an object.
In strings and files `None` is `null`, `False` is `false`. [Sources](../../concepts.md#sources).
[Your own](../../../CONTRIBUTING.md#add-a-chunker).

## Shared options

{_shared_items()}

Sizes are in the units of `counter`: a tiktoken encoding (`cl100k_base`, `o200k_base`), `hf:` and a tokenizer,
`characters`, `words`, `embedder`. [Sentence splitters compared](../../evidence/benchmarks.md#sentences).
"""


_FAMILIES = ("Start here", "By structure", "By meaning", "By a language model")
_BLANK = "\n\n"


def _family(cls: type[Chunker]) -> str:
    if issubclass(cls, LLMChunker):
        return _FAMILIES[3]
    if "embedder" in cls.option_names():
        return _FAMILIES[2]
    return _FAMILIES[1] if issubclass(cls, BlockChunker) else _FAMILIES[0]


def _table(title: str, rows: Sequence[str]) -> str:
    head = "| chunker | what it does | hard maximum |\n|---|---|---|"
    return "\n".join([f"## {title}", "", head, *rows])


def api_page() -> str:
    """The names of `chunkcore`, by the room that they come from."""
    rooms: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(Path(chunkcore.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chunkcore."):
            names = [each.name for each in node.names if each.name in vars(chunkcore)["__all__"]]
            rooms.setdefault(str(node.module).split(".")[1], []).extend(names)
    rows = [
        f"| `chunkcore.{room}` | {', '.join(f'`{name}`' for name in sorted(names))} |"
        for room, names in rooms.items()
        if names
    ]
    return f"""{_MADE}

# Public names

Import them from `chunkcore`. A chunker has a name
(`get_chunker("recursive:size=200")`); the classes are in `chunkcore.chunkers`. These modules export more:
{", ".join(f"`{room}`" for room in sorted(ROOMS))}. Other names may change without
notice ([releases](releases.md)). `make docs` makes a site of the docstrings.

| module | names |
|---|---|
{chr(10).join(rows)}
"""


def _page(cls: type[Chunker], shown: Shown) -> str:
    parts = [
        _MADE,
        f"# {cls.name}",
        summary(cls.name),
        f"**When:** {shown.when}",
        _facts(cls, shown),
    ]
    parts += [
        f"![{cls.name}](../../images/chunkers/{cls.name}.svg)",
        f"`{shown.spec}`: {shown.seen}",
    ]
    for number, variant in enumerate(shown.variants, start=2):
        picture = f"![{variant.spec}](../../images/chunkers/{cls.name}-{number}.svg)"
        parts += [picture, f"`{variant.spec}`: {variant.seen}"]
    return "\n\n".join([*parts, "## Options", *_options(cls)]) + "\n"


def _facts(cls: type[Chunker], shown: Shown) -> str:
    facts = {
        "Model": _model(cls),
        "Needs": f"the extra `{shown.extra}`" if shown.extra else "",
        "Source": _source(shown),
    }
    return " ".join(f"{key}: {value}." for key, value in facts.items() if value)


def _source(shown: Shown) -> str:
    """The work with a link to its full title; a program by its name."""
    return (
        shown.source
        if "'s" in shown.source or not shown.source
        else f"[{shown.source}](../../concepts.md#sources)"
    )


def _options(cls: type[Chunker]) -> list[str]:
    """A chunker's own options, and a line with the shared ones; a link where they are all another chunker's."""
    for name, base in chunkers.items():
        if base in cls.__mro__[1:] and options_of(base) == options_of(cls):
            return [f"Those of [{name}]({name}.md#options)."]
    shared = _shared()
    own = "\n".join(_item(option) for option in options_of(cls) if option not in shared)
    more = ", ".join(f"`{option.name}`" for option in options_of(cls) if option in shared)
    return [
        *filter(None, [own]),
        *([f"[Shared options](index.md#shared-options): {more}."] if more else []),
    ]


def _item(option: Option) -> str:
    """An option as a user writes it, with its default; the list of all chunkers tells the unit of sizes."""
    meaning = re.sub(r", in the counter's unit\b,?", "", option.meaning)
    if option.default.startswith("`"):
        return f"- `{option.name}={option.default[1:]}: {meaning}"
    return f"- `{option.name}`, {option.default}: {meaning}"


@cache
def _shared() -> list[Option]:
    """The options that have one default and one meaning in several chunkers."""
    every = Counter(option for name in SHOWN for option in options_of(chunkers[name]))
    return [
        option
        for option, count in every.items()
        if count >= _SHARED and not option.name.endswith("size")
    ]


def _shared_items() -> str:
    """The shared options; defaults of one name and meaning in one line."""
    defaults: dict[tuple[str, str], list[str]] = {}
    for name, default, meaning in _shared():
        defaults.setdefault((name, meaning), []).append(default)
    return "\n".join(
        _item(Option(name, " or ".join(each), meaning))
        for (name, meaning), each in defaults.items()
    )


def _model(cls: type[Chunker]) -> str:
    names = cls.option_names()
    return "language" if "llm" in names else "embedding" if "embedder" in names else ""


def _maximum(name: str) -> str:
    """Which option bounds every chunk's own text, found by changing options."""
    chunker = _chunker(name)
    hints = get_type_hints(type(chunker))
    default = chunker.hard_maximum
    for option in ("size_of", "maximum", "size", "goal"):
        if option not in chunker.option_names():
            continue
        named = get_origin(hints[option]) is Literal
        for value in get_args(hints[option]) if named else ((default or 10_000) + 1,):
            bound = replace(chunker, **{option: value}).hard_maximum
            if default is None and bound is not None:
                return f"with `{option}={value}`" if named else f"with `{option}`"
            if default is not None and not named and bound == value:
                return f"`{option}`"
    return "no"


def _chunker(spec: str, answers: tuple[str, ...] = ()) -> Chunker:
    """A chunker; a language model of its is scripted."""
    name, options = split_spec(spec)
    if "llm" in {each.name for each in fields(chunkers[name])}:
        script = iter(answers)
        options["llm"] = CallableLLM(lambda messages, schema: next(script), name="scripted")
    return get_chunker(name, **options)


def _sample(name: str = "") -> str:
    return (ROOT / PAGES / (name or "sample.md")).read_text(encoding="utf-8")


def summary(name: str) -> str:
    """The first line of a chunker's docstring, as Markdown."""
    return markdown_line(cleandoc(chunkers[name].__doc__ or "").partition("\n")[0])


def options_of(cls: type[Chunker]) -> tuple[Option, ...]:
    """The options in their order, the counter last, each with the first sentence of its meaning.

    Raises:
        LookupError: no class of the chunker's family documents an option.
    """
    options = []
    for field in fields(cls):
        meaning = _meaning(cls, field.name)
        if not meaning:
            raise LookupError(
                f"no class of {cls.__name__}'s family documents the option {field.name}"
            )
        is_required = (field.name, default_of(field)) == ("llm", "")
        default = "to be given" if is_required else f"`{shown_default(field)}`"
        first = re.split(r"(?<=[a-z0-9`)\"])\. (?=[A-Z`\"])", meaning, maxsplit=1)[0].rstrip(".")
        sentence = f"{first[:1].upper()}{first[1:]}."
        options.append(Option(field.name, default, markdown_line(sentence)))
    return tuple(sorted(options, key=lambda option: option.name == "counter"))


def _meaning(cls: type, option: str) -> str:
    """The option's entry in the nearest documenting class; "see `Base`" becomes the base's entry."""
    for base_class in cls.__mro__:
        entry = _attributes(base_class).get(option)
        if entry is None:
            continue
        see = _SEE.fullmatch(entry)
        base = next(
            (
                base
                for base in cls.__mro__
                if see and base.__name__ == see[1] and base is not base_class
            ),
            None,
        )
        if see is None or base is None:
            return entry
        more = see[2] or ""
        return f"{_meaning(base, option)} {more[:1].upper()}{more[1:]}".strip()
    return ""


@cache
def _attributes(cls: type) -> dict[str, str]:
    for block in re.split(r"\n{2,}", cleandoc(cls.__dict__.get("__doc__") or "")):
        head, _, rest = block.partition("\n")
        if head == "Attributes:":
            entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", rest, flags=re.MULTILINE)
            return {name: " ".join(entry.split()) for name, entry in entries}
    return {}
