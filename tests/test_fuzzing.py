"""A few cases of everything that ``make fuzz`` tries a million of, and that it counts and tells what it finds."""

from __future__ import annotations

import pytest
from chunkcore.chunkers import chunkers as registry
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzzing.__main__ import main
from tests.fuzzing.chunkers import NAMES, chunkers
from tests.fuzzing.running import property_of
from tests.fuzzing.targets import ROOMS, Target, load_targets
from tests.fuzzing.texts import texts

TARGETS = load_targets(tuple(room for room in ROOMS if room.startswith("tests.")))
few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_what_is_fuzzed_holds_for_a_few_cases(target: Target) -> None:
    few(property_of(target))()


def test_every_strategy_is_among_those_that_are_tried() -> None:
    assert set(NAMES) == {name for name, cls in registry.items() if cls.__module__.startswith("chunkcore.")}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_strategy_is_drawn(name: str) -> None:
    drawn = settings(few, max_examples=3, phases=[Phase.generate])(given(chunkers((name,)))(lambda chunker: None))
    drawn()


def test_texts_are_of_all_kinds() -> None:
    made: list[str] = []
    settings(few, max_examples=500, phases=[Phase.generate])(given(texts())(lambda text: made.append(text)))()
    everything = "\0\0\0".join(made)
    for wanted in ("\ud800", "\x00", "\r\n", "\u2028", "<|endoftext|>", "👩‍👩‍👧‍👦", "\u202e", "```", "<table>", "。"):
        assert wanted in everything
    assert len(set(made)) > 450
    assert max(map(len, made)) > 500


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only target is one of numbers that fails from 17 on."""

    def numbers_are_small(number: int) -> None:
        assert number < 17

    def all_is_well(text: str) -> None:
        assert text == str(text)

    made = {
        check.__name__: Target("toys", check.__name__, check, arguments)
        for check, arguments in [(numbers_are_small, {"number": st.integers(0, 999)}), (all_is_well, {"text": texts()})]
    }
    for module in ("tests.fuzzing.running", "tests.fuzzing.__main__"):
        monkeypatch.setattr(f"{module}.load_targets", lambda: made)


@pytest.mark.usefixtures("toy")
def test_a_failure_is_told_at_its_smallest_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "401", "--only", "small", "well"]) == 1
    said = capsys.readouterr().out
    assert "number=17" in said
    assert said.count("=== numbers_are_small failed") == 1
    assert "FAILED" in said
    assert ", 1 failures, seed 1, " in said
