"""What commands share: options, each defined once, in help panels, with what it builds; progress, being stopped, and
what language models cost.

A dataclass here is a group of options. `grouped` gives a command the options of its parameters of such classes: with
plain parameters, `compare` would have thirty. The other names are single options.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, wraps
from importlib import import_module
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

import chunkcore
from chunkcore import report, study
from chunkcore.errors import NotWrittenError, OptionError, counted
from chunkcore.options import LARGEST, check_number
from chunkcore.plain import terminal_text

if TYPE_CHECKING:
    from chunkcore.concurrency import Progress
    from chunkcore.models import CachedEmbedder
    from chunkcore.models.llm import CachedLLM, Usage


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer reads it: in place of each parameter that is a group of options, these options.

    Every number is finite: to typer, NaN is in every range. Every command takes ``--quiet``.

    >>> @grouped
    ... def run(statistics: Statistics, output: Output = Path("out")) -> None: ...
    >>> list(signature(run).parameters)
    ['by', 'seed', 'resamples', 'margin', 'output', 'quiet']
    """
    groups: dict[str, Any] = {}
    parameters = []
    for parameter in _parameters(command):
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _parameters(parameter.annotation)
        else:
            parameters.append(parameter)
    hidden = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=_QUIET)
    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*parameters, hidden)
    ]

    @wraps(command)
    def run(**values: Any) -> Any:
        quiet.set(values.pop("quiet"))
        for name, value in values.items():
            if type(value) in (int, float):
                option = f"--{name.replace('_', '-')}"
                check_number(option, value, -LARGEST, LARGEST, whole=False)
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return command(**values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # A paragraph a line, and brackets as they are, which rich takes for its markup.
    paragraphs = (getdoc(command) or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    run.__doc__ = text.replace("[", r"\[")
    return run


def _parameters(thing: Any) -> list[Parameter]:
    """The parameters of a function or a class, with what their annotations stand for."""
    hints = get_type_hints(thing, include_extras=True)
    parameters = signature(thing).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]


def number_option(help_text: str, least: int = 0, *names: str) -> Any:
    """An option for a whole number of at least `least`."""
    return value_option("N", help_text, *names, min=least)


def value_option(metavar: str | None, help_text: str, *names: str, **more: Any) -> Any:
    """An option for a text, a path or an unbounded number; `more` as of `typer.Option`."""
    return typer.Option(*names, metavar=metavar, help=help_text, **more)


def flag_option(help_text: str, *names: str) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=help_text)


def _names(module: str, registry: str) -> Callable[[], list[str]]:
    return lambda: list(getattr(import_module(module), registry))


chunker = partial(
    typer.Option,
    "--chunker",
    "-s",
    metavar="SPEC",
    autocompletion=_names("chunkcore.chunkers", "chunkers"),
)
retriever = partial(
    typer.Option,
    "--retriever",
    "-r",
    metavar="SPEC",
    autocompletion=_names("chunkcore.retrieval", "retrievers"),
)
_DATA = "Documents and questions"
_data = partial(value_option, rich_help_panel=_DATA)
_scores = partial(value_option, rich_help_panel="Scores")
_statistics = partial(value_option, rich_help_panel="Statistics")
_models = partial(value_option, rich_help_panel="Models")

_QUIET = Annotated[bool, typer.Option("--quiet", "-q", hidden=True, help="Show no progress.")]
Repeatable = list[str] | None
FollowLinks = Annotated[bool, flag_option("Read links out of a folder.", "--follow-links")]
By = Literal["auto", "question", "document"]  # that of the library, whose module is heavy
Questions = Annotated[
    Path | None, _data("FILE", "A questions.jsonl, a CSV or a TSV.", "--questions")
]
ChunkerSpecs = Annotated[
    Repeatable, chunker(help="name:option=value,...; repeatable (list chunkers).")
]
EmbedderName = Annotated[
    str, value_option("NAME", "A sentence-transformers model.", "--embedder", "-e")
]
Output = Annotated[Path, value_option("FOLDER", "Where results are written.", "--output", "-o")]
# Where results are written by default: a search does not replace the report of a comparison.
REPORT, TUNING = Path("chunkcore-report"), Path("chunkcore-tuning")


