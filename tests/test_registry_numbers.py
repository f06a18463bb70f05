"""Every number has a range: the same numbers as each numeric option of each command and each registered thing."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import chunkcore.models.llm
import numpy as np
import pytest
import typer
from chunkcore import ChunkcoreError, Document, OptionError, compare
from chunkcore.chunkers import chunkers, get_chunker
from chunkcore.cli import app, main
from chunkcore.evaluation.results import ModelPrices
from chunkcore.models.llm import OpenAILLM, Prices
from chunkcore.options import LARGEST
from chunkcore.questions import GenerationOptions
from chunkcore.retrieval import BM25, ChunkedCorpus, TextVectors, stages
from chunkcore.retrieval.base import retrievers
from chunkcore.study.tuning import TuneOptions

from tests.fakes import FakeEmbedder, FakeLLM

TEXT = "# Pumps\n\nThe pump stands outside. Ask the caretaker for keys.\n\nRain fell. It rained all night.\n" * 3
NUMBERS = (0, -1, 1, 2, 1.5, 1000, 2**31, 2**53, LARGEST, 2**63, 2**64, 10**400, 10**5000, 1e308, 5e-324)
NUMBERS += (math.nan, math.inf, -math.inf, np.int64(3), np.float32(0.5), True, "1e3", "٣")
TYPED = ("0", "-1", "1", "1.5", "-0.0", "2147483648", "9007199254740992", "9223372036854775808", "1" * 5000, "1e308")
TYPED += ("-1e308", "5e-324", "1e3", "nan", "inf", "-inf", "٣", "0x10", "", "99999999999999")


def numeric(cls: type) -> list[str]:
    hints = get_type_hints(cls)
    return [each.name for each in fields(cls) if {hints[each.name], *get_args(hints[each.name])} & {int, float}]


def refused_or_done(work: Callable[[], object]) -> None:
    """It ends, or in one line of an error."""
    try:
        work()
    except ChunkcoreError as error:
        told = str(error)
    else:
        told = ""
    assert len(told) < 600


REGISTERED = [
    (kind, name, option)
    for kind in (chunkers, retrievers, stages)
    for name in kind
    if kind.get(name).__module__.startswith("chunkcore.")  # benchmarks register stages of their own
    for option in numeric(kind.get(name))
]


@pytest.mark.parametrize(("kind", "name", "option"), REGISTERED, ids=lambda each: each if isinstance(each, str) else "")
def test_a_registered_thing_takes_a_number_or_says_its_range(kind, name, option):
    cls = kind.get(name)
    models = {"embedder": FakeEmbedder(), "llm": FakeLLM(broken=0.0), "method": BM25()}
    models["model"] = lambda pairs: [0.0] * len(pairs)
    given = {each.name: models[each.name] for each in fields(cls) if each.name in models}
    chunks = list(get_chunker("fixed_token:size=9").chunk(Document("d", TEXT)))
    for number in NUMBERS:

        def work(number: Any = number) -> None:
            made = cls(**{**given, option: number})
            if kind is chunkers:
                made.chunk(Document("d", TEXT))
            else:
                made.index(ChunkedCorpus(chunks, [Document("d", TEXT)]), TextVectors(FakeEmbedder())).retrieve(
                    "pump", k=2
                )

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused_or_done(work)


def test_a_size_over_64_bits_is_refused_with_the_largest_one():
    for number in (2**63, 10**5000):
        with pytest.raises(OptionError, match="size is a whole number of at most 9223372036854775807; got"):
            get_chunker("fixed_token", size=number)
    with pytest.raises(OptionError, match="eps is a number of at most 9223372036854775807; got inf"):
        get_chunker("dbscan", eps=math.inf, embedder=FakeEmbedder())
    assert len(get_chunker(f"fixed_token:size={LARGEST}").split_text(TEXT)) == 1


SETTINGS: dict[Any, dict[str, Any]] = {GenerationOptions: {}, TuneOptions: {}}
SETTINGS[Prices] = {"input": 1.0, "output": 1.0}


@pytest.mark.parametrize("cls", SETTINGS, ids=lambda cls: cls.__name__)
def test_settings_state_their_ranges(cls):
    for option in [each.name for each in fields(cls) if type(each.default) in (int, float)]:
        if option in SETTINGS[cls]:
            continue
        with pytest.raises((OptionError, TypeError)):
            cls(**{**SETTINGS[cls], option: "1e3"})
        for number in NUMBERS:
            refused_or_done(lambda option=option, number=number: cls(**{**SETTINGS[cls], option: number}))
        for number in (math.nan, math.inf, 10**5000):
            with pytest.raises(OptionError):
                cls(**{**SETTINGS[cls], option: number})


def test_numbers_of_functions_have_ranges():
    calls: list[Callable[[Any], object]] = [
        lambda n: compare([], "Recall@5", resamples=n),
        lambda n: compare([], "Recall@5", margin=n),
        lambda n: ModelPrices(embedding=n),
        *(
            lambda n, option=option: OpenAILLM("m", "http://x/v1", **{option: n})
            for option in ("temperature", "max_tokens", "timeout", "tries", "concurrency")
        ),
    ]
    for call in calls:
        for number in NUMBERS:
            refused_or_done(lambda call=call, number=number: call(number))
        for number in (-1, math.nan, math.inf, 10**5000):
            with pytest.raises(OptionError, match=r"is at (least|most)|number"):
                call(number)
    with pytest.raises(OptionError, match=r"price of a million tokens \(embedding\) is at least 0"):
        ModelPrices(embedding=-1)


def every_command(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield names, command
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, *names, name)


# What a command needs to run for a short time.
GIVEN = {
    ("chunk",): "{docs} -o {out}/chunks.jsonl",
    ("search",): "{docs} gate --no-cache",
    ("compare",): "{data} -s fixed_token:size=9 -k 1 --resamples 100 -o {out}",
    ("score",): "{data} --run {run} -k 1 --resamples 100 -o {out}",
    ("calibrate",): "{docs} --questions {docs}/none.jsonl --no-cache",
    ("tune",): "{data} -s fixed_token:size={{9,20}} --folds 2 --resamples 100 --dry-run -o {out}",
    ("questions", "generate"): "--docs {docs} --llm fake -o {out}/questions.jsonl -e none --dry-run",
    ("questions", "label"): "{docs}/none --no-browser -o {out}/questions.jsonl",
    ("label",): "{docs}/none --no-browser -o {out}/questions.jsonl",
    ("questions", "check"): "{data} -e none",
}
COMMANDS = [
    (names, option.opts[-1])
    for names, command in every_command(typer.main.get_command(app))
    for option in command.params
    if {kind := command.callback.__annotations__.get(option.name), *get_args(kind)}
    & {int, float, int | None, float | None}
]


@pytest.fixture
def given(tmp_path: Path, fake: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(TEXT.replace("Pumps", "Pumps of Ayton", 1))
    (docs / "b.md").write_text("The gate is red.")
    rows = [{"id": str(n), "question": "Which?", "evidence": [each], "answers": ["red"]} for n, each in
            enumerate(["Pumps of Ayton", "The gate is red."])]  # fmt: skip
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "run.jsonl").write_text(
        '{"query_id": "0", "document_id": "a.md"}\n{"query_id": "1", "document_id": "b.md"}\n'
    )
    monkeypatch.setattr(chunkcore.models.llm, "get_llm", lambda name: FakeLLM(broken=0.0))
    data = f"--docs {docs} --questions {tmp_path / 'q.jsonl'}"
    return SimpleNamespace(docs=docs, data=data, out=tmp_path / "out", run=tmp_path / "run.jsonl")


def test_an_option_has_one_default_over_all_commands():
    defaults: dict[str, set[str]] = {}
    for _, command in every_command(typer.main.get_command(app)):
        for option in command.params:
            if option.default not in (None, "") and option.param_type_name == "option":
                defaults.setdefault(option.opts[0], set()).add(str(option.default))
    several = {name for name, values in defaults.items() if len(values) > 1}
    assert several == {"--output"}, "by what is written"


@pytest.mark.parametrize(("names", "option"), COMMANDS, ids=" ".join)
def test_a_command_takes_a_number_or_says_its_range(names, option, given, capfd):
    base = [*names, *GIVEN[names].format(**vars(given)).split()]
    assert main(base) in (0, 1, 2)
    for number in TYPED:
        capfd.readouterr()
        code = main([*base, f"{option}={number}"])
        err = capfd.readouterr().err
        assert code in (0, 1, 2), number
        assert len(err) < 2_000, number
    for number in ("nan", "inf", "9223372036854775808", "1" * 5000):
        assert main([*base, f"{option}={number}"]) == 2, number


def test_a_resampling_that_would_fill_the_memory_is_refused(given, capfd):
    assert main(["compare", *given.data.split(), "--resamples", "99999999999999"]) == 2
    assert "--resamples" in capfd.readouterr().err
    assert main(["compare", *given.data.split(), "--margin", "inf"]) == 2
    assert "--margin is at most 9,223,372,036,854,775,807, got inf" in capfd.readouterr().err
