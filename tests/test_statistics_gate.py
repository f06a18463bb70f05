"""The gate fails where the questions support that quality is too low, or fell, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import chunkcore.models
import numpy as np
import pytest
from chunkcore import DataError, Measure, OptionError, compare, get_measure
from chunkcore.cli import main
from chunkcore.evaluation.gate import check_baseline, check_requirement, parse_requirement, with_earlier
from chunkcore.evaluation.results import Report, System
from chunkcore.report.records import FORMAT, reports_checksum
from chunkcore.study.comparing import StudySettings

from tests.fakes import FakeEmbedder

HITS = get_measure("HitRate", 5)


def report(values: Sequence[float], *, name: str = "mine", first: int = 0, measure: Measure = HITS) -> Report:
    ids = tuple(f"q{number}" for number in range(first, first + len(values)))
    return Report(name, "toy", ids, ("",) * len(ids), {measure: np.array(values, dtype=np.float64)})


def hits(found: int, asked: int, **more: int) -> Report:
    return report([1.0] * found + [0.0] * (asked - found), **more)


def write_reports(path: Path, reports: list[dict[str, Any]]) -> None:
    plain = {"format": FORMAT, "checksum": reports_checksum(reports), "reports": reports}
    path.write_text(json.dumps(plain), "utf-8")


@pytest.mark.parametrize(
    ("written", "measure", "least"),
    [
        ("HitRate@5>=0.70", HITS, 0.7),
        (" nDCG@10[document] >= 1 ", get_measure("nDCG", 10, "document"), 1),
        ("DCG@5>=1.5", get_measure("DCG", 5), 1.5),
        ("Recall@4096tok>=4e-1", get_measure("Recall", "4096tok"), 0.4),
    ],
)
def test_a_requirement_is_read(written: str, measure: Measure, least: float) -> None:
    found = parse_requirement(written)
    assert (found.measure, found.bound) == (measure, least)
    assert parse_requirement(str(found)) == found


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("HitRate@5", "'HitRate@5' is no requirement: expected something like HitRate@5>=0.70"),
        ("HitRate@5<=0.7", "'HitRate@5<=0.7' is no requirement: expected something like HitRate@5>=0.70"),
        ("HitRate@5>=70", "HitRate@5 is a share from 0 to 1, such as 0.70, got 70"),
        ("Hits@5>=0.7", "unknown measure 'Hits@5': did you mean HitRate@5[document]"),
    ],
)
def test_what_is_no_requirement_is_refused(written: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_requirement(written)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("values", "required", "failed", "sentence"),
    [
        ([1.0] * 80 + [0.0] * 20, 0.70, False, "is 80.0 % (95 % interval 70.9 % to 88.0 %, 100 questions), meets the"),
        ([1.0] * 22 + [0.0] * 3, 0.85, False, "meets the required 85.0 %: passed, though the interval reaches under"),
        ([1.0] * 50 + [0.0] * 50, 0.70, True, "under the required 70.0 %: failed."),
        ([1.0] * 66 + [0.0] * 34, 0.70, False, "but the interval reaches it: passed, as these questions do not show"),
        ([0.0] * 5, 0.70, False, "but six questions at least are needed to tell: passed"),
        ([0.0] * 6, 0.70, True, "failed."),
        ([0.1] * 6, 0.1, False, "meets the required 10.0 %: passed."),
        ([np.nan] * 9, 0.70, False, "HitRate@5>=0.7 was not checked, as HitRate@5 is not defined here."),
        ([np.nan] * 50 + [1.0] * 80 + [0.0] * 20, 0.70, False, "is 80.0 % (95 % interval 70.9 % to 87"),
    ],
)
def test_a_requirement_fails_where_all_of_the_interval_is_below_it(values, required, failed, sentence) -> None:
    result = check_requirement(report(values), f"HitRate@5>={required}")
    assert result.failed == failed
    assert sentence in result.sentence


def test_the_interval_of_a_requirement_is_the_reports_own() -> None:
    some = replace(hits(22, 25), documents=tuple("abcdefgh" * 4)[:25])
    low, high = compare([some], by="question").intervals["mine"]
    shown = f"(95 % interval {100 * low:.1f} % to {100 * high:.1f} %, 25 questions)"
    settings = StudySettings(by="question", requirements=("HitRate@5>=0.99",))
    assert [shown in check.sentence for check in settings.checks([some])] == [True]
    dcg = report([0.5, 1.5] * 20, measure=get_measure("DCG", 5))
    assert "DCG@5 is 1.000 (95 % interval 0.8" in check_requirement(dcg, "DCG@5>=2").sentence


@pytest.mark.parametrize(
    ("now", "before", "failed", "sentence"),
    [
        ([1.0] * 70 + [0.0] * 30, [1.0] * 80 + [0.0] * 20, True, "fell from 80.0 % to 70.0 % on 100 questions (95 %"),
        # The same means, but questions changed both ways: each is compared with itself.
        ([0.0] * 25 + [1.0] * 70 + [0.0] * 5, [1.0] * 80 + [0.0] * 20, False, ", which chance may explain: passed."),
        ([1.0] * 80 + [0.0] * 20, [1.0] * 70 + [0.0] * 30, False, "HitRate@5 rose from 70.0 % to 80.0 %"),
        ([1.0] * 70 + [0.0] * 30, [1.0] * 70 + [0.0] * 30, False, "HitRate@5 stayed at 70.0 %"),
        ([0.1, 0.7, 0.4, 0.3, 0.6, 0.3], [0.3, 0.1, 0.7, 0.4, 0.6, 0.3], False, "stayed at 40.0 %"),
        ([0.0] * 5, [1.0] * 5, False, ", but too few questions differ to tell: passed."),
        ([1.0] * 10 + [0.0] * 10, [1.0] * 10 + [np.nan] * 10, False, "stayed at 100.0 %"),
        ([np.nan] * 3, [1.0, 1.0, 0.0], False, "is not known"),
    ],
)
def test_a_fall_that_the_questions_support_fails(now, before, failed, sentence) -> None:
    result = check_baseline(report(now), report(before), HITS)
    assert result.failed == failed
    assert sentence in result.sentence


def test_only_common_questions_count_in_any_order() -> None:
    before = report([1.0] * 60, first=0)
    now = report([1.0] * 40 + [0.0] * 40, first=20)  # q20 to q59 as before; q60 to q99 are new, and missed
    result = check_baseline(now, before, HITS)
    assert not result.failed
    assert "on 40 common questions, 40 new, 20 gone" in result.sentence
    before = hits(70, 100)
    now = Report("mine", "toy", before.query_ids[::-1], before.collections, {HITS: before.values(HITS)[::-1]})
    assert "interval of the change +0.0 to +0.0" in check_baseline(now, before, HITS).sentence


def test_reports_that_share_nothing_or_count_otherwise_are_refused() -> None:
    for other, name in ((report([1.0], first=5), "q5"), (report([]), "none")):
        with pytest.raises(DataError, match=rf"no question in common \('{name}' and 'q0' are among theirs\)"):
            check_baseline(other, report([1.0]), HITS)
    least = get_measure("Recall", "min")
    touching = Report("mine", "toy", ("q0",), ("",), {least: np.ones(1)}, min_rule="touching", counter="a")
    now, counted = replace(report([1.0], measure=least), counter="b"), "Recall@min counted tokens of a and b: score"
    refused = pytest.raises(DataError, match="counted chunks touching evidence before and holding it now")
    with pytest.warns(UserWarning, match=counted), refused:
        check_baseline(now, touching, least)


@pytest.fixture
def given(tmp_path: Path, fake: FakeEmbedder) -> list[str]:
    """Arguments of a comparison whose 20 questions are each answered by a document of their own."""
    folder = tmp_path / "docs"
    folder.mkdir()
    lines = []
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"The valve {number} is red. " + f"Filler {number} follows here. " * 30)
        lines.append({"question": f"Valve {number}?", "evidence": [f"The valve {number} is red."]})
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    paths = ["--docs", str(folder), "--questions", str(tmp_path / "questions.jsonl")]
    return ["compare", *paths, "--no-cache", "--resamples", "200", "-k", "1", "-s", "fixed_token:size=40"]


def run(given: list[str], output: Path, *more: str) -> int:
    retriever = [] if "-r" in more else ["-r", "dense"]
    return main([*given, *retriever, "--no-extras", "-o", str(output), *more])


def test_the_exit_code_is_1_where_a_requirement_failed(given, tmp_path, capfd) -> None:
    assert run(given, tmp_path / "out", "--require", "Precision@1>=0.99", "--require", "HitRate@99>=0.5") == 1
    lines = capfd.readouterr().out.splitlines()
    assert any("Precision@1 is" in line and "under the required 99.0 %: failed." in line for line in lines)
    assert any("HitRate@99 is 100.0 %" in line and line.endswith("passed.") for line in lines)
    assert lines[-1] == str(tmp_path / "out" / "report.html")
    assert run(given, tmp_path / "out", "--require", "HitRate@99>=0.5") == 0


def test_a_baseline_fails_only_a_fall(given, tmp_path, capfd) -> None:
    assert run(given, tmp_path / "old", "--measure", "Recall@99") == 0
    earlier = str(tmp_path / "old" / "report.json")
    assert run(given, tmp_path / "new", "--measure", "Recall@99", "--baseline", earlier) == 0
    assert "Recall@99 stayed at 100.0 % on 20 questions" in capfd.readouterr().out
    data = json.loads(Path(earlier).read_text())
    data["reports"][0]["scores"]["IoU@1"] = [1.0] * 20
    write_reports(Path(earlier), data["reports"])
    # The size has changed, and with it the name; one strategy is still compared with the other.
    given[-1] = "fixed_token:size=8"
    assert run(given, tmp_path / "new", "--baseline", earlier, "--measure", "IoU@1") == 1
    assert "fixed_token:size=8: IoU@1 fell from 100.0 %" in capfd.readouterr().out


def test_bad_gates_end_in_one_sentence_and_exit_code_2(given, tmp_path, capfd) -> None:
    assert run(given, tmp_path / "out", "--require", "HitRate@5") == 2
    assert "'HitRate@5' is no requirement" in capfd.readouterr().err
    assert run(given, tmp_path / "out", "--baseline", "missing.json") == 2
    assert "missing.json cannot be read: No such file" in capfd.readouterr().err


def test_a_baseline_of_other_strategies_is_told_before_anything_is_embedded(given, tmp_path, monkeypatch, capfd):
    report = {**read_report(given, tmp_path), "name": "other", "system": {"chunker": "other"}}
    old = tmp_path / "old.json"
    write_reports(old, [report, {**report, "name": "third", "system": {"chunker": "third"}}])
    model = FakeEmbedder()
    monkeypatch.setattr(chunkcore.models, "get_embedder", lambda name: model)
    assert run(given, tmp_path / "out", "--baseline", str(old)) == 2
    assert "it has other, third; compared are fixed_token:size=40" in capfd.readouterr().err
    assert model.calls == 0
    assert not (tmp_path / "out").exists()


def read_report(given: list[str], tmp_path: Path) -> dict:
    assert run(given, tmp_path / "first") == 0
    return json.loads((tmp_path / "first" / "report.json").read_text())["reports"][0]


def test_a_system_meets_its_earlier_report_where_a_second_retriever_names_it_otherwise() -> None:
    def named(name: str, retriever: str, found: int) -> Report:
        return replace(hits(found, 40), name=name, system=System("recursive:size=20", retriever))

    earlier = [named("recursive:size=20", "bm25", 40), named("recursive:size=20 · passages behind", "", 40)]
    now = [named("recursive:size=20 · bm25", "bm25", 4), named("recursive:size=20 · dense", "dense", 40)]
    (check,) = StudySettings(measure=str(HITS), earlier=earlier, resamples=500).checks(now)
    assert (check.failed, "recursive:size=20 · bm25" in check.sentence) == (True, True)
    with pytest.raises(DataError, match=r"none of the systems: it has recursive:size=20, .*; compared are .* dense"):
        with_earlier(now[1:], earlier)
    vectors = System("recursive:size=20", "dense", "openvino:small")
    with pytest.raises(OptionError, match="the baseline was not evaluated with F1@7: expected one of HitRate@"):
        StudySettings(measure="F1@7", earlier=earlier)
    elsewhere = replace(earlier[0], system=replace(vectors, embedder="openvino-bf16:small"))
    assert with_earlier([replace(now[1], system=vectors)], [*earlier, elsewhere])[0][1] is elsewhere