@dataclass
class Documents:
    """Documents, without questions."""

    docs: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DOCS]", help="A folder, a file, or a documents.jsonl.", rich_help_panel=_DATA
        ),
    ] = None
    docs_option: Annotated[Path | None, _data("DOCS", "The same as DOCS.", "--docs")] = None
    follow_links: FollowLinks = False

    @property
    def folder(self) -> Path | None:
        """The documents, by either spelling. Raises `OptionError`: by both."""
        if self.docs and self.docs_option:
            raise OptionError(
                f"the documents are named twice, {self.docs} and --docs {self.docs_option}: name them once"
            )
        return self.docs or self.docs_option

    @property
    def place(self) -> Path:
        """The same, where a command needs them. Raises `OptionError` without documents."""
        if not self.folder:
            raise OptionError(
                "no documents are named: expected a folder, a file, or a documents.jsonl"
            )
        return self.folder

    def read(self) -> Sequence[chunkcore.Document]:
        """The documents."""
        from chunkcore.evaluation.benchmarks.loading import contents_of

        return contents_of(self.place, [], self.follow_links).documents


@dataclass
class Data(Documents):
    """Documents and questions; by default the collection that ships with the package."""

    questions: Questions = None

    @property
    def pasted_folder(self) -> str:
        """The folder that code to paste names."""
        return str(self.folder or "docs/")

    @property
    def more_questions(self) -> str:
        """The command to label more questions about these documents."""
        docs = shlex.quote(self.pasted_folder)
        file = (self.questions or Path("questions")).with_suffix(".jsonl")
        return f"chunkcore questions label {docs} --output {shlex.quote(str(file))}"

    def benchmark(self, output: Path) -> chunkcore.Benchmark:
        """Read them; a report that an earlier run wrote into `output` is no document."""
        from chunkcore.reading.opening import REPORT_NAMES

        if self.folder:
            # An earlier report quotes the evidence: read as a document it would make the evidence ambiguous.
            earlier = [output / name for name in REPORT_NAMES]
            return chunkcore.load_benchmark(
                self.folder, self.questions, leave_out=earlier, follow_links=self.follow_links
            )
        if self.questions:
            raise OptionError(
                f"--questions {self.questions} was given without documents: name the documents, too"
            )
        say(
            "chunkcore: NOT YOUR DOCUMENTS: none are named, so the shipped collection is scored. "
            "For yours, name DOCS --questions FILE",
            err=True,
        )
        return chunkcore.load_dataset("lochmere")


@dataclass
class Scoring:
    """What is scored, which measure the verdict is about, and what fails a build."""

    k: Annotated[
        Repeatable,
        _scores(
            "DEPTH", "1000tok, 5 or min; repeatable. Default: 1000tok, 5, 10, min.", "--k", "-k"
        ),
    ] = None
    measure: Annotated[
        str,
        _scores("NAME", "Measure that decides (list measures). Default: Recall at the first k."),
    ] = ""
    require: Annotated[
        Repeatable,
        _scores("TEXT", "Fail if the whole interval is below this: HitRate@5>=0.70; repeatable."),
    ] = None
    baseline: Annotated[
        str,
        _scores(
            "NAME|FILE",
            "The system that you run today; or an earlier report.json: fail on a significant drop.",
        ),
    ] = ""
    counter: Annotated[str, _scores("NAME", "Tokenizer that counts.")] = "cl100k_base"


@dataclass
class Resampling:
    """What is drawn at random."""

    by: Annotated[
        By,
        _statistics(
            "UNIT", "Resample questions or documents; auto: documents if questions share them."
        ),
    ] = "auto"
    seed: Annotated[int, _statistics("N", "Seed of all random choices.", min=0)] = 0
    resamples: Annotated[
        int, _statistics("N", "Resamples of the bootstrap.", min=100, max=1_000_000)
    ] = 10_000


@dataclass
class Statistics(Resampling):
    """How reports are compared."""

    margin: Annotated[float, _statistics("POINTS", "Differences to ignore.", min=0)] = 2.0


def study_settings(statistics: Statistics, scoring: Scoring, **more: Any) -> study.StudySettings:
    """The library's settings of these options."""
    from chunkcore.evaluation.measures import parse_depth

    baseline = scoring.baseline
    if baseline and (baseline.endswith(".json") or Path(baseline).exists()):
        more["earlier"] = report.read_reports(baseline)
    else:
        more["baseline"] = baseline
    if scoring.k:
        try:
            depths = map(parse_depth, ",".join(scoring.k).split(","))
            more["depths"] = tuple(dict.fromkeys(depths))
        except OptionError as error:
            raise OptionError(f"--k: {error}") from None
    return study.StudySettings(
        **vars(replace(statistics, margin=statistics.margin / 100)),
        measure=scoring.measure,
        counter=scoring.counter,
        requirements=tuple(scoring.require or ()),
        **more,
    )


