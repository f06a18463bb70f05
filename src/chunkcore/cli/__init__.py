"""The command ``chunkcore``. Heavy modules are imported when a command runs.

options.py has what commands share.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence, Set
from contextvars import copy_context
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chunkcore import guesses
from chunkcore.cli import options, questions, reports, search
from chunkcore.cli.options import StoppedError, StopSignals, grouped, say
from chunkcore.errors import (
    ChunkcoreError,
    NotWrittenError,
    OptionError,
    echo,
    shortened,
    suggestion,
)
from chunkcore.options import shown_default

if TYPE_CHECKING:
    from chunkcore.models.cache import Cache

app = typer.Typer(
    name="chunkcore",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Search your documents, cut them into chunks with offsets, and compare chunkers and retrievers.",
    epilog="Exit codes: 0 done, 1 problems or a file not written, 2 bad input, 130 Ctrl-C, 143 SIGTERM.",
)


@app.callback()
def _any_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Show the version and end.")
    ] = False,
    html: Annotated[
        Literal["visible", "source"] | None,
        typer.Option(
            "--html", help="Read the visible text of HTML, or its source.", show_default="visible"
        ),
    ] = None,
) -> None:
    if html:
        from chunkcore.reading.visible import html_as

        context.with_resource(html_as(html))
    if version:
        from chunkcore.files import installed_version

        typer.echo(f"chunkcore {installed_version()}")
        raise typer.Exit


# The module of each registry.
_REGISTRIES = {
    "chunkers": "chunkcore.chunkers",
    "retrievers": "chunkcore.retrieval.base",
    "stages": "chunkcore.retrieval.stage",
    "measures": "chunkcore.evaluation.measures",
    "counters": "chunkcore.tokens.counters",
    "embedders": "chunkcore.models.loading",
    "llms": "chunkcore.models.endpoint",
}


@grouped
def list_names(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"{', '.join(_REGISTRIES)}.",
            autocompletion=lambda: list(_REGISTRIES),
        ),
    ] = "",
) -> None:
    """List chunkers, retrievers, measures, ...

    Each name comes with its options and defaults. It is written with its options as name:option=value,option=value.
    What installed packages add is listed, too.

    Example: chunkcore list chunkers
    """
    from rich.console import Console
    from rich.text import Text

    if not kind:
        say(*(f"chunkcore list {name}" for name in _REGISTRIES))
        return
    kind = guesses.KINDS.get(kind, kind)
    if kind not in _REGISTRIES:
        expected = f"expected one of {', '.join(_REGISTRIES)}{suggestion(kind, _REGISTRIES)}"
        raise OptionError(f"unknown kind {echo(kind)}: {expected}")
    module = _REGISTRIES[kind]
    import_module(module.rpartition(".")[0])  # whose modules register what they hold
    console = Console(soft_wrap=True)
    for name, thing in getattr(import_module(module), kind).items():
        title = cleandoc(thing.__doc__ or "").partition("\n")[0]
        console.print(Text(name, style="bold"), Text(title))
        for option in fields(thing) if is_dataclass(thing) else ():
            console.print(Text(f"  {option.name} = {shown_default(option)}"))


# ---- the cache of vectors and of language models' answers

cache = typer.Typer(
    no_args_is_help=True,
    help="Measure or clear the cache of models.",
)
File = Annotated[Path | None, options.value_option("FILE", "Default: the user's cache.", "--cache")]


@cache.command()
@grouped
def size(file: File = None) -> None:
    """Say what the cache holds."""
    say(_described(_opened(file)))


@cache.command()
@grouped
def clear(file: File = None) -> None:
    """Remove every entry. The exit code is 1 if some are still there."""
    opened = _opened(file)
    say(f"{opened.clear():,} entries removed", _described(opened))
    contents = opened.size()
    if contents.vectors or contents.answers:
        raise typer.Exit(1)


def _opened(path: Path | None) -> Cache:
    from chunkcore.models.cache import Cache

    if path and not path.is_file():
        raise OptionError(f"{path} is no file: name a cache, or none for the user's")
    return Cache(path or options.default_cache())


def _described(opened: Cache) -> str:
    contents = opened.size()
    return f"{opened.path}: {contents.bytes / 1e6:,.1f} MB, {contents.vectors:,} vectors, {contents.answers:,} answers"


# Help lists the commands by the job that they are for.
_COMMANDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Find passages in your files": (search.search, search.index, search.serve),
    "Cut documents": (search.chunk, list_names),
    "Find out which chunker and retriever are best for your questions": (
        reports.compare,
        reports.score,
        reports.tune,
        search.calibrate,
        search.check,
    ),
    "Write questions to measure with": (questions.label,),
}
for _panel, _functions in _COMMANDS.items():
    for _function in _functions:
        app.command(_function.__name__.removesuffix("_names"), rich_help_panel=_panel)(_function)
app.add_typer(questions.app, name="questions", rich_help_panel="Write questions to measure with")
app.add_typer(cache, name="cache", rich_help_panel="More")

# What typer raises for a wrong option. Newer versions carry a copy of click, so the class is found by one that both
# export.
_UsageError: Any = typer.BadParameter.__mro__[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; `arguments` default to the process's."""
    _prepare_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    with warnings.catch_warnings(), StopSignals() as signals:
        # One sentence, without the line of code that it came from.
        warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")  # type: ignore[assignment]
        try:
            code = copy_context().run(_run, words)  # in which it is quiet, or not
        except StoppedError as error:
            return _say(str(error), code=signals.code)
    if code == 130:
        return _say(
            "stopped before the end; nothing half-written was left behind", code=signals.code
        )
    return code


