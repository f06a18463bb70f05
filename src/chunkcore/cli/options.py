"""Options that several commands share: each defined once, in help panels, with what it builds.

A dataclass here is a group of options in one panel. `grouped` gives a command the options of its parameters of such
classes. The other names are single options.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, get_type_hints

import typer

from chunkcore.errors import OptionError
from chunkcore.options import LARGEST, check_number

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth
    from chunkcore.models import CachedEmbedder, EmbeddingCache
    from chunkcore.models.llm import Prices
    from chunkcore.report.study import StudySettings


def _names(module: str, registry: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [name for name in getattr(import_module(module), registry) if name.startswith(incomplete)]


strategy = functools.partial(
    typer.Option, "--strategy", "-s", metavar="SPEC", autocompletion=_names("chunkcore.chunkers", "strategies")
)
retriever = functools.partial(
    typer.Option, "--retriever", "-r", metavar="SPEC", autocompletion=_names("chunkcore.retrieval", "retrievers")
)
_DOCS_ARGUMENT = typer.Argument(metavar="[DOCS]", help="A folder, a file, or a documents.jsonl.")
_DOCS_OPTION = typer.Option("--docs", metavar="DOCS", help="The same.")
Docs = Annotated[Path | None, _DOCS_ARGUMENT]
DocsOption = Annotated[Path | None, _DOCS_OPTION]
_QUESTIONS = typer.Option("--questions", metavar="FILE", help="A questions.jsonl, or a CSV of the Chroma layout.")
Questions = Annotated[Path | None, _QUESTIONS]
Layout = Annotated[str, typer.Option(metavar="NAME", help="The files' layout (list layouts).")]
Strategies = Annotated[
    list[str] | None,
    strategy(help="name:option=value,...; repeatable (list strategies)."),
]
EmbedderName = Annotated[str, typer.Option("--embedder", "-e", metavar="NAME", help="A sentence-transformers model.")]
Retriever = Annotated[
    str,
    retriever(help="Searches chunks (list retrievers)."),
]
Llm = Annotated[str, typer.Option("--llm", metavar="NAME", help="A model: openai:MODEL@URL.")]
Counter = Annotated[str, typer.Option(metavar="NAME", help="Whose tokens count.")]
By = Annotated[
    str, typer.Option(metavar="UNIT", help="Resampled: question, document, or auto: documents that share questions.")
]
Limit = Annotated[int, typer.Option(min=0, metavar="N", help="Ask N questions, drawn by the seed; 0: all.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Of all that is drawn.")]
Resamples = Annotated[int, typer.Option(min=100, metavar="N", help="Of the bootstrap.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="For results.")]


def either(docs: Path | None, option: Path | None) -> Path | None:
    """The documents, named as an argument or by ``--docs``. Raises `OptionError`: by both."""
    if docs is not None and option is not None:
        raise OptionError(f"the documents are named twice, {docs} and --docs {option}: name them once")
    return docs if option is None else option


def required(docs: Path | None, option: Path | None) -> Path:
    """The same, where a command needs them. Raises `OptionError` without documents."""
    path = either(docs, option)
    if path is None:
        raise OptionError("no documents are named: expected a folder, a file, or a documents.jsonl")
    return path


_MOST = {"resamples": 1_000_000}  # what help has no room for
_QUIET = Annotated[bool, typer.Option("--quiet", "-q", hidden=True, help="Show no progress.")]


class OmittedOptions(NamedTuple):
    """Beside a group in a command's annotation: the options that it does without, and another panel for the others."""

    names: str
    panel: str = ""


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer reads it: in place of each parameter that is a group of options, these options.

    Its docstring is its help (`help_text`). Every number is finite and at most `registry.LARGEST`: to typer, NaN is in
    every range. Every command takes ``--quiet``, which only `chunk` shows: helps fit a screen.

    >>> @grouped
    ... def run(statistics: Statistics, output: Output = Path("out")) -> None: ...
    >>> list(inspect.signature(run).parameters)
    ['margin', 'by', 'seed', 'resamples', 'output', 'quiet']
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[Any, list[Any]]] = {}
    parameters = []
    keyword = inspect.Parameter.KEYWORD_ONLY
    for name, parameter in inspect.signature(command).parameters.items():
        group: Any = getattr(hints[name], "__origin__", hints[name])
        if is_dataclass(group):
            without = getattr(hints[name], "__metadata__", [OmittedOptions("")])[0]
            own_fields = [each for each in fields(group) if each.name not in without.names.split()]
            groups[name], options = (group, own_fields), get_type_hints(group, include_extras=True)
            for field in own_fields:
                kind, option = options[field.name].__origin__, copy(options[field.name].__metadata__[0])
                option.rich_help_panel = without.panel or group.panel  # type: ignore[union-attr]
                made = inspect.Parameter(field.name, keyword, default=field.default, annotation=Annotated[kind, option])
                parameters.append(made)
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=keyword))
    own = "quiet" in hints
    if not own:
        parameters.append(inspect.Parameter("quiet", keyword, default=False, annotation=_QUIET))

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        from chunkcore.cli.running import quiet

        quiet.set(given["quiet"] if own else given.pop("quiet"))
        for name, value in given.items():
            if type(value) in (int, float):
                most = _MOST.get(name, LARGEST)
                check_number(f"--{name.replace('_', '-')}", value, -LARGEST, most, whole=False)
        for name, (group, own_fields) in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in own_fields})
        return command(**given)

    run.__doc__ = help_text(inspect.getdoc(command) or "")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