@dataclass
class Models:
    """What models cost, and what is kept of them: a file of vectors and answers before them.

    Called with a chunker, it returns that over the file.
    """

    dry_run: Annotated[bool, _models(None, "Print calls and cost; send nothing.", "--dry-run")] = (
        False
    )
    no_cache: Annotated[bool, _models(None, "Do not cache vectors and answers.", "--no-cache")] = (
        False
    )
    cache: Annotated[Path | None, _models("FILE", "Cache of vectors and answers.")] = None
    input_price: Annotated[float | None, _models("PRICE", "Price of a million input tokens.")] = (
        None
    )
    output_price: Annotated[float | None, _models("PRICE", "Price of a million output tokens.")] = (
        None
    )

    def __post_init__(self) -> None:
        from chunkcore.models.llm import Prices

        self.chunkers: list[chunkcore.Chunker] = []
        self.prices: Prices | None = None
        if self.input_price is not None and self.output_price is not None:
            self.prices = Prices(input=self.input_price, output=self.output_price)
        elif self.input_price != self.output_price:
            raise OptionError(
                "--input-price and --output-price go together: give both, of a million tokens"
            )

    @property
    def kept(self) -> Path | None:
        """The file of embeddings and of language models' answers; None where none are kept."""
        return None if self.no_cache else self.cache or default_cache()

    def embedder(self, name: str) -> CachedEmbedder:
        """The model, loaded when it first embeds, over this cache."""
        from chunkcore.models import CachedEmbedder, EmbeddingCache

        return CachedEmbedder(name, EmbeddingCache(self.kept))

    def __call__(self, chunker: chunkcore.Chunker) -> chunkcore.Chunker:
        """The chunker over the file, and so the one that it wraps."""
        self.chunkers.append(self._over_file(chunker))
        return self.chunkers[-1]

    def _over_file(self, chunker: chunkcore.Chunker) -> chunkcore.Chunker:
        from chunkcore.chunkers.llm import Contextual, LLMChunker

        if not self.kept or not isinstance(chunker, LLMChunker):
            return chunker
        if isinstance(chunker, Contextual):
            chunker = replace(chunker, chunker=self._over_file(chunker.inner))
        return replace(chunker, llm=self.model(chunker.llm))

    def model(self, llm: chunkcore.LLM | str) -> CachedLLM:
        """A language model over the file."""
        from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

        model = get_llm(llm)
        return model if isinstance(model, CachedLLM) else CachedLLM(model, LLMCache(self.kept))

    def used(self) -> list[str]:
        """What each language model of the chunkers was asked, a line each."""
        from chunkcore.chunkers.llm import llms_of
        from chunkcore.models.llm import Usage

        usages = {
            llm.name: getattr(llm, "usage", Usage())
            for chunker in self.chunkers
            for llm in llms_of(chunker)
        }
        return [f"{name}: {self.spent(usage)}" for name, usage in usages.items()]

    def estimates(
        self, chunkers: Mapping[str, chunkcore.Chunker], documents: Iterable[chunkcore.Document]
    ) -> Iterator[str]:
        """What each chunker would ask, a line each, and what the estimates assume."""
        from chunkcore.chunkers.llm import LLMChunker
        from chunkcore.models.llm import Usage

        for spec, chunker in chunkers.items():
            usage = chunker.estimate(documents) if isinstance(chunker, LLMChunker) else Usage()
            yield f"{spec}: {self.spent(usage)}"
        yield _ASSUMED

    def spent(self, usage: Usage) -> str:
        """Calls, tokens and, with prices, their cost."""
        parts = [
            counted(usage.calls, "call"),
            f"{usage.input_tokens:,} tokens in",
            f"{usage.output_tokens:,} tokens out",
        ]
        if usage.kept_answers:
            parts.append(f"{usage.kept_answers:,} answers kept from before")
        if self.prices:
            parts.append(f"cost {usage.cost(self.prices):,.4f}")
        return ", ".join(parts)

    @property
    def resume(self) -> str:
        """How to resume after a stop."""
        if not self.kept:
            return "nothing was kept, and the same command begins anew"
        return f"what models answered is kept in {self.kept}: the same command goes on with it"

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Tell a user who stops the block how to resume. Raises `StoppedError`: in place of KeyboardInterrupt."""
        try:
            yield
        except KeyboardInterrupt as error:
            raise StoppedError(f"stopped before the end; {self.resume}") from error


_ASSUMED = (
    "Tokens are counted as cl100k_base, and answers are as each chunker's documentation assumes; questions that must "
    "be repeated and answers that are kept already are not foreseen. Nothing was asked."
)


def default_cache() -> Path:
    """The file of embeddings and of language models' answers, in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("chunkcore", appauthor=False) / "cache.sqlite"