@lru_cache(maxsize=1)
def _command() -> Callable[..., Any]:
    """`app` would make all commands anew at each call."""
    return typer.main.get_command(app)


def _run(arguments: list[str]) -> int:
    try:
        code = _command()(args=arguments, prog_name="chunkcore", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the second is how typer puts the first
        _print_no_more()  # the reader has ended
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except MemoryError:
        return _say(
            "the memory is not enough: take out the largest files, or give fewer of them", code=1
        )
    except NotWrittenError as error:
        return _say(str(error), code=1)
    except (ChunkcoreError, OSError, _UsageError) as error:
        sentence = _sentence(error)
        if getattr(error, "errno", None) in _FULL:  # what is written elsewhere is named
            _print_no_more()
            there = "what came before the error is there"
            return _say(f"standard output cannot be written: {sentence}; {there}", code=1)
        return _say(sentence) if sentence else 2  # empty: the help was shown
    return code if isinstance(code, int) else 0


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _print_no_more() -> None:
    """Drop what is to be printed, which Python would try again as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: Exception) -> str:
    if isinstance(error, _UsageError):
        return _usage(error) if str(error) else ""
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fspath(error.filename)!s}: {reason}" if error.filename else reason


def _say(sentence: str, *, code: int = 2) -> int:
    from chunkcore.plain import terminal_text

    print(f"chunkcore: {terminal_text(sentence)}", file=sys.stderr)  # noqa: T201
    return code


def _usage(error: Any) -> str:
    """A sentence for a wrong option or command, with the one that is meant."""
    message = shortened(error.format_message(), 300).replace("Value error, ", "").rstrip(".")
    path = getattr(error.ctx, "command_path", "chunkcore")
    parameters = getattr(getattr(error.ctx, "command", None), "params", ())
    options = {name for parameter in parameters for name in parameter.opts}
    meant = _meant(message, options)
    if meant or message.endswith("?"):
        return f"{meant or message} See {path} --help"
    return f"{message}{_advice(message, options)}; see {path} --help"


# Click quotes the option, Typer's own does not.
_UNKNOWN = re.compile(r"No such option:? '?(--?[\w-]+)")


def _meant(message: str, options: Set[str]) -> str:
    """The whole message for a guess that stands in our table, else ""."""
    flag = _UNKNOWN.search(message)
    command = re.search(r"No such command '(\w+)'", message)
    if flag:
        for table in (guesses.FLAGS, guesses.OTHER_FLAGS):
            meant = table.get(flag[1], "")
            if meant.partition(" ")[0] in options:
                return f"No such option: {flag[1]}. Did you mean {meant}?"
    elif command and command[1] in guesses.COMMANDS:
        return f"No such command '{command[1]}'. Did you mean chunkcore {guesses.COMMANDS[command[1]]}?"
    return ""


def _advice(message: str, options: Set[str]) -> str:
    missing = re.search(r"Missing (?:argument|option) '([\w-]+)'", message)
    if missing and missing[1] in guesses.EXAMPLES:
        return f", such as {guesses.EXAMPLES[missing[1]]}"
    if "extra argument" in message and "--docs" in options:
        return ": expected DOCS once, questions after --questions, braces in quotation marks"
    if "extra argument" in message and "question" in options:
        return ": put the question in quotation marks"
    return ""


def _prepare_streams() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell (>&-): what is written goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  # open until the end
        stream = getattr(sys, name)
        # File names need not be UTF-8, and a terminal need not show every character.
        if hasattr(stream, "reconfigure"):
            unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
            errors = "surrogateescape" if unicode else "backslashreplace"
            stream.reconfigure(errors=errors)