@dataclass(frozen=True)
class Data:
    """Documents and questions; by default the collection that ships with the package."""

    panel: ClassVar[str] = "Documents and questions"

    docs: Annotated[Path | None, _DOCS_ARGUMENT] = None
    docs_option: Annotated[Path | None, _DOCS_OPTION] = None
    questions: Questions = None
    layout: Layout = "auto"
    dataset: Annotated[str, typer.Option(metavar="NAME", help="A collection, without DOCS.")] = "lochmere"

    @property
    def folder(self) -> Path | None:
        """The documents, by either spelling."""
        return either(self.docs, self.docs_option)

    def facts(self, benchmark: Benchmark) -> dict[str, str]:
        """What a report says of the documents and questions."""
        return {"Documents": str(self.folder or f"shipped: {benchmark.name}"), "Questions": str(self.questions or "")}

    @property
    def more_questions(self) -> str:
        """The command to label more questions about these documents."""
        docs = shlex.quote(str(self.folder or "docs/"))
        return f"chunkcore questions label {docs} --output {shlex.quote(str(self.questions or 'questions.jsonl'))}"

    def benchmark(self, output: Path, written: Sequence[str] = ()) -> Benchmark:
        """Read them; what an earlier run wrote into `output`, a report or `written`, is no document."""
        from chunkcore.cli.running import say
        from chunkcore.datasets import load_dataset
        from chunkcore.evaluation.benchmarks import load_benchmark
        from chunkcore.evaluation.benchmarks.documents import REPORT_NAMES

        if self.folder is not None:
            # An earlier report quotes the evidence: read as a document it would make the evidence ambiguous.
            earlier = [output / name for name in (*REPORT_NAMES, *written)]
            return load_benchmark(self.folder, self.questions, layout=self.layout, leave_out=earlier)
        if self.questions is not None:
            raise OptionError(f"--questions {self.questions} was given without documents: name them first")
        if self.layout != "auto":
            raise OptionError(
                f"--layout {self.layout} was given without documents: name the collection's folder or file"
            )
        say(
            f"chunkcore: NOT YOUR DOCUMENTS: none are named, so the shipped collection {self.dataset} is scored. "
            "For yours, name DOCS --questions FILE",
            err=True,
        )
        return load_dataset(self.dataset)


@dataclass(frozen=True)
class ScoringOptions:
    """What is scored, which measure the verdict is about, and what fails a build."""

    panel: ClassVar[str] = "Scores"

    k: Annotated[
        list[str] | None,
        typer.Option("--k", "-k", metavar="DEPTH", help="1000tok, 5 or min; repeatable. Default: 1000tok, 5, 10, min."),
    ] = None
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="Of the verdict (list measures). Default: Recall at the first k.")
    ] = ""
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Fail where the whole interval is below, as HitRate@5>=0.70; repeatable."),
    ] = None
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An earlier report.json: fail where a score surely fell.")
    ] = None
    min_rule: Annotated[str, typer.Option(metavar="RULE", help="k = min counts: holding evidence, or touching it.")] = (
        "holding"
    )
    counter: Counter = "cl100k_base"


def read_depths(texts: Sequence[str]) -> list[Depth]:
    """The values of ``--k``."""
    from chunkcore.evaluation.measures import parse_depth

    try:
        return [parse_depth(text) for text in texts]
    except OptionError as error:
        raise OptionError(f"--k: {error}") from None