def cached_embedder(name: str, *, keep: bool = True) -> CachedEmbedder:
    """The model over the user's cache; where nothing is to be kept, over one in memory."""
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder

    place = default_cache() if keep else None
    return CachedEmbedder(get_embedder(name), EmbeddingCache(place))


def check_output(output: Path) -> None:
    """Check before long work that a report can be written, and over nothing but a report."""
    from chunkcore.files import check_no_link
    from chunkcore.report.html import require_jinja2
    from chunkcore.report.records import check_replaced

    require_jinja2()
    if output in (REPORT, TUNING):  # the current folder may be a stranger's
        check_no_link(output)
    check_replaced(output)
    check_folder(output)


def check_folder(folder: Path) -> None:
    """Check before long work that files can be written into a folder."""
    place = folder.absolute()
    while not place.exists() and place.name:  # a drive may be missing
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file: name a folder", str(place))
    if not os.access(place, os.W_OK):
        raise NotWrittenError.of(place, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def check_outside(docs: Path, output: Path) -> None:
    """Check that the output is no document the next time: that it lies in no folder of documents."""
    # `resolve` fails at links in a circle.
    root = Path(os.path.realpath(docs))
    file = Path(os.path.realpath(output))
    if not root.is_dir() or (root / "documents.jsonl").is_file() or root not in file.parents:
        return
    if not any(part.startswith(".") for part in file.relative_to(root).parts):
        raise OptionError(
            f"--output {output} lies in {docs}, and would be taken for a document: write it elsewhere"
        )


# ---- around a command's work


def say(*lines: str, err: bool = False) -> None:
    """Print lines that may quote hostile text."""
    for line in lines:
        typer.echo(terminal_text(line), err=err)


# ---- progress


_STEP_PAUSE = 5.0  # seconds between two lines of a log about one step
_COUNTED = {
    "chunk": "documents",
    "embed": "texts, those that chunkers share once",
    "queries": "questions",
    "search": "systems",
}
quiet: ContextVar[bool] = ContextVar("quiet", default=False)  # set by the option of every command


def reporting() -> Progress:
    """Writes a line to standard error as a step begins, when its first part is done, now and then, and at its end."""
    times: dict[str, list[float]] = defaultdict(list)  # of each step's lines

    def log(step: str, done: int, total: int) -> None:
        now, lines = time.monotonic(), times[step]
        is_due = len(lines) < 2 or done >= total or now - lines[-1] >= _STEP_PAUSE
        if is_due and not quiet.get():
            noun = "" if lines or step not in _COUNTED else f" {_COUNTED[step]}"
            lines.append(now)
            left = _left(now - lines[0], done, total)
            line = f"{terminal_text(step)}: {done:,} of {total:,}{noun}{left}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    return log


def _left(seconds: float, done: int, total: int) -> str:
    """How long the rest takes if it goes on like this; "" if that is not known, or nothing is left."""
    if not 1 < done < total:  # the first part waits for what is loaded
        return ""
    left = seconds * (total - done) / done
    return f", about {left:,.0f} s left" if left < 100 else f", about {left / 60:,.0f} min left"


# ---- being stopped


_WAITING = b"\nchunkcore: stopping once what is under way is done; stop it again to end at once\n"


class StoppedError(Exception):
    """The user stopped the command. The message says what is kept."""


class StopSignals:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt once; a second signal ends the process at once.

    Calls to a model that are under way are paid for. They are awaited, which can take as long as a time-out. A second
    signal kills: Python's own handlers may run late in a thread that waits for others. `code` is the exit code of a
    stopped process: 128 and the signal's number.
    """

    def __init__(self) -> None:
        self.code = 128 + signal.SIGINT
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopSignals:
        # Handlers that somebody else has set stay: shells ignore SIGINT for what runs in the background.
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if threading.current_thread() is threading.main_thread():
            for number, handler in usual.items():
                if signal.getsignal(number) == handler:
                    self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        with suppress(OSError):  # standard error may be closed
            os.write(2, _WAITING)
        raise KeyboardInterrupt
