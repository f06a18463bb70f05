"""The page of a strategy, with its pictures: from its docstring, its options, and what its program prints."""

from __future__ import annotations

import io
import runpy
import tempfile
from contextlib import redirect_stdout
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from chunkcore import CallableLLM, Chunk, Chunker, Document, get_chunker, strategies
from chunkcore.registry import split_spec
from docs.making.docstrings import options_of, read_docstring
from docs.making.picture import Strip, draw, draw_overview
from docs.making.shown import SAMPLE, SHOWN, Shown

__all__ = ["ROOT", "index_page", "make_index", "make_strategy", "overview"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = "docs/strategies"
PICTURES = "docs/images/strategies"
_MADE = "<!-- python -m docs.making made this page from the code; change that, and make it again -->"

_PLAIN = """\
from pathlib import Path

from chunkcore import Document, get_chunker

sample = Document("sample.md", Path("{sample}").read_text(encoding="utf-8"))
chunks = get_chunker("{spec}").chunk(sample)
for chunk in chunks:
    print({told})
"""
_ASKED = """\
from pathlib import Path

from chunkcore import CallableLLM, Document, get_chunker

answers = iter(
    [
{answers}
    ]
)
llm = CallableLLM(lambda messages, schema: next(answers), name="scripted")  # yours: "openai:MODEL@URL"
sample = Document("sample.md", Path("{sample}").read_text(encoding="utf-8"))
chunks = get_chunker("{name}", llm=llm, {options}).chunk(sample)
for chunk in chunks:
    print({told})
"""
_TOLD = "chunk.token_count, repr(chunk.text[:60])"
_TOLD_SPANS = "chunk.token_count, [(span.start, span.end) for span in chunk.spans]"


class Ran(NamedTuple):
    """A program of a page: what it printed, and the chunks that it made."""

    printed: str
    chunks: list[Chunk]


def make_strategy(name: str) -> dict[str, str]:
    """The files of a strategy, by their paths in the repository: its page and its pictures.

    Raises:
        MissingExtraError: what the strategy needs is not installed.
    """
    cls, shown = strategies[name], SHOWN[name]
    ran = run(program_of(name))
    files = {f"{PICTURES}/{name}.svg": draw(_sample(), ran.chunks, shown.spec)}
    for number, variant in enumerate(shown.variants, start=2):
        text = _sample(variant.text)
        chunks = _chunker(variant.spec).chunk(Document(variant.text or "sample.md", text))
        files[f"{PICTURES}/{name}-{number}.svg"] = draw(text, chunks, variant.spec)
    files[f"{PAGES}/{name}.md"] = _page(cls, shown, ran)
    return files


def program_of(name: str) -> str:
    """The program that a page shows."""
    shown = SHOWN[name]
    if not shown.answers:
        several = name in ("single_linkage", "dbscan")
        spec = shown.spec.replace("\\", "\\\\").replace('"', '\\"')
        return _PLAIN.format(sample=SAMPLE, spec=spec, told=_TOLD_SPANS if several else _TOLD)
    answers = "\n".join(f"        {answer!r}," for answer in shown.answers)
    pairs = ", ".join(f"{option}={_quoted(value)}" for option, value in split_spec(shown.spec)[1].items())
    told = _TOLD + (", chunk.context" if name == "contextual" else "")
    return _ASKED.format(name=name, answers=answers, options=pairs, sample=SAMPLE, told=told)


@cache
def run(program: str) -> Ran:
    """Run a program as it stands; it makes `chunks`. The overview needs what the pages' programs have made."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as printed:
        path = Path(folder) / "program.py"
        path.write_text(program, encoding="utf-8")
        chunks = runpy.run_path(str(path))["chunks"]
    return Ran(printed.getvalue(), chunks)


def make_index(made: dict[str, str]) -> dict[str, str]:
    """The list of all strategies and the overview, from the chunks that their programs make."""
    return {f"{PAGES}/index.md": index_page(), f"{PICTURES}/overview.svg": overview()} | made


def overview() -> str:
    """All strategies on the sample, a line each."""
    return draw_overview(_sample(), [Strip(name, run(program_of(name)).chunks) for name in SHOWN])


def index_page() -> str:
    """The list of all strategies, each with a link to its page."""
    rows = [
        f"| [`{name}`]({name}.md) | {read_docstring(strategies[name]).summary} | {_asks(strategies[name])} "
        f"| {_maximum(name)} | {shown.source} |"
        for name, shown in SHOWN.items()
    ]
    text = _sample()
    size = f"{len(text):,} characters, {_chunker('recursive').token_counter.count(text)} tokens of `cl100k_base`"
    return f"""{_MADE}

# Strategies

Every strategy on [the same text](sample.md) of {size}.

In the pictures a chunk has one colour and one number, also where it has several spans; where chunks overlap, each has
its share of the height. What has no colour is in no chunk: white space, or markup that a strategy leaves out.
Sizes are those of the pages' examples, far smaller than in use ([measured](../strategies_compared.md)).

![A line for each strategy: the sample from left to right, its chunks in colour](../images/strategies/overview.svg)

| strategy | what it does | asks | hard maximum | source |
|---|---|---|---|---|
{chr(10).join(rows)}

Sources in full: [how it is built](../design.md#sources). A strategy of your own:
[thirty lines](../../CONTRIBUTING.md#add-a-strategy). Which is best for your documents: `chunkcore compare`, and
[what its verdict promises](../statistics.md).
"""


def _page(cls: type[Chunker], shown: Shown, ran: Ran) -> str:
    told = read_docstring(cls)
    body = told.body or read_docstring(cls.__mro__[1]).body
    cost = told.cost or read_docstring(cls.__mro__[1]).cost
    raises = told.raises or read_docstring(cls.__mro__[1]).raises
    alt = f"The sample in {len(ran.chunks)} chunks of {cls.name}, each in its colour"
    parts = [
        _MADE,
        f"# {cls.name}",
        told.summary,
        _facts(cls, shown),
        f"![{alt}](../images/strategies/{cls.name}.svg)",
        f"{shown.told} {_scripted(shown)}".strip(),
    ]
    for number, variant in enumerate(shown.variants, start=2):
        parts += [f"![{variant.spec}](../images/strategies/{cls.name}-{number}.svg)", variant.told]
    parts += ["## What it does", body, "## Options", _options(cls)]
    parts += ["In strings and files `None` is `null`, `False` is `false`.", "## Example"]
    parts += ["From the root of the repository:", f"```python\n{program_of(cls.name)}```", "It prints:"]
    parts += [f"```text\n{ran.printed}```"]
    if told.example:
        example = f">>> from chunkcore import {cls.__name__}\n{told.example}"
        parts += ["A case that can be checked by hand:", f"```python\n{example}\n```"]
    if cost:
        parts += ["## Cost", cost]
    errors = "\n".join(f"| `{error}` | {when} |" for error, when in raises.items())
    parts += ["## Errors", f"| error | when |\n|---|---|\n{errors}", "[All strategies](index.md)"]
    return "\n\n".join(parts) + "\n"


def _facts(cls: type[Chunker], shown: Shown) -> str:
    rows = {
        "asks": _asks(cls),
        "the same text again": _again(cls),
        "hard maximum": _maximum(cls.name),
        "needs": f"the extra `{shown.extra}`" if shown.extra else "",
        "source": _source(shown),
        "class": f"`chunkcore.{cls.__name__}`",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items() if value)])


def _source(shown: Shown) -> str:
    """The work with a link to where it is told in full; a program by its name."""
    return shown.source if "'s" in shown.source or not shown.source else f"[{shown.source}](../design.md#sources)"


def _options(cls: type[Chunker]) -> str:
    rows = [
        f"| `{option.name}` | {_cell(option.kind)} | {_cell(option.default)} | {_cell(option.meaning)} |"
        for option in options_of(cls)
    ]
    return "\n".join(["| option | is | default | meaning |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _asks(cls: type[Chunker]) -> str:
    names = cls.option_names()
    return "a language model" if "llm" in names else "an embedding model" if "embedder" in names else "no model"


def _again(cls: type[Chunker]) -> str:
    if "llm" in cls.option_names():
        return "the same chunks where answers are kept; else as the model answers"
    return "the same chunks" + (", with the same model" if "embedder" in cls.option_names() else "")


def _scripted(shown: Shown) -> str:
    said = "No language model was asked for this page: the answers are written down in the program below."
    return said if shown.answers else ""


def _maximum(name: str) -> str:
    """Which option bounds every chunk's own text, found out by changing options and asking."""
    chunker = _chunker(name)
    hints = get_type_hints(type(chunker))
    default = chunker.hard_maximum
    for option in ("maximum", "max_size", "size", "goal"):
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


def _chunker(spec: str) -> Chunker:
    """A strategy; where it asks a language model, with one that is never asked."""
    name, options = split_spec(spec)
    if "llm" in {each.name for each in fields(strategies[name])}:
        options["llm"] = CallableLLM(lambda messages, schema: "", name="none")
    return get_chunker(name, **options)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _sample(name: str = "") -> str:
    return (ROOT / PAGES / (name or "sample.md")).read_text(encoding="utf-8")
