"""A few cases of everything that ``make fuzz`` tries a million of, and that it counts and tells what it finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chunkcore.chunkers import strategies
from tests.fuzzing import guided, running, targets
from tests.fuzzing.__main__ import main
from tests.fuzzing.chunkers import NAMES, chunkers
from tests.fuzzing.running import LIMIT, play, property_of, rounds
from tests.fuzzing.targets import ROOMS, Target, load_targets
from tests.fuzzing.texts import ALPHABETS, text_of, texts

TARGETS = load_targets(tuple(room for room in ROOMS if room.startswith("tests.")))
few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_what_is_fuzzed_holds_for_a_few_cases(target: Target) -> None:
    few(property_of(target))()


def test_every_strategy_is_among_those_that_are_tried() -> None:
    assert set(NAMES) == {name for name, cls in strategies.items() if cls.__module__.startswith("chunkcore.")}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_strategy_is_drawn(name: str) -> None:
    drawn = settings(few, max_examples=3, phases=[Phase.generate])(given(chunkers((name,)))(lambda chunker: None))
    drawn()


@pytest.mark.parametrize("number", range(len(ALPHABETS)))
def test_any_recipe_makes_a_text_that_is_not_long(number: int) -> None:
    for code in range(256):
        assert len(text_of(bytes([number, *[code] * 300]))) < 20_000


def test_texts_are_of_all_kinds() -> None:
    made: list[str] = []
    settings(few, max_examples=500, phases=[Phase.generate])(given(texts())(lambda text: made.append(text)))()
    everything = "\0\0\0".join(made)
    for wanted in ("\ud800", "\x00", "\r\n", "\u2028", "<|endoftext|>", "👩‍👩‍👧‍👦", "\u202e", "```", "<table>", "。"):
        assert wanted in everything
    assert len(set(made)) > 450
    assert max(map(len, made)) > 500


# --- the machine itself ---


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only target is one of numbers that fails from 17 on."""

    def numbers_are_small(number: int) -> None:
        assert number < 17

    def all_is_well(text: str) -> None:
        assert text == str(text)

    made = {
        check.__name__: Target("toys", check.__name__, check, arguments)
        for check, arguments in [
            (numbers_are_small, {"number": st.integers(0, 999)}),
            (all_is_well, {"text": texts()}),
        ]
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


@pytest.mark.usefixtures("toy")
def test_the_count_is_of_texts_that_were_checked_and_ends_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "900", "--only", "well"]) == 0
    assert "\n1,200 generated texts checked, 0 failures" in capsys.readouterr().out  # three rounds


@pytest.mark.usefixtures("toy")
def test_time_ends_the_run_and_an_unknown_target_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0.00001", "--only", "well"]) == 0
    assert main(["--only", "nothing of the kind"]) == 2
    assert "all_is_well" in capsys.readouterr().err


def test_the_same_seed_gives_the_same_cases_and_each_target_its_share() -> None:
    made = rounds(TARGETS, 7)
    first = [next(made) for _ in range(200)]
    assert [next(again) for again in [rounds(TARGETS, 7)] for _ in range(200)] == first
    assert len({each.own_seed for each in first}) == 200
    texts_of = {
        name: sum(each.cases * TARGETS[name].texts for each in first if each.target == name) for name in TARGETS
    }
    ratio = texts_of["chunks_keep_their_promises"] / texts_of["markdown_blocks_cover_the_text"]
    shares = TARGETS["chunks_keep_their_promises"].share / TARGETS["markdown_blocks_cover_the_text"].share
    assert ratio == pytest.approx(shares, rel=0.3)


def test_what_does_not_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def never_ends(number: int) -> None:
        while number:
            pass

    monkeypatch.setattr(running, "LIMIT", 1)
    with pytest.raises(running.TooSlowError, match="over 1 seconds"):
        settings(few, max_examples=1)(property_of(Target("toys", "never", never_ends, {"number": st.just(1)})))()
    assert LIMIT > 10


def test_a_room_whose_packages_are_absent_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MISSING", {})
    assert load_targets(("tests.fuzzing.no_such_room",)) == {}
    assert list(targets.MISSING) == ["tests.fuzzing.no_such_room"]


def test_rounds_are_what_they_say() -> None:
    outcome = play(next(rounds({"spans_are_sets_of_positions": TARGETS["spans_are_sets_of_positions"]}, 3)))
    assert (outcome.target, outcome.texts, outcome.failure) == ("spans_are_sets_of_positions", running.ROUND, "")
    assert Path(running.__file__).name == "running.py"


def test_without_atheris_that_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(guided, "find_spec", lambda name: None)
    assert guided.main(["--seconds", "1"]) == 3
    assert "atheris is not installed (pip install atheris" in capsys.readouterr().out


@pytest.mark.slow
def test_coverage_leads_to_more_places(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: make fuzz installs it")
    assert guided.main(["--seconds", "20", "--only", "markdown"]) == 0
    said = capsys.readouterr().out
    found = re.search(r"markdown_blocks_cover_the_text: ([\d,]+) cases, .* reached: ([\d,]+) to ([\d,]+)", said)
    assert found
    cases, before, after = (int(each.replace(",", "")) for each in found.groups())
    assert cases > 0
    assert after >= before > 100