@dataclass(frozen=True)
class Statistics:
    """How reports are compared."""

    panel: ClassVar[str] = "Statistics"

    margin: Annotated[float, typer.Option(min=0, metavar="POINTS", help="Differences to ignore.")] = 2.0
    by: By = "auto"
    seed: Seed = 0
    resamples: Resamples = 10_000


def study_settings(statistics: Statistics, scores: ScoringOptions | None = None, **more: Any) -> StudySettings:
    """The library's settings of these options."""
    from chunkcore.report import read_reports
    from chunkcore.report.study import StudySettings

    if scores is not None:
        more |= {
            "measure": scores.measure,
            "counter": scores.counter,
            "min_rule": scores.min_rule,
            "requirements": tuple(scores.require or ()),
            "earlier": None if scores.baseline is None else read_reports(scores.baseline),
        }
        if scores.k:
            more["depths"] = tuple(dict.fromkeys(read_depths(scores.k)))
    return StudySettings(
        margin=statistics.margin / 100,
        by=statistics.by,
        seed=statistics.seed,
        resamples=statistics.resamples,
        **more,
    )


@dataclass(frozen=True)
class Models:
    """What models cost, and what is kept of them."""

    panel: ClassVar[str] = "Models"

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would ask and cost.")] = False
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no embeddings, and no answers.")] = False
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help="Embeddings. Default: the user's cache.")] = None
    input_price: Annotated[
        float | None, typer.Option(metavar="PRICE", help="Of a million tokens that a model reads.")
    ] = None
    output_price: Annotated[float | None, typer.Option(metavar="PRICE", help="Of a million tokens that it writes.")] = (
        None
    )

    def prices(self) -> Prices | None:
        """The prices; None where none are given."""
        from chunkcore.models.llm import Prices

        if self.input_price is None and self.output_price is None:
            return None
        if self.input_price is None or self.output_price is None:
            raise OptionError("--input-price and --output-price go together: give both, of a million tokens")
        return Prices(input=self.input_price, output=self.output_price)

    @property
    def answers(self) -> Path | None:
        """The file of language models' answers; None where none are kept."""
        return None if self.no_cache else default_cache()

    def embeddings(self) -> EmbeddingCache:
        from chunkcore.models import EmbeddingCache

        return EmbeddingCache(None if self.no_cache else self.cache or default_cache())


def default_cache() -> Path:
    """The file of embeddings and of language models' answers, in the user's cache folder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "chunkcore" / "cache.sqlite"


def cached_embedder(name: str, *, keep: bool = True) -> CachedEmbedder:
    """The model over the user's cache; where nothing is to be kept, over one in memory."""
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder

    return CachedEmbedder(get_embedder(name), EmbeddingCache(default_cache() if keep else None))


def check_output(output: Path) -> None:
    """Check before long work that a report can be written."""
    from chunkcore.report.rendering import require_jinja2

    require_jinja2()
    check_folder(output)


def check_file(file: Path) -> None:
    """Check before long work that a file or a pipe can be written."""
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder: name a file in it", str(file))
    if not file.exists() or file.is_file():  # a file is written anew beside the old one
        check_folder(Path(os.path.realpath(file)).parent)
    elif not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))


def check_folder(folder: Path) -> None:
    """Check before long work that files can be written into a folder."""
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file: name a folder", str(place))
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))


def check_outside(docs: Path, output: Path) -> None:
    """Check that the output is no document the next time: that it lies in no folder of documents."""
    root, file = Path(os.path.realpath(docs)), Path(os.path.realpath(output))  # `resolve` fails at links in a circle
    if not root.is_dir() or (root / "documents.jsonl").is_file() or root not in file.parents:
        return
    if not any(part.startswith(".") for part in file.relative_to(root).parts):
        raise OptionError(f"--output {output} lies in {docs}, and would be taken for a document: write it elsewhere")


def help_text(text: str) -> str:
    r"""Help as rich prints it: each paragraph on one line, brackets escaped; indented lines and commands are examples.

    >>> help_text("One\ntwo [3].\n\n  chunkcore compare")
    'One two \\[3].\n\n[bold]Example:[/bold] chunkcore compare'
    """
    paragraphs = [re.sub(r"\[(?=\S)", r"\\[", part) for part in text.strip("\n").split("\n\n")]
    marks = ("  ", "chunkcore ")  # an example that is all that follows the first line loses its indent
    prose = [" ".join(part.split()) for part in paragraphs if not part.startswith(marks)]
    examples = [" ".join(part.split()) for part in paragraphs if part.startswith(marks)]
    return "\n\n".join([*prose, *(f"[bold]Example:[/bold] {each}" for each in examples)])
